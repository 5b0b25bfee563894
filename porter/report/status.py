"""The operators of a fork as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from porter.plan.routes import Route
from porter.report.console import align, printable

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


HEADINGS = ("operator", "rows", "written in", "read from", "port")
RUNS_NOTHING = f"{Route.RUNS.value}: what `porter migrate` tries; `porter status` runs no code, to know if it succeeds"


class State(Enum):
    """What the MPS code of a row is written in."""

    MPSGRAPH = "MPSGraph"
    STUB = "native through a stub"
    METAL = "other Metal"
    OTHER = "other"
    MIXED = "mixed"
    UNKNOWN = "unknown"

    @property
    def builds_graph(self) -> bool:
        return self in (State.MPSGRAPH, State.MIXED)


class Extent(Enum):
    """How many of the rows of an operator that build graphs are ported."""

    ALL = "portable"
    SOME = "portable in part"
    NONE = "blocked"
    NO_GRAPH = "without a graph"


@dataclass(frozen=True)
class Reason:
    """Why a row is not ported, or why no stub serves it."""

    code: str
    what: str

    def __str__(self) -> str:
        return f"{self.code} {self.what}"


@dataclass(frozen=True)
class RowStatus:
    """One row: its state, how it would be ported, and the available readings of an MPSGraph implementation.

    `reason` says why it is not ported; of a row that is ported from runs, why no stub serves it. It is None for a row
    with the kernel of a stub.
    """

    name: str
    kernel: str
    state: State
    route: Route
    reason: Reason | None
    reading: str = ""

    def __post_init__(self) -> None:
        if self.reason is None and self.route not in (Route.SHARED, Route.OWN):
            raise ValueError("a row that no stub serves has a reason")

    @property
    def portable(self) -> bool:
        """Whether porter would write kernels for it."""
        return self.route.is_port

    @property
    def blocked(self) -> bool:
        """Whether it is on MPSGraph and stays."""
        return self.state.builds_graph and not self.portable

    @property
    def port(self) -> str:
        """The route, with why a row stays."""
        if self.route.is_port:
            return self.route.value
        return f"{self.route.value}: {self.reason}" if self.route is Route.LIBRARY else str(self.reason)

    def as_object(self) -> dict[str, str]:
        reason = str(self.reason) if self.reason else ""
        return {
            "name": self.name,
            "kernel": self.kernel,
            "class": self.state.value,
            "port": "" if self.route is Route.NONE else self.route.value,
            "reason": "" if self.portable else reason,
            "no_stub": reason if self.route is Route.RUNS else "",
            "reading": self.reading,
        }


@dataclass(frozen=True)
class OperatorStatus:
    """The rows of one base name that have an MPS implementation."""

    name: str
    rows: tuple[RowStatus, ...]

    @property
    def extent(self) -> Extent:
        old = [row.portable for row in self.rows if row.state.builds_graph]
        if not old:
            return Extent.NO_GRAPH
        return Extent.ALL if all(old) else Extent.SOME if any(old) else Extent.NONE

    @property
    def portable(self) -> bool:
        """Whether any row on MPSGraph is ported."""
        return self.extent in (Extent.ALL, Extent.SOME)

    @property
    def blocked(self) -> bool:
        """Whether any row on MPSGraph stays."""
        return self.extent in (Extent.SOME, Extent.NONE)

    @property
    def states(self) -> tuple[State, ...]:
        return tuple(state for state in State if any(row.state is state for row in self.rows))

    @property
    def port(self) -> str:
        """How the rows on MPSGraph are ported or why they stay, and how many if not all; of others, why there is none.

        Rows of one route share a reason, that of the first.
        """
        shown = [row for row in self.rows if row.state.builds_graph or self.extent is Extent.NO_GRAPH]
        by_route = {route: [row for row in shown if row.route is route] for route in Route}
        return "; ".join(self._describe(rows) for rows in by_route.values() if rows)

    def _describe(self, rows: Sequence[RowStatus]) -> str:
        is_all = len(rows) == len(self.rows) or self.extent is Extent.NO_GRAPH
        return rows[0].port if is_all else f"{len(rows)} of {len(self.rows)} rows: {rows[0].port}"

    def as_object(self) -> dict[str, Any]:
        return {"name": self.name, "rows": [row.name for row in self.rows], "portable": self.portable}


def status_object(operators: Sequence[OperatorStatus]) -> dict[str, Any]:
    """Counts, rows and operators, with the keys of docs/json.md."""
    rows = [row.as_object() for operator in operators for row in operator.rows]
    return {
        "counts": counts(operators),
        "ports": count_ports(operators),
        "rows": rows,
        "operators": [each.as_object() for each in operators],
    }


def counts(operators: Sequence[OperatorStatus]) -> dict[str, int]:
    """The number of rows in each state."""
    states = Counter(row.state for operator in operators for row in operator.rows)
    return {state.value: states[state] for state in State}


def count_ports(operators: Sequence[OperatorStatus]) -> dict[str, int]:
    """The number of rows that build graphs for each route."""
    routes = Counter(row.route for operator in operators for row in operator.rows if row.state.builds_graph)
    return {route.value: routes[route] for route in Route}


def status_lines(operators: Sequence[OperatorStatus]) -> Iterator[str]:
    """The table as plain text, then the counts."""
    yield from (line.rstrip() for line in align([HEADINGS, *map(_cells, operators)]))
    yield from count_lines(operators)


def count_lines(operators: Sequence[OperatorStatus]) -> Iterator[str]:
    """Counts that add up: operators by how many of their rows are ported, rows by state, old rows by route."""
    extents, states, routes = Counter(each.extent for each in operators), counts(operators), count_ports(operators)
    by_extent = ", ".join(f"{extents[extent]} {extent.value}" for extent in Extent)
    yield f"{len(operators)} operators: {by_extent}"
    yield f"{sum(states.values())} rows: {', '.join(f'{count} {name}' for name, count in states.items())}"
    by_route = ", ".join(f"{count} {name}" for name, count in routes.items())
    yield f"{sum(routes.values())} rows build graphs (MPSGraph or mixed): {by_route}"
    if routes[Route.RUNS.value]:
        yield RUNS_NOTHING


def style_status(operators: Sequence[OperatorStatus]) -> Table:
    """The table for a terminal."""
    from rich.table import Table
    from rich.text import Text

    styles = {Extent.ALL: "green", Extent.SOME: "yellow", Extent.NONE: "red", Extent.NO_GRAPH: "dim"}
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0), caption_justify="left")
    table.caption, table.caption_style = "\n".join(count_lines(operators)), "bold"
    for heading in HEADINGS:
        table.add_column(heading, overflow="fold", no_wrap=heading in HEADINGS[:2])
    for operator in operators:
        *first, port = _cells(operator)
        table.add_row(*first, Text(port, styles[operator.extent]))
    return table


def _cells(operator: OperatorStatus) -> tuple[str, ...]:
    readings = dict.fromkeys(row.reading for row in operator.rows if row.reading)
    states = ", ".join(state.value for state in operator.states)
    cells = (operator.name, str(len(operator.rows)), states, ", ".join(readings), operator.port)
    return tuple(printable(cell) for cell in cells)


@dataclass(frozen=True)
class Stage:
    """One stage: its title and its lines."""

    title: str
    lines: tuple[str, ...]

    def as_object(self) -> dict[str, Any]:
        return {"stage": self.title, "lines": list(self.lines)}


def stage_text(stage: Stage) -> str:
    """The title, then the lines, indented."""
    return printable("\n".join([stage.title, *(f"  {line}" for line in stage.lines)]), keep="\n\t")


def style_stage(stage: Stage) -> Text:
    """The same for a terminal."""
    from rich.text import Text

    title, line, rest = stage_text(stage).partition("\n")
    return Text.assemble((title, "bold"), line, rest)


_MISSING = ("operator", "family", "porter add")
ADDABLE = "can add it"


@dataclass(frozen=True)
class MissingOperator:
    """An operator that MPS lacks, the family of kernels that it needs, and why porter cannot add it; None if it can.

    `cause` is the reason without the name and the family.
    """

    name: str
    family: str
    reason: Reason | None
    cause: str = ""

    @property
    def addable(self) -> bool:
        """Whether nothing known prevents adding it."""
        return self.reason is None

    def as_object(self) -> dict[str, Any]:
        reason = str(self.reason) if self.reason else ""
        return {"name": self.name, "family": self.family, "addable": self.addable, "reason": reason}


def missing_object(operators: Sequence[MissingOperator]) -> dict[str, Any]:
    """The operators, with the keys of docs/json.md."""
    return {"missing": [each.as_object() for each in operators]}


def missing_lines(operators: Sequence[MissingOperator]) -> Iterator[str]:
    """The table, then the number of operators by family."""
    reasons = (printable(f"{each.reason.code} {each.cause}") if each.reason else ADDABLE for each in operators)
    cells = ((printable(each.name), each.family, why) for each, why in zip(operators, reasons, strict=True))
    yield from align([_MISSING, *cells])
    counted = Counter(each.family for each in operators)
    yield f"{len(operators)} operators: porter can add {sum(each.addable for each in operators)}"
    yield ", ".join(f"{family}: {count}" for family, count in counted.most_common())


# What became of rows on MPS since an earlier fork, as text and JSON.


class Fate(Enum):
    """What became of a row. The code of one that `CHANGED` is of the same kind, or neither kind is a graph's."""

    NATIVE = "became native"
    BACK = "went back to MPSGraph"
    APPEARED = "appeared"
    GONE = "gone"
    CHANGED = "changed"


@dataclass(frozen=True)
class RowFate:
    """A row, the operator of which it is, what became of it, its states (None: not on MPS), and what differs of it."""

    name: str
    base: str
    fate: Fate
    before: State | None
    now: State | None
    differs: tuple[str, ...]


@dataclass(frozen=True)
class Since:
    """The rows that are others than in the earlier fork, which `origin` names."""

    origin: str
    rows: tuple[RowFate, ...]


def since_lines(since: Since) -> Iterator[str]:
    """The rows of each fate, then how many there are of each."""
    width = max((len(row.name) for row in since.rows), default=0)
    for fate in Fate:
        rows = [row for row in since.rows if row.fate is fate]
        if rows:
            yield f"{fate.value}:"
        for row in rows:
            yield printable(f"  {row.name:<{width}}  {_describe(row)}")
    counts = Counter(row.fate for row in since.rows)
    yield f"since {printable(since.origin)}: {', '.join(f'{counts[fate]} {fate.value}' for fate in Fate)}"


def _describe(row: RowFate) -> str:
    states = [state.value for state in (row.before, row.now) if state]
    kinds = " -> ".join(dict.fromkeys(states))
    return f"{kinds}: {', '.join(row.differs)}" if row.fate is Fate.CHANGED and row.differs else kinds


def since_object(since: Since) -> dict[str, Any]:
    """The same as one JSON object, with the keys of docs/json.md."""
    counts = Counter(row.fate for row in since.rows)
    return {
        "since": since.origin,
        "counts": {fate.value: counts[fate] for fate in Fate},
        "rows": [
            {
                "name": row.name, "fate": row.fate.value, "before": row.before.value if row.before else "",
                "now": row.now.value if row.now else "", "differs": list(row.differs),
            }
            for row in since.rows
        ],
    }  # fmt: skip
