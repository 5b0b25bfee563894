"""Prints planned ports, for the commands that make them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from porter.cli.output import Output

if TYPE_CHECKING:
    from porter.workflows.migrate import PortedOperator


def show_port(output: Output, found: PortedOperator, alone: bool, pull_request: bool = False) -> None:
    """Prints a port: its diff and summary, or the text of a pull request, then its verdict. `alone` has no verdict."""
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
        print_summary = output.note if alone else output.text
        print_summary(summary(plan, rejected), lambda: style_summary(plan, rejected))
        if verdict:
            from porter.report.verdict import style_verdict, table

            output.text(table(verdict), lambda: style_verdict(verdict))
    if found.no_verdict:
        output.error(found.no_verdict, "no verdict")
