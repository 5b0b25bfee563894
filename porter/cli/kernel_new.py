"""`porter kernel new`."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from porter.cli.options import command
from porter.cli.output import DONE, Output


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from porter.workflows.templates import find_templates

    return [CompletionItem(t.name, help=t.summary) for t in find_templates() if t.name.startswith(incomplete)]


@command(
    "new",
    ("porter kernel new rms_norm", "a copy in this folder"),
    ("porter kernel new softmax --name masked", "under another name, functions too"),
)
@click.argument("template", shell_complete=_complete)
@click.option("--name", metavar="NAME", help="What to call the script and its functions.")
@click.option(
    "--out", default=".", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Where to write it."
)
def new(output: Output, template: str, name: str | None, out: Path) -> int:
    """Start a kernel from a template.

    TEMPLATE is a name that `porter kernel list` shows. No file is overwritten.
    """
    from porter.workflows.templates import write_new

    path = write_new(template, name, out)
    if output.json:
        output.object({"file": str(path)})
    else:
        output.text(str(path))
        output.note(f"Check it: porter kernel check {path}")
    return DONE
