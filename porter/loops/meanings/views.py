"""Views: maps of indices, and their gradients. Source: Apple's documentation of MPSGraph (memory operations)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from porter.core.dtypes import INT
from porter.loops.expressions import Expr, ReductionKind, index_value, select
from porter.loops.graph import Argument
from porter.loops.indices import (
    add,
    at_or_above,
    both,
    clamp,
    distance,
    divide,
    equal,
    flatten,
    integer,
    less,
    modulo,
    multiply,
    unflatten,
)
from porter.loops.lowering import Element, Indices, as_int, means, refuse

_BLOCKS = ":widthAxis:heightAxis:depthAxis:blockSize:usePixelShuffleOrder"
CONSTANT, REFLECT, SYMMETRIC, CLAMP, ZERO_PADDING = range(5)  # MPSGraphPaddingMode
_SLICE = "sliceGradientTensor:fwdInShapeTensor:starts:ends:strides"


@means(
    "castTensor:toType",
    "identityWithTensor",
    "readVariable",
    "broadcastTensor:toShape",
    "broadcastTensor:toShapeTensor",
)
def pass_on(element: Element, x: Argument, *_: Argument) -> Expr:
    return element.read(x)


@means(
    "reshapeTensor:withShape", "reshapeTensor:withShapeTensor", "squeezeTensor", "squeezeTensor:axes",
    "squeezeTensor:axis", "expandDimsOfTensor:axis", "expandDimsOfTensor:axes", "flatten2DTensor:axis",
)  # fmt: skip
def reshape(element: Element, x: Argument, *_: Argument) -> Expr:
    return element.read(x, reshape_indices(element.indices, element.shape, element.of(x).shape))


def reshape_indices(indices: Indices, shape: tuple[int, ...], inner: tuple[int, ...]) -> Indices:
    """The indices of the same element in another shape."""
    return unflatten(flatten(indices, shape), inner) if 0 not in shape else tuple(integer(0) for _ in inner)


@means("transposeTensor:dimension:withDimension")
def transpose(element: Element, x: Argument, one: Argument, other: Argument) -> Expr:
    made = list(element.indices)
    first, second = as_int(one), as_int(other)
    made[first], made[second] = made[second], made[first]
    return element.read(x, tuple(made))


@means("transposeTensor:permutation")
def permute(element: Element, x: Argument, order: Argument) -> Expr:
    places = [each % len(element.indices) for each in element.numbers(order)]
    return element.read(x, tuple(element.indices[places.index(d)] for d in range(len(places))))


@means("sliceTensor:dimension:start:length")
def narrow(element: Element, x: Argument, dimension: Argument, start: Argument, _: Argument) -> Expr:
    axis, first = as_int(dimension) % len(element.indices), as_int(start)
    first += element.of(x).shape[axis] if first < 0 else 0
    return element.read(x, replace(element.indices, axis, add(element.indices[axis], first)))


def replace(indices: Indices, axis: int, index: Expr) -> Indices:
    """The indices with another one along an axis."""
    return (*indices[:axis], index, *indices[axis + 1 :])


def slice_ranges(
    shape: tuple[int, ...], starts: list[int], ends: list[int], strides: list[int], start_mask: int, end_mask: int
) -> list[range]:
    """The indices that a slice takes along each dimension."""
    return [
        range(*slice(None if start_mask >> d & 1 else start, None if end_mask >> d & 1 else end, stride).indices(size))
        for d, (size, start, end, stride) in enumerate(zip(shape, starts, ends, strides, strict=True))
    ]


@means("sliceTensor:starts:ends:strides", "sliceTensor:starts:ends:strides:startMask:endMask:squeezeMask")
def take_slice(
    element: Element, x: Argument, starts: Argument, ends: Argument, strides: Argument, start_mask: Argument = 0,
    end_mask: Argument = 0, squeeze_mask: Argument = 0,
) -> Expr:  # fmt: skip
    bounds = (element.numbers(starts), element.numbers(ends), element.numbers(strides))
    ranges = slice_ranges(element.of(x).shape, *bounds, as_int(start_mask), as_int(end_mask))
    kept = tuple(len(each) for each in ranges)
    indices = reshape_indices(element.indices, element.shape, kept) if squeeze_mask else element.indices
    return element.read(
        x, tuple(add(multiply(i, each.step), each.start) for i, each in zip(indices, ranges, strict=True))
    )


def find_in_range(index: Expr, taken: range, size: int) -> tuple[Expr, Expr]:
    """Whether an index of a dimension is one of a slice's, and its place there."""
    last = max(len(taken) - 1, 0)
    if taken.step < 0:
        found, place = find_in_range(index, taken[::-1], size)
        return found, add(last, multiply(place, -1))
    offset = add(index, -taken.start)
    inside = [at_or_above(index, taken.start), less(index, taken.stop)]
    if taken.step != 1:
        inside.append(equal(modulo(offset, taken.step), 0))
    return both(inside), clamp(divide(offset, taken.step), 0, last)


def select_slice(element: Element, x: Argument, ranges: list[range], otherwise: Expr) -> Expr:
    """The element of a slice where this one lies in it, else `otherwise`."""
    found = [find_in_range(i, each, size) for i, each, size in zip(element.indices, ranges, element.shape, strict=True)]
    if any(not each for each in ranges):
        return otherwise
    return select(both(inside for inside, _ in found), element.read(x, tuple(place for _, place in found)), otherwise)


@means("sliceUpdateDataTensor:updateTensor:starts:ends:strides")
def update_slice(
    element: Element, x: Argument, update: Argument, starts: Argument, ends: Argument, strides: Argument
) -> Expr:
    bounds = (element.numbers(starts), element.numbers(ends), element.numbers(strides))
    return select_slice(element, update, slice_ranges(element.shape, *bounds, 0, 0), element.read(x))


@means("concatTensor:withTensor:dimension")
def concatenate_two(element: Element, x: Argument, other: Argument, dimension: Argument) -> Expr:
    return concatenate(element, (x, other), dimension)


@means("concatTensors:dimension", "concatTensors:dimension:interleave")
def concatenate(element: Element, tensors: tuple[Argument, ...], dimension: Argument, interleave: Argument = 0) -> Expr:
    axis = as_int(dimension) % len(element.indices)
    index = element.indices[axis]
    if interleave:
        inner = replace(element.indices, axis, divide(index, len(tensors)))
        return _choose(modulo(index, len(tensors)), [element.read(each, inner) for each in tensors])
    made, start = None, element.shape[axis]
    parts = [(each, len(list(group))) for each, group in groupby(tensors)]  # copies of one tensor are a tiling
    for each, count in reversed(parts):
        size = element.of(each).shape[axis]
        start -= count * size
        if size:
            place = modulo(clamp(add(index, -start), 0, count * size - 1), size)
            value = element.read(each, replace(element.indices, axis, place))
            made = value if made is None else select(less(index, start + count * size), value, made)
    return made if made is not None else element.number(0)


def _choose(index: Expr, values: list[Expr]) -> Expr:
    """The value of this number."""
    made = values[-1]
    for i, value in reversed(list(enumerate(values[:-1]))):
        made = select(equal(index, i), value, made)
    return made


@means("stackTensors:axis")
def stack(element: Element, tensors: tuple[Argument, ...], axis: Argument) -> Expr:
    at = as_int(axis) % len(element.indices)
    rest = (*element.indices[:at], *element.indices[at + 1 :])
    return _choose(element.indices[at], [element.read(each, rest) for each in tensors])


@means("splitTensor:numSplits:axis", "splitTensor:splitSizes:axis")
def split(element: Element, x: Argument, _: Argument, axis: Argument) -> Expr:
    at = as_int(axis) % len(element.indices)
    start = sum(element.node.results[i].shape[at] for i in range(element.tensor.output))
    return element.read(x, replace(element.indices, at, add(element.indices[at], start)))


@means("tileTensor:withMultiplier")
def tile(element: Element, x: Argument, _: Argument) -> Expr:
    shape = element.of(x).shape
    inner = element.indices[len(element.indices) - len(shape) :]
    return element.read(x, tuple(modulo(i, size) for i, size in zip(inner, shape, strict=True)))


@means("reverseTensor", "reverseTensor:axes")
def reverse(element: Element, x: Argument, axes: Argument = None) -> Expr:
    rank = len(element.indices)
    turned = range(rank) if axes is None else [each % rank for each in element.numbers(axes)]
    pairs = enumerate(zip(element.indices, element.shape, strict=True))
    return element.read(x, tuple(add(multiply(i, -1), size - 1) if d in turned else i for d, (i, size) in pairs))


@means(
    "coordinateAlongAxis:withShape", "coordinateAlongAxis:withShapeTensor", "coordinateAlongAxisTensor:withShapeTensor"
)
def coordinate(element: Element, axis: Argument, _: Argument) -> Expr:
    (at,) = element.numbers(axis)
    return index_value(element.indices[at], INT)


@means("bandPartWithTensor:numLower:numUpper", "bandPartWithTensor:numLowerTensor:numUpperTensor")
def keep_band(element: Element, x: Argument, lower: Argument, upper: Argument) -> Expr:
    (below,), (above,) = element.numbers(lower), element.numbers(upper)
    row, column = element.indices[-2:]
    if below == above == 0:
        return select(equal(row, column), element.read(x), element.number(0))
    kept = [less(row, add(column, below + 1))] if below >= 0 else []
    kept += [less(column, add(row, above + 1))] if above >= 0 else []
    return select(both(kept), element.read(x), element.number(0))


def _read_block(element: Element, block: Sequence[Argument]) -> tuple[list[int], int, bool]:
    """The dimensions of rows, columns and channels, the size of a block, and whether channels are shuffled."""
    width, height, depth, size, is_shuffled = block
    return [as_int(each) % len(element.indices) for each in (height, width, depth)], as_int(size), bool(is_shuffled)


@means(f"depthToSpace2DTensor{_BLOCKS}")
def depth_to_space(element: Element, x: Argument, *block_of: Argument) -> Expr:
    (h, w, c), block, is_shuffled = _read_block(element, block_of)
    places = list(element.indices)
    row, column, channel = (places[d] for d in (h, w, c))
    place = add(multiply(modulo(row, block), block), modulo(column, block))
    places[h], places[w] = divide(row, block), divide(column, block)
    if is_shuffled:
        places[c] = add(multiply(channel, block * block), place)
    else:
        places[c] = add(multiply(place, element.shape[c]), channel)
    return element.read(x, tuple(places))


@means(f"spaceToDepth2DTensor{_BLOCKS}")
def space_to_depth(element: Element, x: Argument, *block_of: Argument) -> Expr:
    (h, w, c), block, is_shuffled = _read_block(element, block_of)
    places = list(element.indices)
    row, column, channel = (places[d] for d in (h, w, c))
    channels = element.of(x).shape[c]
    if is_shuffled:
        places[c], place = divide(channel, block * block), modulo(channel, block * block)
    else:
        places[c], place = modulo(channel, channels), divide(channel, channels)
    places[h] = add(multiply(row, block), divide(place, block))
    places[w] = add(multiply(column, block), modulo(place, block))
    return element.read(x, tuple(places))


@means("padTensor:withPaddingMode:leftPadding:rightPadding:constantValue")
def pad(element: Element, x: Argument, mode: Argument, left: Argument, right: Argument, value: Argument) -> Expr:
    shape, before, after = element.of(x).shape, element.numbers(left), element.numbers(right)
    if mode in (CONSTANT, ZERO_PADDING):
        fill = element.number(value if mode == CONSTANT and isinstance(value, (int, float)) else 0)
        return select_slice(element, x, [range(b, b + size) for b, size in zip(before, shape, strict=True)], fill)
    parts = zip(element.indices, before, after, shape, strict=True)
    return element.read(
        x, tuple(find_padded(add(i, -b), size, as_int(mode)) if b or a else i for i, b, a, size in parts)
    )


def find_padded(index: Expr, size: int, mode: int) -> Expr:
    """The index of the element that is repeated at an index from before a dimension's start to beyond its end."""
    if mode == CLAMP:
        return clamp(index, 0, size - 1)
    if mode != REFLECT:
        raise refuse(f"MPSGraphPaddingMode {mode}")
    from_end = add(size - 1, multiply(distance(index), -1))
    return add(size - 1, multiply(distance(from_end), -1))


@means(_SLICE, f"{_SLICE}:startMask:endMask:squeezeMask")
def slice_gradient(
    element: Element, gradient: Argument, _: Argument, starts: Argument, ends: Argument, strides: Argument,
    start_mask: Argument = 0, end_mask: Argument = 0, squeeze_mask: Argument = 0,
) -> Expr:  # fmt: skip
    if squeeze_mask:
        raise refuse("a slice's gradient with a squeezeMask")
    bounds = (element.numbers(starts), element.numbers(ends), element.numbers(strides))
    ranges = slice_ranges(element.shape, *bounds, as_int(start_mask), as_int(end_mask))
    return select_slice(element, gradient, ranges, element.number(0))


@means("tileGradientWithIncomingGradientTensor:sourceTensor:withMultiplier")
def tile_gradient(element: Element, gradient: Argument, x: Argument, _: Argument) -> Expr:
    shape, outer = element.of(x).shape, element.of(gradient).shape
    shape = (1,) * (len(outer) - len(shape)) + shape
    indices = reshape_indices(element.indices, element.shape, shape)

    def read(turn: Indices) -> Expr:
        parts = zip(indices, turn, shape, strict=True)
        return element.read(gradient, tuple(add(i, multiply(k, size)) for i, k, size in parts))

    return element.reduce(ReductionKind.SUM, [o // s for o, s in zip(outer, shape, strict=True)], read)


@means("padGradientWithIncomingGradientTensor:sourceTensor:paddingMode:leftPadding:rightPadding")
def pad_gradient(
    element: Element, gradient: Argument, _: Argument, mode: Argument, left: Argument, right: Argument
) -> Expr:
    before, after = element.numbers(left), element.numbers(right)
    if mode in (CONSTANT, ZERO_PADDING):
        return element.read(gradient, tuple(add(i, b) for i, b in zip(element.indices, before, strict=True)))
    padded = [d for d, pair in enumerate(zip(before, after, strict=True)) if pair != (0, 0)]
    outer = element.of(gradient).shape

    def read(turn: Indices) -> Expr:
        at, hits = list(element.indices), []
        for d, k in zip(padded, turn, strict=True):
            at[d] = k
            hits.append(equal(find_padded(add(k, -before[d]), element.shape[d], as_int(mode)), element.indices[d]))
        return select(both(hits), element.read(gradient, tuple(at)), element.number(0))

    return element.reduce(ReductionKind.SUM, [outer[d] for d in padded], read)
