"""Results that are the elements of a tensor at other coordinates: flips, pads, gathers, scatters.

A kernel of one computes the same for any number of dimensions, any strides and any sizes, which programs of loop form,
one for each number of dimensions, do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from porter.core.dtypes import DType


class Rule(Enum):
    """What the coordinate `i` of one tensor is in the same dimension of the other, which has `n` elements there."""

    REVERSED = "n - 1 - i in the dimensions of {argument}"
    REPEATED = "i % n"
    PADDED = "i - {argument}, where that is inside"
    CLAMPED = "i - {argument}, clamped to 0 and n - 1"
    REFLECTED = "i - {argument}, reflected at 0 and n - 1"
    POSITION = "{index}[i] in the dimension {argument}"
    ELEMENT = "the element of {index} in the dimension {argument}"
    ROW = "the element of {index} in the first dimension, for the whole row"  # index has the leading dimensions
    BIN = "the element of {index} in the only dimension"  # a source that is left out is one everywhere


class Way(Enum):
    """Whether results are read from other coordinates, or put or added there."""

    READ = "="
    PUT = "is put to"
    ADD = "is added to"
    COMBINE = "is added or multiplied, in order"  # by an argument


INDEXED = (Rule.POSITION, Rule.ELEMENT)  # along a dimension


@dataclass(frozen=True)
class CoordinateMap:
    """What the elements of a result are, by the names of arguments; an empty one is not there.

    Elements are those of the tensor `source`, or the number `value`, which is also what is read outside of the source.
    What is not written stays as in the tensor `start`, or is zero. Elements are multiplied by the number `factor`.
    What has the number `skipped` as its index is not written. If the flag `averaged` is true, an element is divided by
    the number of those with its index.
    `dtypes` are those of the recorded calls, `index_dtypes` those of the tensor `index`, whose elements below zero
    count from the end if it `wraps`.
    """

    rule: Rule
    way: Way
    argument: str = ""  # the list of dimensions or of pads, or the dimension
    index: str = ""
    source: str = ""
    value: str = ""
    start: str = ""
    factor: str = ""
    combine: str = ""
    dtypes: tuple[DType, ...] = ()
    index_dtypes: tuple[DType, ...] = ()
    wraps: bool = False
    skipped: str = ""
    averaged: str = ""

    @property
    def writes(self) -> bool:
        """Whether threads go over what is put or added, and not over the result."""
        return self.way is not Way.READ


def map_lines(found: CoordinateMap) -> Iterator[str]:
    """What a map computes, as `porter explain` prints it."""
    index = f"{found.index} (from the end below 0)" if found.wraps else found.index
    at = found.rule.value.format(argument=found.argument, index=index)
    element = f"{found.source} (1 if left out)" if found.rule is Rule.BIN else found.source or found.value
    if found.way is Way.READ:
        yield f"output[i, ...] = {element}[...], at {at}"
    else:
        start = found.start or "zeros"
        unless = f", unless that is {found.skipped}" if found.skipped else ""
        share = f", divided by how many go there if {found.averaged}" if found.averaged else ""
        yield f"output = {start}; each element of {element} {found.way.value} output[...], at {at}{unless}{share}"
