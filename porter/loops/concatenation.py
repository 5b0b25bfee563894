"""Results that are the tensors of a list one after the other along a dimension.

A kernel of one tensor is launched for each: one serves every length of the list, any ranks, sizes and strides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from porter.core.dtypes import DType


@dataclass(frozen=True)
class Concatenation:
    """The tensors of the list `sources` along the dimension `dim`, by the names of arguments, in the result's type.

    A tensor of one dimension that has no elements fits every other one. `dtypes` are those of the recorded calls.
    """

    sources: str
    dim: str
    dtypes: tuple[DType, ...] = ()


def concatenation_lines(found: Concatenation) -> Iterator[str]:
    """What is computed, as `porter explain` prints it."""
    yield f"output = the tensors of {found.sources}, one after the other along {found.dim}"
