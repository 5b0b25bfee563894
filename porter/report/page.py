"""Results as one self-contained HTML page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from porter.report.console import printable, show_ulp
from porter.report.coverage import LIBRARY, PORTED, Coverage, CoverageRow, describe_origin, share
from porter.report.results import FAIL, OUTCOMES, PASS, OperatorResult, Results
from porter.report.verdict import describe_backend
from porter.verdict.result import DTypeVerdict, Verdict

_WIDEST = 150.0  # of a bar
_MOST_ULP = 1e4  # what the widest bar stands for


@dataclass(frozen=True)
class FamilyPart:
    """A row of the table of families."""

    name: str
    rows: int
    passed: int

    @property
    def percent(self) -> int:
        return round(100 * self.passed / self.rows)


@dataclass(frozen=True)
class DTypeRow:
    """A row of the table of an operator: the counts of one dtype, as shown."""

    dtype: str
    passed: int
    failed: int
    calls: int
    ulp: str
    cpu_ulp: str
    old: str
    new: str
    seconds: str


@dataclass(frozen=True)
class Bar:
    """The largest errors of one dtype, of the kernel and of ATen's CPU kernel, and how wide their bars are."""

    dtype: str
    ulp: str
    cpu_ulp: str
    width: float
    cpu_width: float


@dataclass(frozen=True)
class OperatorPart:
    """What the page has of an operator."""

    op: str
    outcome: str
    style: str
    summary: str
    code: str
    reason: str
    dtypes: tuple[DTypeRow, ...]
    bars: tuple[Bar, ...]
    changes: tuple[str, ...]


@dataclass(frozen=True)
class BackendPart:
    """A backend that verdicts of the page ran on, and what that means."""

    name: str
    meaning: str


@dataclass(frozen=True)
class Page:
    """What the template shows: of rows and families, only what was run."""

    fork: str
    origin: str
    date: str
    total: str
    backends: tuple[BackendPart, ...]
    families: tuple[FamilyPart, ...]
    operators: tuple[OperatorPart, ...]
    left: tuple[CoverageRow, ...]


def page_html(results: Results, coverage: Coverage) -> str:
    """The page: everything is inside, so that it can be sent as a file."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("porter.report", "templates")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True, finalize=_show
    )
    return environment.get_template("page.html.jinja").render(page=make_page(results, coverage))


def _show(value: object) -> object:
    """What stands on the page for a value: a browser obeys some control characters too, such as those of direction."""
    return printable(value) if isinstance(value, str) else value


def make_page(results: Results, coverage: Coverage) -> Page:
    """Arranges results: operators by outcome, those with a failure first."""
    order = (FAIL, *(each for each in OUTCOMES if each != FAIL))
    operators = sorted(results.operators, key=lambda each: (order.index(each.outcome), each.op))
    named = {each.op for each in results.operators}
    graphs = [row for row in (*coverage.old, *coverage.others) if row.outcome != LIBRARY]
    rows = [row for row in graphs if row.base in named]
    ported = [row for row in rows if row.outcome == PORTED]
    more = f" Not run: {len(graphs) - len(rows)} of the fork's rows that build graphs." if rows != graphs else ""
    total = f"{share(ported, rows)} rows have a port that passed; {results_line(results)}.{more}"
    return Page(
        results.fork,
        describe_origin(coverage),
        results.date,
        total,
        tuple(_list_backends(results)),
        tuple(_list_families(rows)),
        tuple(map(_make_part, operators)),
        tuple(row for row in rows if row.outcome != PORTED),
    )


def _list_backends(results: Results) -> Iterator[BackendPart]:
    names = (each.verdict.backend for each in results.operators if each.verdict)
    for name in dict.fromkeys(names):
        yield BackendPart(name, describe_backend(name).replace("`", ""))


def results_line(results: Results) -> str:
    """The number of operators by outcome."""
    counts = {name: sum(each.outcome == name for each in results.operators) for name in OUTCOMES}
    shown = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    return f"{len(results.operators)} operators: {shown or 'none'}"


def _list_families(rows: Sequence[CoverageRow]) -> Iterator[FamilyPart]:
    for name in sorted({row.family for row in rows}):
        passed = [row.outcome == PORTED for row in rows if row.family == name]
        yield FamilyPart(name, len(passed), sum(passed))


def _make_part(found: OperatorResult) -> OperatorPart:
    verdict = found.verdict
    style = found.outcome if found.outcome in (PASS, FAIL) else "left"
    rows = tuple(_make_row(verdict, each) for each in verdict.dtypes) if verdict else ()
    bars = tuple(_list_bars(verdict.dtypes)) if verdict else ()
    changes = verdict.old_path.changes if verdict and verdict.old_path else ()
    return OperatorPart(
        found.op,
        found.outcome,
        style,
        _summarize(verdict),
        found.code,
        found.reason,
        rows,
        bars,
        changes,
    )


def _summarize(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    tests = f"{verdict.passed} passed, {verdict.failed} failed"
    return f"{tests}, {verdict.kernel_calls} kernel calls, {verdict.seconds:.1f} s, {verdict.where}"


def _make_row(verdict: Verdict, found: DTypeVerdict) -> DTypeRow:
    counts = {each.dtype: each for each in verdict.old_path.counts} if verdict.old_path else {}
    count = counts.get(found.dtype)
    paths = (f"{count.old}/{count.samples}", f"{count.new}/{count.samples}") if count else ("", "")
    return DTypeRow(
        found.dtype,
        found.passed,
        found.failed,
        found.kernel_calls,
        show_ulp(found.max_ulp),
        show_ulp(found.cpu_ulp),
        *paths,
        f"{found.seconds:.1f}",
    )


def _list_bars(rows: Sequence[DTypeVerdict]) -> Iterator[Bar]:
    for row in rows:
        if row.max_ulp is not None:
            both = (show_ulp(row.max_ulp), show_ulp(row.cpu_ulp))
            yield Bar(row.dtype, *both, _scale(row.max_ulp), _scale(row.cpu_ulp or 0.0))


def _scale(ulp: float) -> float:
    """The width of a bar, by the logarithm: an error of half a unit shows, and one of thousands fits."""
    bounded = min(max(ulp, 0.0), _MOST_ULP)
    return round(_WIDEST * math.log1p(bounded) / math.log1p(_MOST_ULP), 1)
