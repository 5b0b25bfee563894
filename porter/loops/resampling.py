"""Results that are a tensor resampled along its last dimensions, and the gradients of such.

Each result reads few elements, at a position that follows from its own. A gradient is computed for each element from
the results that read it: they follow each other, so it walks these and no others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from porter.core.dtypes import DType


class Sampling(Enum):
    """What an element `i` reads; `ratio` is how many elements of the source it stands for."""

    NEAREST = "the element floor(i * ratio)"
    NEAREST_EXACT = "the element floor((i + 0.5) * ratio)"
    LINEAR = "the two elements around (i + 0.5) * ratio - 0.5, by distance"


@dataclass(frozen=True)
class Resampling:
    """How a tensor is resampled, by the names of arguments.

    `scales` are the numbers that may be given for the last dimensions, in their order; `corners` is the flag that
    aligns the corners, if there is one. A gradient takes the elements of `source` back.
    """

    sampling: Sampling
    source: str
    scales: tuple[str, ...]
    corners: str = ""
    is_gradient: bool = False
    dtypes: tuple[DType, ...] = ()


def resampling_lines(found: Resampling) -> Iterator[str]:
    """What is computed, as `porter explain` prints it."""
    dims = ", ".join(f"{-len(found.scales) + i} by {scale}" for i, scale in enumerate(found.scales))
    if found.is_gradient:
        yield f"result = sum of the elements of {found.source} that read it, by their share"
    else:
        yield f"result = elements of {found.source}"
    yield f"in each of the dimensions {dims}: {found.sampling.value}"
    if found.corners:
        yield f"with {found.corners}: the two elements around i * ratio"
