"""`porter kernel check`."""

from __future__ import annotations

from pathlib import Path

import click

from porter.cli.options import command, device, family, sanitize, shuffle
from porter.cli.output import DONE, INCOMPLETE, Output


@command(
    "check",
    ("porter kernel check rms_norm.py", "every case of the script"),
    ("porter kernel check rms_norm.py --json", "as JSON"),
)
@click.argument("file", type=click.Path(path_type=Path))
@sanitize
@shuffle
@family
@device
def check(output: Output, file: Path, device: str) -> int:
    """Compare a script's kernels with their references.

    Runs every case of the script's SCRIPT: sizes, element types and layouts, in both tiers, with accesses out of
    bounds refused. FILE is run as Python.
    """
    from porter.report.kernel import check_lines, check_object
    from porter.workflows.kernel import backend_name, check_script

    results = list(check_script(file, output.report_step, device))
    if output.json:
        output.object(check_object(file.name, results))
    else:
        output.text("\n".join(check_lines(file.name, results, backend_name(device))))
    return DONE if all(result.ok for result in results) else INCOMPLETE
