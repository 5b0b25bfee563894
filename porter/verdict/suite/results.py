"""What each test of a run recorded, besides unittest's result: kernel calls and accuracy."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Record:
    """One test: its calls of the kernels under test, everything that ran, and its accuracy if it measured any."""

    calls: int = 0
    kernels: Counter[str] = field(default_factory=Counter)
    fallbacks: Counter[str] = field(default_factory=Counter)
    max_ulp: float | None = None
    cpu_ulp: float | None = None
    worst: str = ""


records: dict[str, Record] = {}


def get_record(test: str) -> Record:
    """The record of a test, by its method name."""
    return records.setdefault(test, Record())
