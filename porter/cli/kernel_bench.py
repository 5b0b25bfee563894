"""`porter kernel bench`."""

from __future__ import annotations

from pathlib import Path

import click

from porter.cli.options import command, device
from porter.cli.output import DONE, Output


@command(
    "bench",
    ("porter kernel bench softmax.py", "one script"),
    ("porter kernel bench --all", "every template, in one run"),
    ("porter kernel bench softmax.py --device cuda", "on an NVIDIA GPU"),
)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--all", "every", is_flag=True, help="Time every template.")
@device
def bench(output: Output, file: Path | None, every: bool, device: str) -> int:
    """Time a script's kernels beside the torch operator.

    Prints milliseconds and ratios. On the host the operator runs on the CPU, so that a ratio says what the host makes
    of a kernel, not what a GPU would. On an NVIDIA GPU both run there, and the share of a copy's bandwidth is printed
    too. FILE is run as Python.
    """
    from porter.report.kernel import TIMING_HEADING, timing_line, timing_object
    from porter.workflows.kernel import time_scripts

    if (file is None) is not every:
        raise click.UsageError("give FILE or --all")
    for number, (name, timing) in enumerate(time_scripts((file,) if file else (), output.report_step, device)):
        if output.json:
            output.object(timing_object(name, timing))
        else:
            output.text(timing_line(name, timing) if number else f"{TIMING_HEADING}\n{timing_line(name, timing)}")
    return DONE
