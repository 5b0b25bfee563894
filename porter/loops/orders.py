"""Results that are taken from the sorted rows of a tensor: sorts, and elements by their rank.

No loops tell it: a kernel of its own sorts a row, whatever its size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from porter.core.dtypes import DType


class Kept(Enum):
    """What is kept of a sorted row."""

    ALL = "all elements"
    FIRST = "the first {count} elements"
    MEDIAN = "the lower median, or the first NaN"


@dataclass(frozen=True)
class RowOrder:
    """What is kept of the sorted rows of `source` along the dimension `dim`, by the names of arguments.

    Without a `dim`, all elements are one row. Rows are in descending order if `descending`, an argument or a constant,
    says so; equal elements keep their order, and a NaN is larger than all numbers. A second result, if there is one
    (`places`), has where the elements were in their rows. `dtypes` are those of the recorded calls.
    """

    source: str
    kept: Kept
    dim: str = ""
    descending: str | bool = False
    count: str = ""
    places: bool = True
    dtypes: tuple[DType, ...] = ()


def order_lines(found: RowOrder) -> Iterator[str]:
    """What is computed, as `porter explain` prints it."""
    rows = f"along {found.dim}" if found.dim else "as one row"
    how = f"descending by {found.descending}" if isinstance(found.descending, str) else ""
    how = how or ("descending" if found.descending else "ascending")
    kept = found.kept.value.format(count=found.count)
    yield f"output = {kept} of {found.source} sorted {rows}, {how}"
    if found.places:
        yield "indices = where these were in their rows"
