"""Maximum and average over windows, and their gradients. Source: Apple's documentation of MPSGraph (pooling)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from porter.core.dtypes import FLOAT, INT
from porter.loops.expressions import Expr, ReductionKind, call_float, cast, index_value, number, select
from porter.loops.graph import Argument, Descriptor
from porter.loops.indices import (
    add,
    at_least,
    at_or_above,
    both,
    clamp,
    divide,
    equal,
    flatten,
    is_inside,
    less,
    modulo,
    multiply,
    read_index,
)
from porter.loops.lowering import Element, Indices, as_int, means, refuse
from porter.loops.meanings.reductions import neutral
from porter.loops.meanings.resizing import find_rows

_GLOBAL = (1, 2, 3, 4)  # MPSGraphPoolingReturnIndicesMode: positions in the last 1 to 4 dimensions


@dataclass(frozen=True)
class Axis:
    """The windows along one dimension, in elements."""

    dimension: int
    size: int
    stride: int
    dilation: int
    before: int


def _find_axes(descriptor: Descriptor, rank: int) -> list[Axis]:
    def get(name: str) -> int:
        return as_int(descriptor.get(name))

    if descriptor.get("paddingStyle"):
        raise refuse(f"MPSGraphPaddingStyle {descriptor.get('paddingStyle')} of a pooling")
    if descriptor.name == "MPSGraphPooling4DOpDescriptor":
        lists = [descriptor.get(name) for name in ("kernelSizes", "strides", "dilationRates", "paddingValues")]
        sizes, strides, dilations, padding = (
            [as_int(v) for v in each] if isinstance(each, tuple) else [] for each in lists
        )
        every = zip(range(rank - 4, rank), sizes, strides, dilations, padding[::2], strict=True)
        return [Axis(*each) for each in every]
    rows = find_rows(get("dataLayout"), rank)
    height = Axis(rows, get("kernelHeight"), get("strideInY"), get("dilationRateInY"), get("paddingTop"))
    return [height, Axis(rows + 1, get("kernelWidth"), get("strideInX"), get("dilationRateInX"), get("paddingLeft"))]


def _in_window(indices: Indices, turn: Indices, axes: Sequence[Axis], shape: Sequence[int]) -> tuple[Indices, Expr]:
    """The source's indices in a turn of a window's loops, and whether they lie inside of it."""
    at, inside = list(indices), []
    for axis, k in zip(axes, turn, strict=True):
        index = add(multiply(indices[axis.dimension], axis.stride), multiply(k, axis.dilation), -axis.before)
        inside.append(is_inside(index, shape[axis.dimension]))
        at[axis.dimension] = clamp(index, 0, shape[axis.dimension] - 1)
    return tuple(at), both(inside)


def _around(indices: Indices, turn: Indices, axes: Sequence[Axis], windows: Sequence[int]) -> tuple[Indices, Expr]:
    """The window whose turn lies at a source's indices, and whether there is one."""
    at, found = list(indices), []
    for axis, k in zip(axes, turn, strict=True):
        offset = add(indices[axis.dimension], axis.before, multiply(k, -axis.dilation))
        window = divide(at_least(offset, 0), axis.stride)
        found += [at_or_above(offset, 0), equal(modulo(at_least(offset, 0), axis.stride), 0)]
        found.append(less(window, windows[axis.dimension]))
        at[axis.dimension] = clamp(window, 0, windows[axis.dimension] - 1)
    return tuple(at), both(found)


def _sizes(axes: Sequence[Axis]) -> list[int]:
    return [axis.size for axis in axes]


def _find_maximum(element: Element, x: Argument, indices: Indices, axes: Sequence[Axis], last: int) -> Expr:
    """The position of a window's maximum in the last dimensions of the source."""
    shape = element.of(x).shape
    source = Element(element.lowering, element.node, element.tensor, element.of(x), indices)
    lowest = source.number(neutral(source, ReductionKind.MAX))

    def pair(turn: Indices) -> tuple[Expr, Expr]:
        at, inside = _in_window(indices, turn, axes, shape)
        position = index_value(flatten(at[len(at) - last :], shape[len(shape) - last :]), INT)
        return select(inside, element.read(x, at), lowest), position

    return element.lowering.reduce(ReductionKind.ARG_MAX, _sizes(axes), pair, INT)


def _pooling(name: str) -> None:
    @means(f"maxPooling{name}WithSourceTensor:descriptor", f"maxPooling{name}ReturnIndicesWithSourceTensor:descriptor")
    def maximum(element: Element, x: Argument, descriptor: Descriptor) -> Expr:
        shape = element.of(x).shape
        axes = _find_axes(descriptor, len(shape))
        if element.tensor.output:
            mode = as_int(descriptor.get("returnIndicesMode"))
            if mode not in _GLOBAL:
                raise refuse(f"MPSGraphPoolingReturnIndicesMode {mode}")
            return _find_maximum(element, x, element.indices, axes, mode)
        lowest = element.number(neutral(element, ReductionKind.MAX))

        def read(turn: Indices) -> Expr:
            at, inside = _in_window(element.indices, turn, axes, shape)
            return select(inside, element.read(x, at), lowest)

        return element.reduce(ReductionKind.MAX_NAN, _sizes(axes), read)

    @means(f"maxPooling{name}GradientWithGradientTensor:sourceTensor:descriptor")
    def maximum_gradient(element: Element, gradient: Argument, x: Argument, descriptor: Descriptor) -> Expr:
        axes, shape = _find_axes(descriptor, len(element.shape)), element.shape
        own = flatten(element.indices, shape)

        def read(turn: Indices) -> Expr:
            window, exists = _around(element.indices, turn, axes, element.of(gradient).shape)
            hit = equal(read_index(_find_maximum(element, x, window, axes, len(shape))), own)
            return select(both((exists, hit)), element.read(gradient, window), element.number(0))

        return element.reduce(ReductionKind.SUM, _sizes(axes), read)

    @means(f"maxPooling{name}GradientWithGradientTensor:indicesTensor:outputShape:descriptor")
    def maximum_gradient_at(
        element: Element, gradient: Argument, indices: Argument, _: Argument, descriptor: Descriptor
    ) -> Expr:
        last = as_int(descriptor.get("returnIndicesMode"))
        if last not in _GLOBAL:
            raise refuse(f"a gradient by MPSGraphPoolingReturnIndicesMode {last}")
        lead = len(element.shape) - last
        own = flatten(element.indices[lead:], element.shape[lead:])

        def read(turn: Indices) -> Expr:
            at = (*element.indices[:lead], *turn)
            hit = equal(read_index(element.read(indices, at)), own)
            return select(hit, element.read(gradient, at), element.number(0))

        return element.reduce(ReductionKind.SUM, element.of(gradient).shape[lead:], read)

    @means(f"avgPooling{name}WithSourceTensor:descriptor")
    def average(element: Element, x: Argument, descriptor: Descriptor) -> Expr:
        shape = element.of(x).shape
        axes = _find_axes(descriptor, len(shape))

        def read(turn: Indices) -> Expr:
            at, inside = _in_window(element.indices, turn, axes, shape)
            return select(inside, cast(element.read(x, at), FLOAT), number(0, FLOAT))

        total = element.reduce(ReductionKind.SUM, _sizes(axes), read, FLOAT)
        return call_float("division", total, _count(element.indices, axes, shape, descriptor))

    @means(f"avgPooling{name}GradientWithGradientTensor:sourceTensor:descriptor")
    def average_gradient(element: Element, gradient: Argument, _: Argument, descriptor: Descriptor) -> Expr:
        axes = _find_axes(descriptor, len(element.shape))

        def read(turn: Indices) -> Expr:
            window, exists = _around(element.indices, turn, axes, element.of(gradient).shape)
            size = _count(window, axes, element.shape, descriptor)
            share = call_float("division", cast(element.read(gradient, window), FLOAT), size)
            return select(exists, share, number(0, FLOAT))

        return element.reduce(ReductionKind.SUM, _sizes(axes), read, FLOAT)


def _count(indices: Indices, axes: Sequence[Axis], shape: Sequence[int], descriptor: Descriptor) -> Expr:
    """How many elements a window averages: all its turns, or those inside of the source."""
    if descriptor.get("includeZeroPadToAverage"):
        return number(prod(_sizes(axes)), FLOAT)
    made = number(1, FLOAT)
    for axis in axes:
        inside = [
            select(is_inside(_at_turn(indices, axis, k), shape[axis.dimension]), number(1, FLOAT), number(0, FLOAT))
            for k in range(axis.size)
        ]
        made = call_float("multiplication", made, _sum(inside))
    return made


def _at_turn(indices: Indices, axis: Axis, turn: int) -> Expr:
    return add(multiply(indices[axis.dimension], axis.stride), turn * axis.dilation - axis.before)


def _sum(values: Sequence[Expr]) -> Expr:
    made = values[0]
    for each in values[1:]:
        made = call_float("addition", made, each)
    return made


_pooling("2D")
_pooling("4D")
