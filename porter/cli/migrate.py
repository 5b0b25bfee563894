"""`porter migrate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from porter.cli.options import command, expression, operators, proof, together
from porter.cli.output import DONE, INCOMPLETE, Output
from porter.core.errors import PorterError

if TYPE_CHECKING:
    from porter.core.checkout import Checkout
    from porter.workflows.migrate import PortedOperator
    from porter.workflows.shards import Shard


@command(
    "migrate",
    ("porter migrate atan2", "show the port and verify it"),
    ("porter migrate atan2 --no-verify > atan2.diff", "only the diff, for git apply"),
    ("porter migrate erf log1p --write", "port two operators and write both"),
    ("porter migrate --all --no-verify --json", "all plans as JSON"),
    ("porter migrate --all --shard 2/8", "one of eight shares, for CI"),
)
@operators(required=False)
@click.option("--all", "every", is_flag=True, help="Port every operator that porter can port.")
@click.option("--write", is_flag=True, help="Write the change set to the checkout.")
@click.option("--force", is_flag=True, help="Write even if a touched file has uncommitted changes.")
@click.option("--no-verify", is_flag=True, help="Only plan; do not verify.")
@click.option("--pull-request", is_flag=True, help="Print the text of a pull request instead of the diff.")
@together
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
    jobs: int | None,
    shard: Shard | None,
    results: Path | None,
    expr: str | None,
    backend: str,
    arithmetic: str,
    large: bool,
) -> int:
    """Plan, show and verify the port of one or more operators.

    OP is a base name or an overload in native_functions.yaml: atan2, atan2.out. Nothing is written without --write.
    """
    from porter.report.verdict import summary as line
    from porter.workflows.migrate import NotPlanned, PortedOperator, Request, Wrote
    from porter.workflows.migrate import migrate as run
    from porter.workflows.proof import Proof

    proof = None if no_verify else Proof(expr, backend, arithmetic, large)
    request = Request(ops, every, jobs or 0, shard, write, force, proof)
    checkout, code, kept = output.open_checkout(write), DONE, list[PortedOperator | NotPlanned]()
    for found in run(checkout, request, output.report_step, lambda verdict: output.note(line(verdict))):
        if not isinstance(found, Wrote):
            kept.append(found)
        match found:
            case PortedOperator():
                if not (pull_request and (every or len(ops) > 1)) or output.json:
                    _show(output, found, pull_request, no_verify)
                code = code if found.done else INCOMPLETE
            case NotPlanned(op, error):
                output.error(error, f"porter: {op}")
            case Wrote(files):
                output.note(f"wrote {len(files)} files; `porter undo` reverts them")
    if pull_request and (every or len(ops) > 1) and not output.json:
        _show_groups(output, checkout, [each for each in kept if isinstance(each, PortedOperator)])
    if results:
        from porter.workflows.results import collect, write_results

        write_results(results, collect(checkout, kept, shard))
    return code


def _show_groups(output: Output, checkout: Checkout, ports: Sequence[PortedOperator]) -> None:
    """Prints a pull request for each group of ports."""
    from porter.report.pull_request import group_pull_request
    from porter.workflows.grouping import Measured, group_ports
    from porter.workflows.results import count_lines, find_family

    def measure(port: PortedOperator) -> Measured:
        return Measured(find_family(checkout, port.plan.op), count_lines(port.plan))

    texts = [
        group_pull_request(found.family, found.lines, [(each.plan, each.verdict) for each in group])
        for found, group in group_ports([each for each in ports if not each.broken], measure)
    ]
    output.text("\n\n".join(texts))


def _show(output: Output, found: PortedOperator, pull_request: bool, no_verify: bool) -> None:
    from porter.report import pull_request as markdown
    from porter.report.as_json import plan_object, verdict_object
    from porter.report.terminal import style_diff, style_summary, summary

    plan, verdict, rejected = found.plan, found.verdict, found.rejected
    if output.json:
        output.object(plan_object(plan, verdict_object(verdict) if verdict else None, rejected))
    elif pull_request:
        output.text(markdown.pull_request(plan, verdict))
    else:
        diff = plan.changes.diff()
        output.diff(diff, lambda: style_diff(diff))
        print_summary = output.note if no_verify else output.text
        print_summary(summary(plan, rejected), lambda: style_summary(plan, rejected))
        if verdict:
            from porter.report.verdict import style_verdict, table

            output.text(table(verdict), lambda: style_verdict(verdict))
    if found.no_verdict:
        output.error(found.no_verdict, "no verdict")
    if found.broken:
        what = f"{plan.op} is left out of what is written: with it the fork does not build: {found.broken}"
        output.error(PorterError("PTR325", what, hint=f"`porter verify {plan.op}` says more."))
