"""`porter setup`."""

from __future__ import annotations

from dataclasses import asdict

from porter.cli.options import command
from porter.cli.output import DONE, Output


@command("setup", ("porter setup", "once, before the first verdict"))
def setup(output: Output) -> int:
    """Find a compiler, or install one; build what verdicts share.

    A compiler is installed where that may be done: as root one of the system's packages, else `ziglang` into this
    virtual environment. What is built is the stand-in for Apple, and what every operator of the checkout needs of it.
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
