"""Prints planned ports, for the commands that make them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from porter.cli.output import Output
from porter.core.errors import PorterError

if TYPE_CHECKING:
    from porter.core.checkout import Checkout
    from porter.plan.helpers import HelperPlan
    from porter.workflows.commits import Committed
    from porter.workflows.migrate import NotPlanned, PortedOperator
    from porter.workflows.stacking import Grouping


def show_port(
    output: Output, found: PortedOperator, alone: bool, pull_request: bool = False, explained: bool = False
) -> None:
    """Prints a port: its diff and summary, or the text of a pull request, then its verdict. `alone` has no verdict.

    An `explained` diff says behind the `@@` of each hunk why it is there.
    """
    from porter.report import pull_request as markdown
    from porter.report.as_json import plan_object, verdict_object
    from porter.report.terminal import explain_hunks, style_summary, summary

    plan, verdict, rejected = found.plan, found.verdict, found.rejected
    if output.json:
        output.object(plan_object(plan, verdict_object(verdict) if verdict else None, rejected, found.doubt))
    elif pull_request:
        output.text(markdown.pull_request(plan, verdict, rejected))
    else:
        output.diff(doubt_line(found) + (explain_hunks(plan) if explained else plan.changes.diff()))
        print_summary = output.note if alone else output.text
        lost = verdict.old_path.lost if verdict and verdict.old_path else ()
        print_summary(summary(plan, rejected, lost), lambda: style_summary(plan, rejected, lost))
        if found.doubt:
            output.note(f"{plan.op}: {found.doubt}: `porter migrate {plan.op}` verifies it")
        if verdict:
            output.verdict(verdict)
    if found.no_verdict:
        output.error(found.no_verdict, "no verdict")
    if found.broken:
        what = f"{plan.op} is left out of what is written: with it the fork does not build: {found.broken}"
        output.error(PorterError("PTR325", what, hint=f"`porter verify {plan.op}` says more."))


def doubt_line(found: PortedOperator) -> str:
    """What stands above the diff of a plan that other candidates may replace: `git apply` skips it."""
    from porter.workflows.candidates import count_candidates

    if not found.doubt or count_candidates(found.plan) == 1:
        return ""
    return f"porter: {found.plan.op}: {found.doubt}\n"


def show_helpers(output: Output, found: HelperPlan, alone: bool) -> None:
    """Prints functions that are added to MetalShaderLibrary: their diff and a summary. `alone` has no verdict."""
    from porter.report.as_json import helpers_object

    if output.json:
        output.object(helpers_object(found))
        return
    output.diff(found.changes.diff())
    print_summary = output.note if alone else output.text
    print_summary(f"helpers of {found.op}\n  added    {', '.join(found.names)} ({', '.join(found.changes.files)})")


def show_outcomes(output: Output, ports: Sequence[PortedOperator | NotPlanned], alone: bool) -> None:
    """Prints what became of each of several operators. `alone` ports have no verdict, and only diffs go to stdout."""
    from porter.workflows.migrate import NotPlanned
    from porter.workflows.results import describe_outcome

    lines = [(port.op if isinstance(port, NotPlanned) else port.plan.op, describe_outcome(port)) for port in ports]
    show_lines(output, [f"{op}: {outcome}" for op, outcome in lines], alone)


def show_lines(output: Output, lines: Sequence[str], alone: bool = False) -> None:
    """Prints what became of each of several operators, a line for each; to stderr beside JSON and `alone` diffs."""
    if len(lines) > 1:
        print_lines = output.note if alone or output.json else output.text
        print_lines("\n  ".join(["what became of each:", *lines]))


def show_groups(output: Output, checkout: Checkout, ports: Sequence[PortedOperator], grouping: Grouping) -> None:
    """Prints a pull request for each group of ports."""
    from porter.report.pull_request import group_pull_request
    from porter.workflows.stacking import Measured, count_lines, find_family, group_ports

    def measure(port: PortedOperator) -> Measured:
        return Measured(find_family(checkout, port.plan.op), count_lines(port.plan))

    texts = [
        group_pull_request(found.family, found.lines, [(each.plan, each.verdict, each.rejected) for each in group])
        for found, group in group_ports([each for each in ports if not each.broken], measure, grouping)
    ]
    output.text("\n\n".join(texts))


def show_commits(output: Output, commits: Sequence[Committed]) -> None:
    """Prints a line or an object for each commit, and what a person does with them."""
    for commit in commits:
        if output.json:
            output.object(
                {
                    "commit": commit.commit,
                    "title": commit.title,
                    "operators": list(commit.ops),
                    "files": list(commit.files),
                }
            )
        else:
            files = "1 file" if len(commit.files) == 1 else f"{len(commit.files)} files"
            output.text(f"{commit.commit[:12]} {commit.title} ({files})")
    if commits:
        count = "1 commit" if len(commits) == 1 else f"{len(commits)} commits"
        output.note(
            f"{count}: `ghstack` makes a pull request of each; `git reset --keep HEAD~{len(commits)}` takes them back"
        )
