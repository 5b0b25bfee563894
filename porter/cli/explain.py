"""`porter explain`."""

from __future__ import annotations

from functools import partial

import click

from porter.cli.options import command, complete_operator
from porter.cli.output import DONE, Output


@command(
    "explain",
    ("porter explain atan2", "what the old code computes and where it moves"),
    ("porter explain atan2 --no-record", "the same, from the source only"),
    ("porter explain trace --cost", "also what the fused kernels read and write"),
)
@click.argument("op", metavar="OP", shell_complete=complete_operator)
@click.option("--no-record", is_flag=True, help="Only read the source; run nothing.")
@click.option("--macos", default="", metavar="VERSION", help="Run the old code as on this macOS version, such as 15.0.")
@click.option("--cost", is_flag=True, help="Count the bytes that the fused kernels read and write.")
def explain(output: Output, op: str, no_record: bool, macos: str, cost: bool) -> int:
    """Show each stage of the port of one operator, and its source."""
    from porter.report.explain import stage_text, style_stage
    from porter.workflows.explain import explain as run

    stages = run(output.open_checkout(), op, not no_record, macos, cost, output.report_progress)
    if output.json:
        output.object({"op": op, "stages": [stage.as_object() for stage in stages]})
        return DONE
    for stage in stages:
        output.text(stage_text(stage), partial(style_stage, stage))
    return DONE
