"""The coverage of a fork as a table in Markdown, and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from porter.plan.routes import Route
from porter.report.console import printable
from porter.report.results import Provenance

PORTED, NATIVE, LIBRARY = "PASS", "native", "library call"
RULE = (
    "A row is elementwise if it takes a tensor, and its meta function, or the function that serves the CPU, itself or "
    "through a helper, builds a TensorIterator that writes one element for each element of its operands: of one shape, "
    "whole rather than in slices, and with their own strides. Rows that are native Metal already are counted apart."
)


@dataclass(frozen=True)
class CoverageRow:
    """A row, the file with its old code, and its outcome; a code and a reason unless it passed.

    The reason of one that passed is what failed before and after. `port` is the route of a row that builds a graph.
    """

    name: str
    base: str
    family: str
    outcome: str
    code: str
    reason: str
    port: str = ""


@dataclass(frozen=True)
class Coverage:
    """The elementwise rows of a fork, and `others` that build graphs.

    `digest` is the fork's, and `made_by` what made the results that outcomes are of; None without results.
    """

    fork: str
    digest: str
    made_by: Provenance | None
    rows: tuple[CoverageRow, ...]
    others: tuple[CoverageRow, ...] = ()

    @property
    def old(self) -> tuple[CoverageRow, ...]:
        """The rows that are not native."""
        return tuple(row for row in self.rows if row.outcome != NATIVE)

    @property
    def ported(self) -> tuple[CoverageRow, ...]:
        """The rows whose port passed its verdict."""
        return tuple(row for row in self.rows if row.outcome == PORTED)

    @property
    def families(self) -> tuple[str, ...]:
        """The families of rows that are not native, sorted."""
        return tuple(sorted({row.family for row in self.old}))


def _list_others(found: Coverage) -> Iterator[str]:
    """The counts of rows that are not elementwise, and each that is left with its reason."""
    kernels = [row for row in found.others if row.outcome != LIBRARY]
    ported = [row for row in kernels if row.outcome == PORTED]
    yield from ("", "## Rows that are not elementwise", "")
    yield f"{share(ported, kernels)} of the other rows that build graphs have a complete port with a passing verdict."
    yield f"{len(found.others) - len(kernels)} more call a library, which stays: matrix products and the like."
    yield from _list_left([row for row in kernels if row.outcome != PORTED])
    yield from ("", "Ported: " + (", ".join(f"`{row.name}`" for row in ported) or "none") + ".")
    library = ", ".join(f"`{row.name}`" for row in found.others if row.outcome == LIBRARY)
    yield from ("", f"Library calls: {library or 'none'}.")


def _list_left(rows: Sequence[CoverageRow]) -> Iterator[str]:
    """A table of rows without a port, if there are any."""
    if rows:
        yield from ("", "| row | outcome | code | reason |", "| --- | --- | --- | --- |")
        yield from (f"| `{row.name}` | {row.outcome} | {row.code} | {_cell(row.reason)} |" for row in rows)


def _list_routes(found: Coverage) -> Iterator[str]:
    """How many rows that build graphs are ported in which way, and what came of them."""
    rows = [row for row in (*found.rows, *found.others) if row.port]
    if not rows:
        return
    yield from ("", "## How rows are ported", "")
    what = "[what `porter migrate` does with them](json.md#porter-status---json)"
    yield f"The {len(rows)} rows that build graphs, by {what}."
    yield from ("", "| how | rows | passed | left |", "| --- | --- | --- | --- |")
    for route in Route:
        passed = [row.outcome == PORTED for row in rows if row.port == route.value]
        yield f"| {route.value} | {len(passed)} | {sum(passed)} | {len(passed) - sum(passed)} |"


def share(ported: Sequence[object], of: Sequence[object]) -> str:
    """`12 of 16 (75%)`."""
    return f"{len(ported)} of {len(of)} ({100 * len(ported) / len(of):.0f}%)" if of else "0 of 0"


def coverage_text(found: Coverage, command: str) -> str:
    """The page in Markdown: the rule, the counts, a table by family, and each row that is left with its reason."""
    return "\n".join(_lines(found, command)) + "\n"


def _lines(found: Coverage, command: str) -> Iterator[str]:
    yield from ("# Coverage", "", f"Made by `{command}`.", "", describe_origin(found), "", RULE, "")
    yield from coverage_summary(found)
    yield from ("", "| family | rows | passed | left |", "| --- | --- | --- | --- |")
    for family in found.families:
        rows = [row for row in found.old if row.family == family]
        passed = sum(row.outcome == PORTED for row in rows)
        yield f"| {family} | {len(rows)} | {passed} | {len(rows) - passed} |"
    left = [row for row in found.old if row.outcome != PORTED]
    yield from ("", "## What is left", "")
    counts = Counter(row.code for row in left)
    yield ", ".join(f"{code}: {count}" for code, count in sorted(counts.items())) or "Nothing."
    yield from _list_left(left)
    yield from ("", "## What passed", "")
    yield ", ".join(f"`{row.name}`" for row in found.ported) or "Nothing."
    if found.others:
        yield from _list_others(found)
    yield from _list_routes(found)
    # What the fork failed before ports that passed, and fails still
    older = [row for row in (*found.rows, *found.others) if row.outcome == PORTED and row.reason]
    if older:
        yield from ("", "## Findings about the fork", "")
        yield "Tests that failed before the port and after, for the same reasons, in nothing that a kernel computed."
        yield from ("", "| row | tests |", "| --- | --- |")
        yield from (f"| `{row.name}` | {_cell(row.reason)} |" for row in older)


def describe_origin(found: Coverage) -> str:
    """Which fork the rows are of, and what made the results, in one line."""
    fork = f"the fork {printable(found.fork)} (digest {found.digest})"
    made_by = printable(str(found.made_by)) if found.made_by else "no results"
    return f"From {made_by}, on {fork}."


def coverage_summary(found: Coverage) -> tuple[str, ...]:
    """The counts, in two lines."""
    what = "of the elementwise rows have a complete port with a passing verdict on `host`."
    return f"{share(found.ported, found.old)} {what}", f"{len(found.rows) - len(found.old)} more are native already."


def coverage_object(found: Coverage) -> dict[str, Any]:
    """The counts and the rows."""
    counts = Counter(row.outcome for row in found.rows)
    rows, others = ([asdict(row) for row in each] for each in (found.rows, found.others))
    made_by = asdict(found.made_by) if found.made_by else None
    return {
        "fork": found.fork,
        "digest": found.digest,
        "made_by": made_by,
        "counts": dict(counts),
        "rows": rows,
        "others": others,
    }


def _cell(text: str) -> str:
    return printable(text.splitlines()[0] if text else "").replace("|", "\\|")
