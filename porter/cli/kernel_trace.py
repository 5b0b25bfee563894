"""`porter kernel trace`."""

from __future__ import annotations

from pathlib import Path

import click

from porter.cli.options import command, sanitize
from porter.cli.output import DONE, INCOMPLETE, Output


@command(
    "trace",
    ("porter kernel trace sort.py", "where a pipeline first goes wrong"),
    ("porter kernel trace sort.py --shuffle 7", "in another order of lanes and threadgroups"),
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--shuffle", type=int, metavar="SEED", help="Run lanes and threadgroups in an order made of SEED, one by one."
)
@sanitize
def trace(output: Output, file: Path, shuffle: int | None) -> int:
    """Run a script stage by stage, up to the first that is wrong.

    Shows the first element that differs from the stage's reference: its index, what was expected, what came, and who
    wrote it. Accesses out of bounds are refused. FILE is run as Python.
    """
    from porter.report.kernel import trace_lines, trace_object
    from porter.workflows.kernel import trace_script

    code = DONE
    for result in trace_script(file, shuffle):
        if output.json:
            output.object(trace_object(result))
        else:
            output.text("\n".join(trace_lines(result)))
        code = code if result.difference is None else INCOMPLETE
    return code
