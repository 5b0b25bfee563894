"""`porter kernel list`."""

from __future__ import annotations

from porter.cli.options import command
from porter.cli.output import DONE, Output


@command("list", ("porter kernel list", "name, kind and summary"), ("porter kernel list --json", "one object each"))
def list_templates(output: Output) -> int:
    """List the templates that a kernel can start from."""
    from porter.report.kernel import template_lines, template_object
    from porter.workflows.templates import find_templates

    templates = find_templates()
    if output.json:
        for template in templates:
            output.object(template_object(template))
    else:
        output.text("\n".join(template_lines(templates)))
    return DONE
