"""Every operator with an MPS dispatch: what it is written in, and whether porter can port it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from porter.aten.implementations import Written
from porter.aten.native_functions import SHARING_KEYS, NativeFunctions
from porter.aten.operator import Held, Operator, Row, moves, mps_row
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.metal.kernel_spec import check_portable
from porter.recording.readings import which

_CLASSES = ("MPSGraph", "native through a stub", "other Metal", "other")


@dataclass(frozen=True)
class StatusRow:
    """One row: its class, and for an MPSGraph one what holds it back (empty when porter can try) and the readings that
    there are of its implementation.
    """

    name: str
    kernel: str
    written: str
    reason: str
    reading: str = ""

    def as_object(self) -> dict[str, str]:
        return {
            "name": self.name,
            "kernel": self.kernel,
            "class": self.written,
            "reason": self.reason,
            "reading": self.reading,
        }


def as_rows(checkout: Checkout) -> tuple[StatusRow, ...]:
    """Every row that MPS serves, in the file's order, without its readings."""
    functions = NativeFunctions.read(checkout)
    return tuple(_row(checkout, functions, row) for row in _served(checkout))


def with_readings(checkout: Checkout, rows: Sequence[StatusRow]) -> tuple[StatusRow, ...]:
    """The rows with the readings of those on MPSGraph."""
    old = [row for row in _served(checkout) if row.written is Written.MPSGRAPH]
    found = dict(zip((row.entry.name for row in old), which(checkout, old), strict=True))
    return tuple(replace(row, reading=found.get(row.name, "")) for row in rows)


def _served(checkout: Checkout) -> list[Row]:
    return [row for entry in NativeFunctions.read(checkout).entries if (row := mps_row(checkout, entry))]


def _row(checkout: Checkout, functions: NativeFunctions, row: Row) -> StatusRow:
    reason = _held_back(checkout, functions, row) if row.written is Written.MPSGRAPH else ""
    return StatusRow(row.entry.name, row.line.kernel, _class(row), reason)


def _class(row: Row) -> str:
    shared = any(key in row.line.keys for key in SHARING_KEYS)
    if row.written is Written.METAL:
        return _CLASSES[1] if shared else _CLASSES[2]
    return _CLASSES[0] if row.written is Written.MPSGRAPH else _CLASSES[3]


def _held_back(checkout: Checkout, functions: NativeFunctions, row: Row) -> str:
    operator = Operator(row.entry.name, functions.family(row.entry.name), (row,))
    [outcome] = moves(checkout, operator)
    try:
        if isinstance(outcome, Held):
            raise outcome.error
        check_portable(checkout, operator, outcome)
    except PorterError as error:
        return f"{error.code} {error.what}"
    return ""


def counts(rows: Sequence[StatusRow]) -> dict[str, int]:
    """How many rows of each class there are."""
    found = Counter(row.written for row in rows)
    return {name: found[name] for name in _CLASSES}


def lines(rows: Sequence[StatusRow]) -> Iterator[str]:
    """The table, and the counts below it."""
    for row in rows:
        yield f"{row.name:<44} {row.written:<22} {row.reading:<15} {row.reason or row.kernel}"
    yield ", ".join(f"{name}: {count}" for name, count in counts(rows).items())


def portable(checkout: Checkout) -> tuple[str, ...]:
    """The base names of the operators on MPSGraph that nothing known holds back, in the file's order."""
    functions = NativeFunctions.read(checkout)
    names: dict[str, None] = {}
    for row in as_rows(checkout):
        if row.written == _CLASSES[0] and not row.reason:
            names[functions.by_name[row.name].base] = None
    return tuple(names)
