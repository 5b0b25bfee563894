"""Gathers, scatters and one-hot tensors. Source: Apple's documentation of MPSGraph (gather and scatter operations).

A scatter is a search of each element for its updates: right and deterministic, but of order elements x updates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from porter.loops.expressions import Expr, ReductionKind, select
from porter.loops.graph import Argument
from porter.loops.indices import both, clamp, equal, integer, is_inside, less, read_index
from porter.loops.lowering import Element, Indices, as_int, means
from porter.loops.meanings.reductions import neutral
from porter.loops.meanings.views import replace

_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _MIN, _MAX, _SET = range(7)  # MPSGraphScatterMode
_REDUCE = {
    _ADD: (ReductionKind.SUM, "addition"), _SUBTRACT: (ReductionKind.SUM, "addition"),
    _MULTIPLY: (ReductionKind.PRODUCT, "multiplication"), _DIVIDE: (ReductionKind.PRODUCT, "multiplication"),
    _MIN: (ReductionKind.MIN_NAN, "minimumWithNaNPropagation"),
    _MAX: (ReductionKind.MAX_NAN, "maximumWithNaNPropagation"),
}  # fmt: skip
_ND = "scatterNDWithUpdatesTensor:indicesTensor:shape:batchDimensions"
_ONE_HOT = "oneHotWithIndicesTensor:depth"
_ONE_HOT_FORMS = (
    "",
    ":axis",
    ":dataType",
    ":axis:dataType",
    ":dataType:onValue:offValue",
    ":axis:dataType:onValue:offValue",
)


def _axis(element: Element, axis: Argument) -> int:
    (at,) = element.numbers(axis)
    return at % len(element.indices)


@means("gatherAlongAxis:withUpdatesTensor:indicesTensor")
def gather_along(element: Element, axis: Argument, x: Argument, indices: Argument) -> Expr:
    """Zero where an index is out of bounds."""
    at, index = _axis(element, axis), read_index(element.read(indices))
    size = element.of(x).shape[at]
    value = element.read(x, replace(element.indices, at, clamp(index, 0, size - 1)))
    return select(is_inside(index, size), value, element.number(0))


@means("gatherWithUpdatesTensor:indicesTensor:axis:batchDimensions")
def gather(element: Element, x: Argument, indices: Argument, axis: Argument, batch: Argument) -> Expr:
    at, lead = as_int(axis) % len(element.of(x).shape), as_int(batch)
    width = len(element.of(indices).shape) - lead
    index = read_index(element.read(indices, (*element.indices[:lead], *element.indices[at : at + width])))
    size = element.of(x).shape[at]
    inner = (*element.indices[:at], clamp(index, 0, size - 1), *element.indices[at + width :])
    return select(is_inside(index, size), element.read(x, inner), element.number(0))


def _read_place(element: Element, indices: Argument, at: Indices) -> list[Expr]:
    """The position that the last dimension of the indices gives."""
    return [read_index(element.read(indices, (*at, integer(j)))) for j in range(element.of(indices).shape[-1])]


@means("gatherNDWithUpdatesTensor:indicesTensor:batchDimensions")
def gather_nd(element: Element, x: Argument, indices: Argument, batch: Argument) -> Expr:
    lead, rank = as_int(batch), len(element.of(indices).shape) - 1
    place = _read_place(element, indices, element.indices[:rank])
    sizes = element.of(x).shape[lead : lead + len(place)]
    pairs = list(zip(place, sizes, strict=True))
    inner = (*element.indices[:lead], *(clamp(i, 0, n - 1) for i, n in pairs), *element.indices[rank:])
    return select(both(is_inside(i, n) for i, n in pairs), element.read(x, inner), element.number(0))


Search = Callable[[Indices], tuple[Expr, Expr]]  # whether an update hits the element, and its value


def _scatter(element: Element, start: Expr, mode: int, sizes: Sequence[int], search: Search) -> Expr:
    """What an element is after all updates."""
    if 0 in sizes:
        return start
    if mode == _SET:
        return element.lowering.reduce(ReductionKind.LAST, sizes, lambda turn: (*search(turn), start), element.dtype)
    kind, combine = _REDUCE[mode]

    def take(turn: Indices) -> Expr:
        hit, value = search(turn)
        value = element.call("negative", value) if mode == _SUBTRACT else value
        value = element.call("reciprocal", value) if mode == _DIVIDE else value
        return select(hit, value, element.number(neutral(element, kind)))

    return element.call(combine, start, element.reduce(kind, sizes, take))


def _start(element: Element, mode: int) -> Expr:
    """What a scatter without data starts from."""
    return element.number(1 if mode == _MULTIPLY else 0)


def _along(
    element: Element, axis: int, updates: Argument, indices: Argument, start: Expr, mode: int, is_sliced: bool
) -> Expr:
    """Updates along one axis; `is_sliced` says that there is one index for each slice."""
    shape = element.of(updates).shape
    others = [less(i, size) for d, (i, size) in enumerate(zip(element.indices, shape, strict=True)) if d != axis]

    def search(turn: Indices) -> tuple[Expr, Expr]:
        pairs = enumerate(zip(element.indices, shape, strict=True))
        at = tuple(turn[0] if d == axis else clamp(i, 0, size - 1) for d, (i, size) in pairs)
        index = read_index(element.read(indices, turn if is_sliced else at))
        return both((*others, equal(index, element.indices[axis]))), element.read(updates, at)

    return start if 0 in shape else _scatter(element, start, mode, [shape[axis]], search)


@means("scatterAlongAxis:withDataTensor:updatesTensor:indicesTensor:mode")
def scatter_along(
    element: Element, axis: Argument, x: Argument, updates: Argument, indices: Argument, mode: Argument
) -> Expr:
    return _along(element, _axis(element, axis), updates, indices, element.read(x), as_int(mode), False)


@means("scatterAlongAxis:withUpdatesTensor:indicesTensor:shape:mode")
def scatter_along_new(
    element: Element, axis: Argument, updates: Argument, indices: Argument, _: Argument, mode: Argument
) -> Expr:
    start = _start(element, as_int(mode))
    return _along(element, _axis(element, axis), updates, indices, start, as_int(mode), False)


@means("scatterWithDataTensor:updatesTensor:indicesTensor:axis:mode")
def scatter_slices(
    element: Element, x: Argument, updates: Argument, indices: Argument, axis: Argument, mode: Argument
) -> Expr:
    return _along(element, _axis(element, axis), updates, indices, element.read(x), as_int(mode), True)


@means("scatterWithUpdatesTensor:indicesTensor:shape:axis:mode")
def scatter_slices_new(
    element: Element, updates: Argument, indices: Argument, _: Argument, axis: Argument, mode: Argument
) -> Expr:
    start = _start(element, as_int(mode))
    return _along(element, _axis(element, axis), updates, indices, start, as_int(mode), True)


def _at_places(element: Element, updates: Argument, indices: Argument, start: Expr, mode: int) -> Expr:
    """Updates at the positions that the last dimension of the indices gives."""
    shape = element.of(indices).shape

    def search(turn: Indices) -> tuple[Expr, Expr]:
        place = _read_place(element, indices, turn)
        hit = both(equal(i, own) for i, own in zip(place, element.indices, strict=False))
        return hit, element.read(updates, (*turn, *element.indices[len(place) :]))

    return start if 0 in element.of(updates).shape else _scatter(element, start, mode, shape[:-1], search)


@means("scatterNDWithDataTensor:updatesTensor:indicesTensor:batchDimensions:mode")
def scatter_nd(
    element: Element, x: Argument, updates: Argument, indices: Argument, _: Argument, mode: Argument
) -> Expr:
    return _at_places(element, updates, indices, element.read(x), as_int(mode))


@means(_ND, f"{_ND}:mode")
def scatter_nd_new(
    element: Element, updates: Argument, indices: Argument, shape: Argument, batch: Argument, mode: Argument = _ADD
) -> Expr:
    return _at_places(element, updates, indices, _start(element, as_int(mode)), as_int(mode))


@means(*(f"{_ONE_HOT}{form}" for form in _ONE_HOT_FORMS))
def one_hot(element: Element, indices: Argument, _: Argument, *rest: Argument) -> Expr:
    """A new axis; an index beyond it is nowhere."""
    given = dict(zip(element.node.selector.split(":")[2:], rest, strict=True))
    axis = as_int(given.get("axis", -1)) % len(element.indices)
    inner = (*element.indices[:axis], *element.indices[axis + 1 :])
    hit = equal(read_index(element.read(indices, inner)), element.indices[axis])
    on, off = given.get("onValue", 1), given.get("offValue", 0)
    assert isinstance(on, (int, float)) and isinstance(off, (int, float))
    return select(hit, element.number(on), element.number(off))
