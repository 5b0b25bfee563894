"""`porter setup`."""

from __future__ import annotations

from dataclasses import asdict

from porter.cli.options import command
from porter.cli.output import DONE, Output


@command("setup", ("porter setup", "run once, before the first verdict"))
def setup(output: Output) -> int:
    """Find or install a compiler, and build what all verdicts share.

    As root, installs a system package; in a virtual environment, installs `ziglang` from PyPI. Then builds the
    stand-in for Apple's frameworks and the host code that every operator of the checkout shares.
    """
    from porter.report.setup import compiler_text, overlay_text
    from porter.workflows.setup import prepare, set_up

    compiler = set_up()
    if not output.json:
        output.text(compiler_text(compiler))
    overlay = prepare(output.open_checkout(), output.report_progress)
    if output.json:
        output.object({"compiler": asdict(compiler), "overlay": asdict(overlay)})
    else:
        output.text(overlay_text(overlay))
    return DONE
