"""Results that are the distinct elements, or slices, of a tensor, which no loops tell: their number is data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from porter.core.dtypes import DType


@dataclass(frozen=True)
class DistinctValues:
    """Each element of `source` that differs from the one before, by the names of arguments.

    With the argument `dim`, slices along it are compared in the place of elements, unless a call leaves it empty. With
    `is_sorted`, elements are sorted first. A second result has the place among the distinct ones of every element, if
    the flag `inverse` asks for it; a third has how many there are of each, if the flag `counts` does. A NaN differs
    from all elements. `dtypes` are those of the recorded calls.
    """

    source: str
    is_sorted: bool
    inverse: str
    counts: str
    dim: str = ""
    dtypes: tuple[DType, ...] = ()


def distinct_lines(found: DistinctValues) -> Iterator[str]:
    """What is computed, as `porter explain` prints it."""
    what = f"slices along {found.dim}" if found.dim else "elements"
    order = ", sorted," if found.is_sorted else ""
    yield f"output = the {what} of {found.source}{order} that differ from the one before"
    yield f"inverse = where each is among the distinct ones, if {found.inverse}"
    yield f"counts = how many there are of each, if {found.counts}"
