"""`porter mac`: launches for a Mac to replay, and its log beside others."""

from __future__ import annotations

from pathlib import Path

import click

from porter.cli.options import command, group
from porter.cli.output import DONE, INCOMPLETE, Output


@command(
    "new",
    ("porter mac new witness", "every template"),
    ("porter mac new witness softmax.py exp atan2", "a script, and two operators of the fork"),
)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.argument("subjects", metavar="[SCRIPT.py|OP]...", nargs=-1)
@click.option(
    "-k", "expr", metavar="EXPR", help="Only record tests of operators whose name matches. Default: test_output_match."
)
def new(output: Output, folder: Path, subjects: tuple[str, ...], expr: str | None) -> int:
    """Record launches for a Mac, with what replays them there.

    Writes into FOLDER the launches of kernel scripts and of native operators of the fork, with the memory that each
    leaves on this host; a script that needs torch alone; a GitHub workflow that runs it; and the log of the script on
    this host. A SCRIPT is run as Python. No file is overwritten.
    """
    from porter.report.mac import log_line
    from porter.workflows.mac import SAMPLES, write_bundle

    bundle = write_bundle(output.open_checkout, folder, subjects, expr or SAMPLES, output.report_step)
    if output.json:
        output.object({
            "files": [str(path) for path in bundle.files], "sources": bundle.sources, "launches": bundle.launches,
            "left_out": dict(bundle.left_out), "host": bundle.host.counts,
        })  # fmt: skip
        return DONE
    output.text("\n".join(map(str, bundle.files)))
    output.note(f"{bundle.launches} launches of {bundle.sources} sources recorded")
    for reason, count in bundle.left_out:
        output.note(f"  left out {count}: {reason}")
    output.note(log_line(bundle.host))
    return DONE


@command(
    "compare",
    ("porter mac compare witness/host.jsonl log-macos-15.jsonl", "a Mac beside the host"),
    ("porter mac compare log-macos-15.jsonl log-macos-26.jsonl --json", "as JSON"),
)
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path(path_type=Path))
def compare(output: Output, logs: tuple[Path, ...]) -> int:
    """Set logs of witnesses beside each other.

    By kernel and element type: how many launches ran, how many results have the host's bits, the largest distance of
    those that agree in units in the last place, and the time of the fastest. Then what differs, what did not run and
    why, and what ran on some machines only. Exits with 1 where values differ, a launch failed, or a log ends early.
    """
    from porter.report.mac import comparison_lines, comparison_object
    from porter.workflows.mac import compare_logs

    comparison = compare_logs(logs)
    output.show(comparison_object(comparison), comparison_lines(comparison))
    return DONE if comparison.agrees else INCOMPLETE


mac = group("mac", "Record kernels for a Mac to replay, and compare its log with others.", new, compare)
