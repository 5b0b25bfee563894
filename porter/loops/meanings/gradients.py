"""Gradients of views. Source: Apple's documentation of MPSGraph (memory and shape operations)."""

from __future__ import annotations

from porter.loops.expressions import Expr, ReductionKind, select
from porter.loops.graph import Argument
from porter.loops.indices import add, both, equal, multiply
from porter.loops.lowering import Element, Indices, as_int, means, refuse
from porter.loops.meanings.views import CONSTANT, ZERO_PADDING, find_padded, reshape_indices, select_slice, slice_ranges

_SLICE = "sliceGradientTensor:fwdInShapeTensor:starts:ends:strides"


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
