"""A call of a public kernel whose result is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aten_overlay.metal.source.table import Value

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """Kernel `kernel` of file `file`, called over `grid` threads in groups of `group`.

    `buffers[output]` is where the result goes, of which the first elements are compared with `expected`, computed in
    float64: they may differ by `tolerance` times the largest value expected. `shared` are the lengths of threadgroup
    arguments, `constants` the function constants' values.
    """

    file: str
    kernel: str
    buffers: tuple[Array | None, ...]
    output: int
    expected: Array
    grid: Shape
    group: Shape
    tolerance: float = 1e-6
    shared: tuple[int, ...] = ()
    constants: tuple[tuple[int | str, Value], ...] = ()


def find_error(found: Array, case: Case) -> float:
    """The largest difference from what is expected, relative to the largest value expected; infinite for a NaN."""
    expected = np.asarray(case.expected, np.float64).ravel()
    got = np.asarray(found.ravel()[: expected.size], np.float64)
    same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    if same.all():
        return 0.0
    largest = float(np.nanmax(np.abs(expected[np.isfinite(expected)]), initial=0.0)) or 1.0
    differences = np.abs(got - expected)[~same]
    return float("inf") if np.isnan(differences).any() else float(differences.max()) / largest


def make_rng() -> np.random.Generator:
    """The numbers of a case: the same in every run."""
    return np.random.default_rng(20)


def round_up(n: int, step: int) -> int:
    """The least multiple of `step` that is no less than `n`."""
    return -(-n // step) * step


def scalar(value: float, kind: type[np.generic] = np.int32) -> Array:
    """A `constant T&` argument."""
    return np.array([value], kind)


Reference = Callable[..., Array]
Cases = Sequence[Case]
