"""What became of rows on MPS since an earlier fork, as text and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from porter.report.console import printable
from porter.report.status import State


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
