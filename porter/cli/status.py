"""`porter status`, `porter explain` and `porter report`: what a fork has, and what is left."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from porter.cli.options import command, complete_operator
from porter.cli.output import DONE, INCOMPLETE, Output

if TYPE_CHECKING:
    from rich.console import RenderableType

_CODE = re.compile(r"PTR\d+")


@command(
    "status",
    ("porter status --portable", "what can be ported"),
    ("porter status 'log*' --blocked", "logarithms that stay on MPSGraph, and why"),
    ("porter status --missing", "what MPS lacks, and what each would take"),
    ("porter status --since main", "what became native, went back, appeared or changed"),
    ("porter status --json | jq .counts", "as JSON"),
)
@click.argument("patterns", metavar="[PATTERN...]", nargs=-1, shell_complete=complete_operator)
@click.option("--portable", is_flag=True, help="Only operators with a row on MPSGraph that porter would port.")
@click.option("--blocked", is_flag=True, help="Only operators with a row on MPSGraph that stays.")
@click.option("--missing", is_flag=True, help="List the operators that MPS lacks instead, and the work each needs.")
@click.option("--since", metavar="COMMIT|DIR", help="List the rows that are others than in a commit or a checkout.")
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
    since: str | None,
    coverage: bool,
    results: tuple[Path, ...],
) -> int:
    """List the operators with an MPS implementation.

    Shows, for each operator, what its code is written in, how an MPSGraph implementation can be read, and how porter
    would port it (a shared row, an own row, an own row from runs) or why not: a library computes it, or an error code
    (`porter explain CODE` says more) and the reason. Runs no code of the checkout. PATTERN is a shell pattern: 'log*'.
    """
    if since is not None:
        others = {"--portable": portable, "--blocked": blocked, "--missing": missing, "--coverage": coverage}
        if named := [option for option, is_set in others.items() if is_set]:
            raise click.UsageError(f"--since cannot be combined with {named[0]}.")
        return _show_since(output, since, patterns)
    if missing:
        return _show_missing(output, patterns)
    from porter.report.status import status_lines, status_object, style_status
    from porter.workflows.status import Filters
    from porter.workflows.status import status as run

    if coverage:
        return _show_coverage(output, results)
    found = run(output.open_checkout(), Filters(patterns, portable, blocked))
    output.show(status_object(found), status_lines(found), lambda: style_status(found))
    return DONE


def _show_since(output: Output, named: str, patterns: tuple[str, ...]) -> int:
    from porter.report.status import since_lines, since_object
    from porter.workflows.since import find_since

    since = find_since(output.open_checkout(), named, patterns, output.report_progress)
    output.show(since_object(since), since_lines(since))
    return DONE


def _show_missing(output: Output, patterns: tuple[str, ...]) -> int:
    from porter.report.status import missing_lines, missing_object
    from porter.workflows.status import missing

    found = missing(output.open_checkout(), patterns)
    output.show(missing_object(found), missing_lines(found))
    return DONE


def _show_coverage(output: Output, results: tuple[Path, ...]) -> int:
    from porter.report.coverage import coverage_object, coverage_text
    from porter.workflows.coverage import find_coverage
    from porter.workflows.results import no_results, read_results

    checkout = output.open_checkout()
    found = find_coverage(checkout, read_results(results) if results else no_results(checkout))
    output.show(coverage_object(found), coverage_text(found, "porter status --coverage --results FILE").rstrip("\n"))
    return DONE


@command(
    "explain",
    ("porter explain atan2", "what the old code computes and where it moves"),
    ("porter explain atan2 --no-record", "the same, from the source only"),
    ("porter explain trace --cost", "also what the fused kernels read and write"),
    ("porter explain PTR076", "the page of an error code"),
)
@click.argument("op", metavar="OP", shell_complete=complete_operator)
@click.option("--no-record", is_flag=True, help="Only read the source; run nothing.")
@click.option("--macos", default="", metavar="VERSION", help="Run the old code as on this macOS version, such as 15.0.")
@click.option("--cost", is_flag=True, help="Count the bytes that the fused kernels read and write.")
def explain(output: Output, op: str, no_record: bool, macos: str, cost: bool) -> int:
    """Show each stage of the port of one operator, and its source.

    OP may also be the code of an error, PTR012: then shows its page.
    """
    from porter.report.status import stage_text, style_stage
    from porter.workflows.explain import explain as run

    if _CODE.fullmatch(op):
        return _show_error_page(output, op)
    stages = run(output.open_checkout(), op, not no_record, macos, cost, output.report_progress)
    if output.json:
        output.object({"op": op, "stages": [stage.as_object() for stage in stages]})
        return DONE
    for stage in stages:
        output.text(stage_text(stage), partial(style_stage, stage))
    return DONE


def _show_error_page(output: Output, code: str) -> int:
    from porter.workflows.explain import read_error_page

    page = read_error_page(code)

    def render() -> RenderableType:
        from rich.markdown import Markdown

        return Markdown(page)

    output.show({"code": code, "page": page}, page.rstrip("\n"), render)
    return DONE


@command(
    "report",
    ("porter report results.json", "counts, and what is left"),
    ("porter report shard-*.json --merged all.json", "one file of the results of all shares"),
    ("porter report shard-*.json --html report.html", "one page for a browser"),
)
@click.argument("results", metavar="RESULTS...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write a self-contained page.")
@click.option("--merged", type=click.Path(path_type=Path), metavar="FILE", help="Write the merged results.")
def report(output: Output, results: tuple[Path, ...], html: Path | None, merged: Path | None) -> int:
    """Merge files of results and report on the fork.

    RESULTS are files that `--results` of `porter migrate --all` and `porter verify --all` wrote, one per share.
    """
    from porter.report.coverage import coverage_object, coverage_summary
    from porter.report.page import page_html, results_line
    from porter.report.results import NOT_PLANNED, PASS
    from porter.workflows.coverage import find_coverage
    from porter.workflows.results import read_results, write_file, write_results

    found = read_results(results)
    coverage = find_coverage(output.open_checkout(), found)
    output.note("these are the files' own words: `porter verify` proves what a file from somebody else says")
    if merged:
        write_results(merged, found)
    if html:
        write_file(html, page_html(found, coverage))
    record = {**coverage_object(coverage), "operators": {operator.op: operator.outcome for operator in found.operators}}
    coded = (operator for operator in found.operators if operator.code)
    refused = [f"  {operator.op}: {operator.outcome}: {operator.code} {operator.reason}" for operator in coded]
    output.show(record, (results_line(found), *refused, *coverage_summary(coverage)))
    return DONE if all(each.outcome in (PASS, NOT_PLANNED) for each in found.operators) else INCOMPLETE
