"""Results of windows that move over the last dimensions of a tensor, and the gradients of such.

An element of an average's gradient, or of a maximum's whose positions are given, walks the windows that it lies in and
no others. Where positions are not given, each window finds its maximum again and adds to that element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from porter.core.dtypes import DType


class Pooling(Enum):
    """What is made of the elements of a window."""

    MAXIMUM = "the maximum, NaN before numbers"
    AVERAGE = "the average"


@dataclass(frozen=True)
class Window:
    """How windows are pooled, by the names of arguments; an empty one is not there.

    `size`, `stride`, `padding` and `dilation` are lists with an element for each of the last two dimensions, or one for
    both; an empty `stride` is the size. An average divides by the number `divisor` if it is given, else by how many
    elements a window has, with those of the padding if the flag `counts_padding` is set.

    A gradient goes back to `source` from `gradient`; `indices` are the positions of maxima, an argument of a gradient.
    Without a gradient `results` is 2 where positions are returned too.
    """

    pooling: Pooling
    source: str
    size: str
    stride: str
    padding: str
    dilation: str = ""
    counts_padding: str = ""
    divisor: str = ""
    gradient: str = ""
    indices: str = ""
    results: int = 1
    dtypes: tuple[DType, ...] = ()

    @property
    def adds(self) -> bool:
        """Whether threads go over windows, several of which may add to one element."""
        return bool(self.gradient) and self.pooling is Pooling.MAXIMUM and not self.indices


def window_lines(found: Window) -> Iterator[str]:
    """What is computed, as `porter explain` prints it."""
    made = f"{found.pooling.value} of windows of {found.source}"
    lists = [each for each in (found.size, found.stride, found.padding, found.dilation) if each]
    if found.adds:
        yield f"result = zeros; each element of {found.gradient} is added where its window has {found.pooling.value}"
    elif found.gradient:
        where = f", where {found.indices} says so" if found.indices else ""
        yield f"result = sum of {found.gradient} over the windows that an element lies in{where}: {made}"
    else:
        yield f"result = {made}{', with its position' if found.results > 1 else ''}"
    yield f"windows by {', '.join(lists)}"
