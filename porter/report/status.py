"""The operators of a fork as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from porter.report.escaping import printable

if TYPE_CHECKING:
    from rich.table import Table

HEADINGS = ("operator", "rows", "written in", "read from", "port")
PORTABLE = "portable"


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


@dataclass(frozen=True)
class Reason:
    """Why a row cannot be ported."""

    code: str
    what: str

    def __str__(self) -> str:
        return f"{self.code} {self.what}"


@dataclass(frozen=True)
class RowStatus:
    """One row: its state, why it cannot be ported (None if it can), and the available readings of an MPSGraph
    implementation.
    """

    name: str
    kernel: str
    state: State
    reason: Reason | None
    reading: str = ""

    @property
    def portable(self) -> bool:
        """Whether nothing known prevents a port."""
        return self.reason is None

    @property
    def blocked(self) -> bool:
        """Whether it is on MPSGraph and something holds it back."""
        return self.state.builds_graph and not self.portable

    def as_object(self) -> dict[str, str]:
        return {
            "name": self.name,
            "kernel": self.kernel,
            "class": self.state.value,
            "reason": str(self.reason) if self.reason else "",
            "reading": self.reading,
        }


@dataclass(frozen=True)
class OperatorStatus:
    """The rows of one base name that have an MPS implementation."""

    name: str
    rows: tuple[RowStatus, ...]

    @property
    def portable(self) -> bool:
        """Whether any row can be ported."""
        return any(row.portable for row in self.rows)

    @property
    def blocked(self) -> bool:
        """Whether any row is blocked."""
        return any(row.blocked for row in self.rows)

    @property
    def states(self) -> tuple[State, ...]:
        return tuple(state for state in State if any(row.state is state for row in self.rows))

    @property
    def port(self) -> str:
        """`portable`, or the reason it is not, and for how many rows if not all."""
        left = [row for row in self.rows if (row.blocked if self.portable or self.blocked else not row.portable)]
        if not left:
            return PORTABLE
        reason = str(left[0].reason)
        some = f"{len(left)} of {len(self.rows)} rows: " if len(left) < len(self.rows) else ""
        return f"{PORTABLE}, but {some}{reason}" if self.portable else f"{some}{reason}"

    def as_object(self) -> dict[str, Any]:
        return {"name": self.name, "rows": [row.name for row in self.rows], "portable": self.portable}


def status_object(operators: Sequence[OperatorStatus]) -> dict[str, Any]:
    """Counts, rows and operators, with the keys of docs/json.md."""
    rows = [row.as_object() for operator in operators for row in operator.rows]
    return {"counts": counts(operators), "rows": rows, "operators": [each.as_object() for each in operators]}


def counts(operators: Sequence[OperatorStatus]) -> dict[str, int]:
    """The number of rows in each state."""
    found = Counter(row.state for operator in operators for row in operator.rows)
    return {state.value: found[state] for state in State}


def status_lines(operators: Sequence[OperatorStatus]) -> Iterator[str]:
    """The table as plain text, then the counts."""
    cells = [HEADINGS, *map(_cells, operators)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(HEADINGS) - 1)]
    for row in cells:
        fixed = (cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        yield "  ".join((*fixed, row[-1])).rstrip()
    yield from count_lines(operators)


def count_lines(operators: Sequence[OperatorStatus]) -> Iterator[str]:
    """Two lines of counts: operators, and rows by state."""
    able, held = sum(each.portable for each in operators), sum(each.blocked for each in operators)
    yield f"{len(operators)} operators: {able} portable, {held} blocked"
    yield ", ".join(f"{name}: {count}" for name, count in counts(operators).items())


def style_status(operators: Sequence[OperatorStatus]) -> Table:
    """The table for a terminal."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0), caption_justify="left")
    table.caption, table.caption_style = "\n".join(count_lines(operators)), "bold"
    for heading in HEADINGS:
        table.add_column(heading, overflow="fold", no_wrap=heading in HEADINGS[:2])
    for operator in operators:
        *first, port = _cells(operator)
        style = "green" if port == PORTABLE else "yellow" if operator.portable else "red" if operator.blocked else "dim"
        table.add_row(*first, Text(port, style))
    return table


def _cells(operator: OperatorStatus) -> tuple[str, ...]:
    readings = dict.fromkeys(row.reading for row in operator.rows if row.reading)
    states = ", ".join(state.value for state in operator.states)
    cells = (operator.name, str(len(operator.rows)), states, ", ".join(readings), operator.port)
    return tuple(printable(cell) for cell in cells)
