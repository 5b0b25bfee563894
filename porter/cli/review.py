"""`porter review` and `porter lint`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from porter.cli.options import Run, command, proof
from porter.cli.output import DONE, INCOMPLETE, Output

if TYPE_CHECKING:
    from porter.review.rule import Review
    from porter.verdict.result import Proof

_ADAPTER = "lintrunner"
FORMAT_NAMES = ("text", "github", _ADAPTER, "markdown", "sarif")


def _format(run: Run) -> Run:
    """Adds the option that chooses what prints the findings."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(FORMAT_NAMES),
        default=FORMAT_NAMES[0],
        metavar="|".join(FORMAT_NAMES),
        help="How findings are printed: for people, GitHub annotations, lintrunner, a comment in Markdown, or SARIF.",
    )(run)


@command(
    "review",
    ("porter review", "what changed since the last commit, and its verdicts"),
    ("porter review --no-verify", "the same without verdicts, in seconds"),
    ("porter review main --no-verify", "a branch, since it left main"),
    ("porter review main --no-verify --format github", "the same as annotations of a pull request"),
)
@click.argument("base", metavar="[BASE]", required=False)
@click.option("--no-verify", is_flag=True, help="Only read the change: compile and run nothing.")
@_format
@proof
def review(output: Output, base: str | None, no_verify: bool, form: str, proof: Proof) -> int:
    """Review a change to the MPS backend, whoever wrote it.

    Says which operators it touches and, by file and line, what reviewers ask about. BASE is a commit, a branch (its
    last commit shared with HEAD) or a folder; by default the last commit. Operators whose code it touches are built and
    tested, before the change and after it. Exits with 1 if a finding is an error. docs/review.md has the rules.
    """
    from porter.workflows.review import review as run
    from porter.workflows.review import verify_review

    checkout = output.open_checkout()
    reviewed = run(checkout, base, output.report_progress)
    if not no_verify:
        reviewed = verify_review(checkout, base, reviewed, proof, output.report_step)
    return _show(output, reviewed, form)


@command(
    "lint",
    ("porter lint", "every changed file"),
    ("porter lint --format lintrunner FILE", "as an adapter of lintrunner"),
)
@click.argument("paths", metavar="[FILE...]", nargs=-1)
@click.option("--base", metavar="COMMIT|DIR", help="The fork before the change. Default: the last commit.")
@_format
def lint(output: Output, paths: tuple[str, ...], base: str | None, form: str) -> int:
    """Check the lines that a change adds, in the files named or in all.

    The rules of `porter review` without what needs a verdict, for an editor, lintrunner and pre-commit.
    """
    from porter.workflows.review import find_paths
    from porter.workflows.review import lint as run

    checkout = output.open_checkout()
    return _show(output, run(checkout, base, find_paths(checkout, paths), output.report_progress), form)


def _show(output: Output, reviewed: Review, form: str) -> int:
    """Prints a review, and returns the exit code: 1 for an error, which lintrunner would take for a broken adapter."""
    from porter.report.review import FORMATS, review_object

    if output.json:
        output.object(review_object(reviewed))
    elif text := FORMATS[form](reviewed):
        output.text(text)
    return DONE if reviewed.ok or form == _ADAPTER else INCOMPLETE
