"""`porter migrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from porter.cli.options import command, expression, operators, proof
from porter.cli.output import DONE, INCOMPLETE, Output

if TYPE_CHECKING:
    from porter.workflows.migrate import Ported


@command(
    "migrate",
    ("porter migrate atan2", "show the port and its verdict"),
    ("porter migrate atan2 --no-verify > atan2.diff", "the diff alone, as git apply takes it"),
    ("porter migrate erf log1p --write", "port two operators and write both"),
    ("porter migrate --all --no-verify --json", "every plan, for a script"),
)
@operators(required=False)
@click.option("--all", "every", is_flag=True, help="Every operator that porter can port.")
@click.option("--write", is_flag=True, help="Write the change set to the checkout.")
@click.option("--force", is_flag=True, help="Write even where a touched file has uncommitted changes.")
@click.option("--no-verify", is_flag=True, help="Plan only.")
@click.option("--pull-request", is_flag=True, help="Print the text of the pull request, not the diff.")
@expression
@proof
def migrate(
    output: Output,
    ops: tuple[str, ...],
    every: bool,
    write: bool,
    force: bool,
    no_verify: bool,
    pull_request: bool,
    expr: str | None,
    backend: str,
    arithmetic: str,
) -> int:
    """Plan, show and verify the complete port of operators.

    OP is a base name or an overload of native_functions.yaml: atan2, atan2.out. Nothing is written without --write.
    """
    from porter.workflows.migrate import NotPlanned, Ported, Request, Wrote
    from porter.workflows.migrate import migrate as run
    from porter.workflows.verify import Proof

    request = Request(ops, every, write, force, None if no_verify else Proof(expr, backend, arithmetic))
    code = DONE
    for found in run(output.open_checkout(write), request, output.step):
        match found:
            case Ported():
                _show(output, found, pull_request, no_verify)
                code = code if found.done else INCOMPLETE
            case NotPlanned(op, error):
                output.error(error, f"porter: {op}")
            case Wrote(files):
                output.note(f"wrote {len(files)} files; porter undo takes them back")
    return code


def _show(output: Output, found: Ported, pull_request: bool, no_verify: bool) -> None:
    from porter.report import pull_request as markdown
    from porter.report.as_json import plan_object, verdict_object
    from porter.report.terminal import styled_diff, styled_summary, summary

    plan, verdict, losers = found.plan, found.verdict, found.losers
    if output.json:
        output.object(plan_object(plan, verdict_object(verdict) if verdict else None, losers))
    elif pull_request:
        output.text(markdown.pull_request(plan, verdict))
    else:
        diff = plan.changes.diff()
        output.diff(diff, lambda: styled_diff(diff))
        tell = output.note if no_verify else output.text
        tell(summary(plan, losers), lambda: styled_summary(plan, losers))
        if verdict:
            from porter.report.verdict import styled, table

            output.text(table(verdict), lambda: styled(verdict))
    if found.no_verdict:
        output.error(found.no_verdict, "no verdict")
