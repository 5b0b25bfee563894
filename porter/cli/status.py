"""`porter status`."""

from __future__ import annotations

import click

from porter.cli.options import command, complete_operator
from porter.cli.output import DONE, Output


@command(
    "status",
    ("porter status --portable", "what can be ported"),
    ("porter status 'log*' --blocked", "which logarithms cannot, and why"),
    ("porter status --json | jq .counts", "for a script"),
)
@click.argument("patterns", metavar="[PATTERN...]", nargs=-1, shell_complete=complete_operator)
@click.option("--portable", is_flag=True, help="Only operators with a row that porter can port.")
@click.option("--blocked", is_flag=True, help="Only operators with a row on MPSGraph that cannot be ported.")
def status(output: Output, patterns: tuple[str, ...], portable: bool, blocked: bool) -> int:
    """List the operators with an MPS dispatch.

    One line each: what its code is written in, which readings there are of an implementation on MPSGraph, and whether
    porter can port it, else a code (docs/errors) and why not. PATTERN is one of a shell: 'log*'.
    """
    from porter.report.status import status_lines, status_object, style_status
    from porter.workflows.status import Filters
    from porter.workflows.status import status as run

    found = run(output.open_checkout(), Filters(patterns, portable, blocked))
    if output.json:
        output.object(status_object(found))
    else:
        output.text("\n".join(status_lines(found)), lambda: style_status(found))
    return DONE
