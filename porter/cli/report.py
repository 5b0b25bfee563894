"""`porter report`."""

from __future__ import annotations

from pathlib import Path

import click

from porter.cli.options import command
from porter.cli.output import DONE, INCOMPLETE, Output


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
    if output.json:
        output.object({**coverage_object(coverage), "operators": {each.op: each.outcome for each in found.operators}})
    else:
        left = [f"  {each.op}: {each.outcome}: {each.code} {each.reason}" for each in found.operators if each.code]
        output.text("\n".join([results_line(found), *left, *coverage_summary(coverage)]))
    return DONE if all(each.outcome in (PASS, NOT_PLANNED) for each in found.operators) else INCOMPLETE
