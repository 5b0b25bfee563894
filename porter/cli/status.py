"""`porter status`."""

from __future__ import annotations

from pathlib import Path

import click

from porter.cli.options import command, complete_operator
from porter.cli.output import DONE, Output


@command(
    "status",
    ("porter status --portable", "what can be ported"),
    ("porter status 'log*' --blocked", "logarithms that stay on MPSGraph, and why"),
    ("porter status --missing", "what MPS lacks, and what each would take"),
    ("porter status --json | jq .counts", "as JSON"),
)
@click.argument("patterns", metavar="[PATTERN...]", nargs=-1, shell_complete=complete_operator)
@click.option("--portable", is_flag=True, help="Only operators with a row on MPSGraph that porter would port.")
@click.option("--blocked", is_flag=True, help="Only operators with a row on MPSGraph that stays.")
@click.option("--missing", is_flag=True, help="List the operators that MPS lacks instead, and the work each needs.")
@click.option("--coverage", is_flag=True, help="Print the elementwise rows and what came of them, in Markdown.")
@click.option(
    "--results",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Results for --coverage.",
)
def status(
    output: Output,
    patterns: tuple[str, ...],
    portable: bool,
    blocked: bool,
    missing: bool,
    coverage: bool,
    results: tuple[Path, ...],
) -> int:
    """List the operators with an MPS implementation.

    Shows, for each operator, what its code is written in, how an MPSGraph implementation can be read, and how porter
    would port it (a shared row, an own row, an own row from runs) or why not: a library computes it, or an error code
    (see docs/errors) and the reason. Runs no code of the checkout. PATTERN is a shell pattern: 'log*'.
    """
    if missing:
        return _show_missing(output, patterns)
    from porter.report.status import status_lines, status_object, style_status
    from porter.workflows.status import Filters
    from porter.workflows.status import status as run

    if coverage:
        return _show_coverage(output, results)
    found = run(output.open_checkout(), Filters(patterns, portable, blocked))
    if output.json:
        output.object(status_object(found))
    else:
        output.text("\n".join(status_lines(found)), lambda: style_status(found))
    return DONE


def _show_missing(output: Output, patterns: tuple[str, ...]) -> int:
    from porter.report.missing import missing_lines, missing_object
    from porter.workflows.status import missing

    found = missing(output.open_checkout(), patterns)
    if output.json:
        output.object(missing_object(found))
    else:
        output.text("\n".join(missing_lines(found)))
    return DONE


def _show_coverage(output: Output, results: tuple[Path, ...]) -> int:
    from porter.report.coverage import coverage_object, coverage_text
    from porter.workflows.coverage import find_coverage
    from porter.workflows.results import no_results, read_results

    checkout = output.open_checkout()
    found = find_coverage(checkout, read_results(results) if results else no_results(checkout))
    if output.json:
        output.object(coverage_object(found))
    else:
        output.text(coverage_text(found, "porter status --coverage --results FILE").rstrip("\n"))
    return DONE
