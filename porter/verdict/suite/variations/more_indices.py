"""Index tensors longer than what they index: more positions than 16 bits count, into few elements.

OpInfo has a few indices, and a kernel with a `ushort` for the place of one is right for them. Where the input is made
long they are not: `gather` takes any number of them. The largest index stands at places past 16 bits alone, so that
one which is read in place of another shows, whatever is done with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.core.dtypes import name_torch
from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.gradients import differentiate
from porter.verdict.suite.indices import list_indices
from porter.verdict.suite.leaves import Place, compute, list_passed, list_tensors, read_argument, replace_arguments
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.resizing import spread_values
from porter.verdict.suite.variations.choice import choose_samples, varies_in
from porter.verdict.suite.variations.variation import Expectation, Variation

COUNT = 70_001
SHORT = 1 << 16
OTHERS = 2  # the size of other dimensions of indices, at most
SAMPLES = 4
MOST = 3  # samples of an operator


@dataclass(frozen=True)
class Way:
    """How an index tensor is made long along a dimension, and what goes with it.

    That is an operand of the same shape, or the `nearest` (0: the first, -1: the last) dimension of one that has as
    many rows. Elements of what goes with it differ, or are all one.
    """

    index: torch.Tensor
    dim: int
    nearest: int

    def lengthen(self, sample: SampleInput, count: int, are_equal: bool = False) -> SampleInput:
        """The sample with so many indices."""
        shape = [count if at == self.dim else min(size, OTHERS) for at, size in enumerate(self.index.shape)]

        def change(value: Any) -> Any:
            if value is self.index:
                return place_largest_last(value, shape, self.dim)
            axis = self.find_axis(value) if isinstance(value, torch.Tensor) else None
            if axis is None:
                return value
            long = [count if at == axis else size for at, size in enumerate(value.shape)]
            elements = value.new_ones(()) if are_equal else value.detach()
            filled = spread_values(elements, shape if value.shape == self.index.shape else long)
            return filled.requires_grad_(value.requires_grad)

        args, kwargs = pytree.tree_map(change, (tuple(sample.args), dict(sample.kwargs)))
        return SampleInput(sample.input, args=args, kwargs=kwargs)

    def find_axis(self, value: torch.Tensor) -> int | None:
        """The dimension of an operand that goes with the indices."""
        if value.ndim == self.index.ndim:
            return self.dim if value.shape == self.index.shape else None
        rows = [dim for dim, size in enumerate(value.shape) if self.index.ndim == 1 and size == len(self.index)]
        return rows[self.nearest] if rows else None


def list_more_indices(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype, slopes: bool = False) -> Iterator[Varied]:
    """Samples with so many indices along the last dimension of an index tensor, or else along its first."""
    if not varies_in(opinfos, op, dtype):
        return
    chosen = choose_samples(opinfos, op, dtype, SAMPLES, requires_grad=slopes)
    lengthened = (
        varied for sample in chosen for place in list_indices(sample) if (varied := lengthen_index(op, sample, place))
    )
    for label, sample in islice(lengthened, MOST):
        # A gradient may be refused, or take memory of its own that is too small.
        yield from keep_computed(partial(differentiate, op), [(label, sample)]) if slopes else [(label, sample)]


def lengthen_index(op: OpInfo, sample: SampleInput, place: Place) -> Varied | None:
    """The first way that the CPU computes to have so many indices in an argument, if there is one."""
    index = read_argument(sample, place)
    ways = [
        Way(index, dim, nearest)
        for dim, nearest in product(dict.fromkeys((index.ndim - 1, 0)) if index.ndim else (), (0, -1))
    ]
    tried = [(str(at), way.lengthen(sample, COUNT)) for at, way in enumerate(ways)]
    for at, distinct in islice(keep_computed(stay_inside(op), tried), 1):
        way = ways[int(at)]
        # Of elements that are written to one place any may be the last, unless all are one.
        kept = distinct if ignores_order(op, distinct, COUNT) else way.lengthen(sample, COUNT, are_equal=True)
        return f"{COUNT} indices along dimension {way.dim} of {place}", kept
    return None


def place_largest_last(index: torch.Tensor, shape: list[int], dim: int) -> torch.Tensor:
    """Indices of a shape, in the range that they had, the largest of them past 16 bits along a dimension alone."""
    least, most = int(index.min()), int(index.max())
    longer = spread_values(torch.tensor([least, max(least, most - 1)], dtype=index.dtype), shape)
    longer.narrow(dim, SHORT, shape[dim] - SHORT)[..., ::2] = most
    return longer


def ignores_order(op: OpInfo, sample: SampleInput, count: int) -> bool:
    """Whether the CPU computes the same, but for rounding, where all that is so long is turned over: results too."""

    def turn(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or count not in value.shape:
            return value
        return value.detach().flip(list(value.shape).index(count))

    args, kwargs = pytree.tree_map(turn, (sample.args, sample.kwargs))
    turned = SampleInput(sample.input, args=args, kwargs=kwargs)
    one, other = (pytree.tree_leaves(compute(op, each)) for each in (sample, turned))
    pairs = zip(map(turn, one), other, strict=True)
    return all(torch.allclose(a, b, equal_nan=True) for a, b in pairs if isinstance(a, torch.Tensor))


MORE_INDICES = Variation("more_indices", list_more_indices)
SLOPES_BY_MORE_INDICES = Variation(
    "slopes_by_more_indices", partial(list_more_indices, slopes=True), expectation=Expectation.GRADIENTS
)


# Index tensors in every type of integers that the CPU takes: OpInfo mostly gives 64 bits.
#
# Kernels have an instance for each type of an index tensor, and one that is not registered is missing at the first
# call.


TYPES = (torch.int32, torch.int64, torch.int16, torch.uint8, torch.int8)
MOST_SAMPLES = 2
_OF_FLOATS = torch.float32
_INPUT = "the input"


def list_places(samples: Sequence[SampleInput]) -> list[Place]:
    """The arguments of integers in some of the samples of floats, which are indices or counts in other types too.

    Each is a position after the input, a name, or `"the input"`; a list of tensors is one argument.
    """
    every = (place for sample in samples for place, value in _list_arguments(sample) if _list_integers(value))
    return list(dict.fromkeys(every))


def cast_places(sample: SampleInput, places: Collection[Place]) -> Iterator[Varied]:
    """Yields the sample with the integers of all places in each other type that holds their values, then with each
    alone; with names for messages.
    """
    filled = [place for place, value in _list_arguments(sample) if place in places and _list_integers(value)]
    for dtype in TYPES:
        for changed in (filled, *([place] for place in filled if len(filled) > 1)):
            cast = _cast(sample, changed, dtype)
            if cast is not None:
                yield f"{' and '.join(map(str, changed))} in {name_torch(dtype)}", cast


def list_cast(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype, slopes: bool = False) -> Iterator[Varied]:
    """Those that the CPU computes, with its gradients if these are asked for."""
    floats = dtype if dtype.is_floating_point or dtype.is_complex else _OF_FLOATS
    if floats not in op.supported_dtypes("cpu"):
        return
    places = list_places(opinfos.reaching_samples(op, floats, slopes))
    few = _pick_kinds(opinfos.reaching_samples(op, dtype, slopes), places) if places else []
    compute: Callable[..., Any] = partial(differentiate, op) if slopes else stay_inside(op)
    yield from keep_computed(compute, [varied for sample in few for varied in cast_places(sample, places)])


def _pick_kinds(samples: Sequence[SampleInput], places: Collection[Place]) -> list[SampleInput]:
    """Of samples with integers in the same places, with as many dimensions, the one with the most of them."""
    largest: dict[object, tuple[int, SampleInput]] = {}
    for sample in samples:
        integers = {place: _list_integers(value) for place, value in _list_arguments(sample) if place in places}
        kind = tuple((place, tuple(each.ndim for each in tensors)) for place, tensors in integers.items() if tensors)
        count = sum(each.numel() for tensors in integers.values() for each in tensors)
        if count > largest.get(kind, (0, sample))[0]:
            largest[kind] = count, sample
    return [sample for _, sample in sorted(largest.values(), key=lambda one: -one[0])[:MOST_SAMPLES]]


def _list_arguments(sample: SampleInput) -> list[tuple[Place, Any]]:
    return [(_INPUT, sample.input), *list_passed(sample)]


def _list_integers(value: Any) -> list[torch.Tensor]:
    return [each for each in list_tensors(value) if each.dtype in TYPES]


def _cast(sample: SampleInput, places: Sequence[Place], dtype: torch.dtype) -> SampleInput | None:
    """None if no value has another type then, or some are lost."""
    before = [each for place, value in _list_arguments(sample) if place in places for each in _list_integers(value)]
    if all(each.dtype == dtype for each in before) or not all(each.to(dtype).equal(each) for each in before):
        return None
    cast: dict[Place, Any] = {
        "input" if place == _INPUT else place: pytree.tree_map_only(
            torch.Tensor, partial(_cast_integers, dtype=dtype), value
        )
        for place, value in _list_arguments(sample)
        if place in places
    }
    return replace_arguments(sample, cast)


def _cast_integers(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return tensor.to(dtype) if tensor.dtype in TYPES else tensor


INDEX_TYPES = Variation("index_types", list_cast, dtypes=None)
SLOPES_BY_INDEX_TYPES = Variation(
    "slopes_by_index_types", partial(list_cast, slopes=True), expectation=Expectation.GRADIENTS, dtypes=None
)
