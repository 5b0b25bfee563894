"""Results that are the coordinates of the elements that are not zero, which no loops tell: their number is data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from porter.core.dtypes import DType


@dataclass(frozen=True)
class NonzeroPlaces:
    """A row of coordinates for each element of `source` that is not zero; `dtypes` are those of recorded calls."""

    source: str
    dtypes: tuple[DType, ...] = ()


def place_lines(found: NonzeroPlaces) -> Iterator[str]:
    """What is computed, as `porter explain` prints it."""
    yield f"output[k, ...] = the coordinates of the k-th element of {found.source} that is not zero"
