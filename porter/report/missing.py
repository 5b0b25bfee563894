"""The operators that MPS lacks as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from porter.report.escaping import printable
from porter.report.status import Reason

HEADINGS = ("operator", "family", "porter add")
ADDABLE = "can add it"


@dataclass(frozen=True)
class MissingOperator:
    """An operator that MPS lacks, the family of kernels that it needs, and why porter cannot add it; None if it can."""

    name: str
    family: str
    reason: Reason | None

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
    cells = [HEADINGS, *((printable(e.name), e.family, printable(str(e.reason or ADDABLE))) for e in operators)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(HEADINGS) - 1)]
    for row in cells:
        yield "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]))
    counted = Counter(each.family for each in operators)
    yield f"{len(operators)} operators: porter can add {sum(each.addable for each in operators)}"
    yield ", ".join(f"{family}: {count}" for family, count in counted.most_common())
