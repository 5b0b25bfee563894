"""A launch of a kernel with what it has to compute, for a GPU and the host alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "cases"
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """`buffers` are bound by index, outputs too; `expected` has what some of them become. An element may differ by `ulps`
    units in the last place of its float; 0 means not at all, but that any NaN is a NaN. `values` are constants of the
    source, by index."""

    name: str
    file: str
    kernel: str
    buffers: tuple[Array, ...]
    expected: Mapping[int, Array]
    grid: tuple[int, ...]
    group: tuple[int, ...]
    ulps: float = 0
    threadgroup_bytes: Mapping[int, int] = field(default_factory=dict)
    values: tuple[tuple[int, bool | int], ...] = ()

    @property
    def path(self) -> Path:
        return FOLDER / self.file


def find_difference(case: Case, index: int, found: Array) -> str:
    """How buffer `index` differs from what is expected ("": it does not)."""
    expected = case.expected[index]
    if expected.dtype.kind != "f":
        wrong = found != expected
    else:
        both = np.isnan(found) & np.isnan(expected)
        limit = case.ulps * np.spacing(np.abs(expected)).astype(np.float64) if case.ulps else 0.0
        with np.errstate(invalid="ignore"):
            near = np.abs(found.astype(np.float64) - expected.astype(np.float64)) <= limit
        wrong = ~(both | (found == expected) | near)
    if not wrong.any():
        return ""
    first = int(np.flatnonzero(wrong)[0])
    count = int(wrong.sum())
    return f"{count} of {wrong.size} differ, first element {first}: {found.flat[first]!r}, not {expected.flat[first]!r}"
