"""Puts what came of the operators of one more tree on a page that `porter status --coverage` printed, as a table.

    python tools/coverage_page.py [--about TEXT] PAGE TITLE TREE RESULTS...

The table has each operator of TREE that builds a graph, and is in a section called TITLE: what the section holds before
its first heading is replaced, the rest stays. A line below the page's heading names the section. RESULTS are files of
`porter migrate --results` on TREE with one torch, and of any commits of porter: the last that names an operator counts.
This porter counts the operators and says why some have no plan. TEXT says what the tree is made of, which no file of
it does; without it the section's first paragraph stays.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.report.console import printable
from porter.report.coverage import LIBRARY, Coverage, describe_origin
from porter.report.results import FAIL, NOT_PLANNED, OUTCOMES, PASS, OperatorResult, Results
from porter.workflows.coverage import find_coverage
from porter.workflows.results import no_results, read_provenance, read_results
from shared.arguments import parser

_ALSO = "Also on this page: "
_COMMAND = "python tools/coverage_page.py PAGE TITLE TREE RESULTS"
_COMMITS = "This commit counted them; a verdict is by the commit of porter in its row, shortened."
_NOT_ASKED = "not asked"
_SAID = {PASS: "passed", FAIL: "failed"}
_SHORT = 8  # hexadecimal digits of a commit


@dataclass(frozen=True)
class Line:
    """An operator of the table: how many tests passed, if any ran, and the commit of porter that asked."""

    op: str
    outcome: str
    tests: int | None = None
    why: str = ""
    commit: str = ""


def list_lines(coverage: Coverage, files: Sequence[Results]) -> tuple[Line, ...]:
    """What came of every operator that builds a graph, in order of names. `coverage` is the tree's without results."""
    asked = {result.op: (result, file.made_by.commit) for file in files for result in file.operators}
    graphs: dict[str, Line] = {}
    for row in (*coverage.rows, *coverage.others):
        if not row.port:
            continue
        refused = row.outcome in (NOT_PLANNED, LIBRARY)
        line = Line(row.base, row.outcome, why=f"{row.code} {row.reason}".strip()) if refused else None
        earlier = graphs.get(row.base)
        if earlier is None or earlier.outcome in (NOT_PLANNED, LIBRARY):
            graphs[row.base] = line or Line(row.base, _NOT_ASKED)
    graphs |= {op: _describe(*asked[op]) for op in graphs if op in asked}
    return tuple(graphs[op] for op in sorted(graphs))


def _describe(result: OperatorResult, commit: str) -> Line:
    tests = result.verdict.passed if result.verdict else None
    why = printable(f"{result.code} {result.reason}".strip().splitlines()[0] if result.reason else result.code)
    return Line(result.op, result.outcome, tests, why, commit[:_SHORT])


def table_text(lines: Sequence[Line], origin: str) -> str:
    """The section in Markdown: which porter counted, the counts, and a line for each operator that has one."""
    return "\n".join(_write(lines, origin)) + "\n"


def _write(lines: Sequence[Line], origin: str) -> Iterator[str]:
    counts = Counter(line.outcome for line in lines)
    order = (*OUTCOMES, LIBRARY, _NOT_ASKED)
    said = ", ".join(f"{_SAID.get(outcome, outcome)} {counts[outcome]}" for outcome in order if counts[outcome])
    yield from (f"Made by `{_COMMAND}`.", "", origin, "")
    yield f"{len(lines)} operators build graphs: {said or 'none'}. {_COMMITS}"
    yield from ("", "| operator | tests passed | outcome | code and reason | commit |")
    yield "| --- | --- | --- | --- | --- |"
    for line in lines:
        if line.outcome != _NOT_ASKED:
            tests = "" if line.tests is None else str(line.tests)
            why = line.why.replace("|", "\\|")
            yield f"| `{line.op}` | {tests} | {_SAID.get(line.outcome, line.outcome)} | {why} | {line.commit} |"
    rest = ", ".join(f"`{line.op}`" for line in lines if line.outcome == _NOT_ASKED)
    yield from ("", f"Not asked for a verdict: {rest or 'none'}.")


def require_alike(files: Sequence[Results]) -> None:
    """Raises PTR328 for results of different trees or torches."""
    first = files[0]
    for file in files[1:]:
        if (file.digest, file.made_by.torch) != (first.digest, first.made_by.torch):
            what = f"results of {first.fork} and of {file.fork}, of two trees, of two states of one, or of two torches"
            raise PorterError("PTR328", what, hint="Give the results of one tree and one torch.")


def describe_count(coverage: Coverage, results: Results) -> str:
    """Which porter counted the operators, that is this one: results may be of earlier ones, on the same tree."""
    made_by = replace(read_provenance(), torch=results.made_by.torch)
    return describe_origin(replace(coverage, fork=results.fork, digest=results.digest, made_by=made_by))


def put_section(page: str, title: str, table: str, about: str = "") -> str:
    """The page with a table in its section `title`, which is its last if it is new."""
    match = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^##|\Z)", page, flags=re.MULTILINE | re.DOTALL)
    stood = match[1].strip().split("\n\n")[0] if match else ""
    section = f"## {title}\n\n{about or stood}\n\n{table}" if about or stood else f"## {title}\n\n{table}"
    if match:
        after = page[match.end() :]
        page = page[: match.start()] + section + (f"\n{after}" if after else "")
        return _name_section(page, title)
    return f"{_name_section(page, title).rstrip()}\n\n{section}"


def _name_section(page: str, title: str) -> str:
    anchor = re.sub(r"[^\w-]", "", title.lower().replace(" ", "-"))
    link = f"[{title}](#{anchor})"
    if link in page:
        return page
    heading, _, rest = page.partition("\n\n")
    if rest.startswith(_ALSO):
        line, _, rest = rest.partition("\n\n")
        return f"{heading}\n\n{line.removesuffix('.')}, {link}.\n\n{rest}"
    return f"{heading}\n\n{_ALSO}{link}.\n\n{rest}"


def main() -> int:
    options = parser(__doc__)
    options.add_argument("page", type=Path, help="the Markdown file to write")
    options.add_argument("title", help="what the section is called")
    options.add_argument("tree", type=Path, help="the root of the tree that the results are of")
    options.add_argument("results", type=Path, nargs="+", help="files of results")
    options.add_argument("--about", default="", metavar="TEXT", help="a paragraph below the section's heading")
    chosen = options.parse_args()
    try:
        files = [read_results([path]) for path in chosen.results]
        require_alike(files)
        checkout = Checkout(chosen.tree, "named")
        coverage = find_coverage(checkout, no_results(checkout))
    except PorterError as error:
        sys.exit(f"{error.place or ''} {error.code} {error.what}")
    table = table_text(list_lines(coverage, files), describe_count(coverage, files[-1]))
    chosen.page.write_text(put_section(chosen.page.read_text(), chosen.title, table, chosen.about))
    return 0


if __name__ == "__main__":
    sys.exit(main())
