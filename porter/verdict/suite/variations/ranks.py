"""Samples of three, four and five dimensions of different sizes, each of which an operator goes over once.

A kernel that finds its way by the last few dimensions, or by the stride of another one, is right in fewer of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, islice
from typing import Any, TypeGuard

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.context import aten_names
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.gradients import differentiate
from porter.verdict.suite.leaves import (
    Place,
    change_tensors,
    list_operands,
    list_tensors,
    read_argument,
    replace_argument,
)
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.variations.variation import Expectation, Variation

RANKS = (3, 4, 5)
NAMES = ("dim", "dims", "dim0", "axis")
_LISTS = ((0,), (-1,), (1, 2), (0, -1), (-2, 0, 1))  # dimensions, for what goes over several
_MOST_SAMPLES = 3
_MOST_ELEMENTS = 512  # before there are more dimensions


def list_raised(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype, every: bool = False) -> Iterator[Varied]:
    """Few samples in each number of dimensions, and over each dimension by its name, where the CPU computes that."""
    for sample in pick_low(op, opinfos.reaching_samples(op, dtype)):
        narrow = narrow_sizes(sample, find_dim(op, sample))
        base = narrow if any(True for _ in keep_computed(op, [("", narrow)])) else sample
        yield from keep_computed(stay_inside(op), vary_ranks(op, base, every))


def list_slopes(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """One sample in each number of dimensions, as above, that the CPU differentiates: of what gradients alone call."""
    if not opinfos.context.through_backward:
        return
    for sample in pick_low(op, opinfos.reaching_samples(op, dtype, requires_grad=True))[:1]:
        yield from keep_computed(partial(differentiate, op), vary_ranks(op, sample))


def pick_low(op: OpInfo, samples: Sequence[SampleInput]) -> list[SampleInput]:
    """Of samples that name no dimension, one or several, and have as many tensors, each time the one of most
    dimensions, if there is one with several elements in each.
    """
    kinds: dict[object, tuple[tuple[bool, int], SampleInput]] = {}
    for sample in samples:
        tensor = _first_tensor(sample)
        if 0 < tensor.ndim <= max(RANKS) and 0 < tensor.numel() <= _MOST_ELEMENTS:
            place = find_dim(op, sample)
            kind = None if place is None else type(read_argument(sample, place)), len(list_operands(sample))
            worth = min(tensor.shape) > 1, tensor.ndim
            if kind not in kinds or worth > kinds[kind][0]:
                kinds[kind] = worth, sample
    return [sample for _, sample in kinds.values()][:_MOST_SAMPLES]


def vary_ranks(op: OpInfo, sample: SampleInput, every: bool = False) -> Iterator[Varied]:
    """Yields the sample in more dimensions, with names for messages; the CPU may refuse some of them.

    Tensors of as many dimensions as the input are raised with it. In five dimensions one that is named is each in turn;
    in fewer it is the first and the last one, counted from the last, or `every` one.
    """
    rank, place = find_rank(sample), find_dim(op, sample)
    dim = None if place is None else read_argument(sample, place)
    for most in (most for most in RANKS if most >= rank):
        told, raised = f"{most} dimensions", add_dimensions(sample, most, before=True)
        if place is not None and _is_dim(dim, rank):
            start = dim % rank + most - rank
            for end in range(most) if every or most == max(RANKS) else (0, most - 1):
                named = end if most == max(RANKS) else end - most
                moved = _transform(raised, partial(_move, rank=most, start=start, end=end))
                yield f"{told}, {place}={named}", replace_argument(moved, place, named)
        else:
            yield told, raised
            if place is not None:
                for dims in _LISTS if every or most == max(RANKS) else _LISTS[-1:]:
                    yield f"{told}, {place}={dims}", replace_argument(raised, place, dims)
        if most > rank:
            yield f"{told}, new ones last", add_dimensions(sample, most, before=False)


def find_dim(op: OpInfo, sample: SampleInput) -> Place | None:
    """The argument of a sample that names a dimension or several, by position after the input or by name."""
    named = next((name for name in NAMES if _is_dims(sample.kwargs.get(name))), None)
    if named is not None:
        return named
    for names in _list_signatures(op):
        for at, (name, value) in enumerate(zip(names[1:], sample.args, strict=False)):
            if name in NAMES and _is_dims(value):
                return at
    return None


def find_rank(sample: SampleInput) -> int:
    """The number of dimensions of the input, or of the first tensor in it; 0 if it has none."""
    return _first_tensor(sample).ndim


def narrow_sizes(sample: SampleInput, place: Place | None) -> SampleInput:
    """The sample cut to sizes that all differ, but in the one dimension that it names: indices reach to its end."""
    rank, shape = find_rank(sample), _first_tensor(sample).shape
    dim = None if place is None else read_argument(sample, place)
    kept = dim % rank if _is_dim(dim, rank) else None
    used = {shape[kept]} if kept is not None else set()
    sizes = list(shape)
    for at in sorted(range(rank), key=lambda at: shape[at]):
        if at != kept:
            sizes[at] = next((size for size in range(shape[at], 1, -1) if size not in used), shape[at])
            used.add(sizes[at])
    return _transform(sample, partial(_narrow, sizes=sizes))  # a copy


def add_dimensions(sample: SampleInput, most: int, before: bool) -> SampleInput:
    """The sample with others before its dimensions or after them, each of a size that no other has.

    Elements are in other places in each part, which an operator takes as it does the sample's.
    """
    rank, shape = find_rank(sample), _first_tensor(sample).shape
    sizes = list(islice((size for size in count(2) if size not in shape), most - rank))
    return _transform(sample, partial(_raise, rank=rank, sizes=sizes, before=before))


def _raise(tensor: torch.Tensor, rank: int, sizes: Sequence[int], before: bool) -> torch.Tensor:
    if tensor.ndim != rank:
        return tensor
    for size in sizes:
        dims = tuple(range(tensor.ndim))
        turned = [tensor.flip(dims).roll([turn] * len(dims), dims) if turn else tensor for turn in range(size)]
        tensor = torch.stack(turned, 0 if before else tensor.ndim)
    return tensor.contiguous()


def _narrow(tensor: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    if tensor.ndim != len(sizes):
        return tensor
    return tensor[tuple(slice(size) for size in sizes)].clone(memory_format=torch.contiguous_format)


def _move(tensor: torch.Tensor, rank: int, start: int, end: int) -> torch.Tensor:
    return tensor.movedim(start, end).contiguous() if tensor.ndim == rank else tensor


def _transform(sample: SampleInput, change: Callable[[torch.Tensor], torch.Tensor]) -> SampleInput:
    return change_tensors(sample, lambda t: change(t.detach()).detach().requires_grad_(t.requires_grad))


def _first_tensor(sample: SampleInput) -> torch.Tensor:
    tensors = list_tensors(sample.input)
    return next((value for value in tensors if value.layout is torch.strided), torch.empty(()))


def _is_dim(value: Any, rank: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and -rank <= value < rank


def _is_dims(value: Any) -> bool:
    several = value if isinstance(value, (list, tuple)) else [value]
    return all(isinstance(one, int) and not isinstance(one, bool) for one in several)


def _list_signatures(op: OpInfo) -> Iterator[list[str]]:
    """The names of the arguments, the input's first: a Python function's, and those of every overload in ATen."""
    if inspect.isfunction(op.op):
        yield list(inspect.signature(op.op).parameters)
    for name in sorted(aten_names(op)):
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
            yield [argument.name for argument in schema.arguments]


SLOPES_BY_RANKS = Variation("slopes_by_ranks", list_slopes, expectation=Expectation.GRADIENTS)
FEW = Variation("ranks", list_raised)
EVERY = Variation("every_dimension", partial(list_raised, every=True), thorough=True)
