"""Calls of rows in which some tensors are far larger than the others: those alone are said to need offsets of 64 bits.

Host code asks of each tensor which width its offsets need. Where it forgets one, no call shows it in which all tensors
are large, and none of OpInfo's has one that is.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.layouts import make_dense
from porter.verdict.suite.leaves import change_tensors, compute_unless_refused, list_tensors
from porter.verdict.suite.opinfos import OpInfos, take_spread
from porter.verdict.suite.overloads import Call, call_overload, record_calls
from porter.verdict.suite.resizing import lengthen_dimensions
from porter.verdict.suite.samples import copy_sample
from porter.verdict.suite.variations.choice import varies_in

LONG = 259  # elements of a dimension
MOST_ELEMENTS = 1 << 13  # of a call's first tensor
MOST_CALLS = 6  # of a row


def list_wide_operands(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[tuple[int, Varied]]:
    """Calls of rows under test, with a limit that some of their tensors are far beyond and all others within.

    For each row one call for each choice of tensors beyond it. None of lists of tensors, whose host code goes over
    parts of a result, each of which may be within.
    """
    if not varies_in(opinfos, op, dtype):
        return
    slopes = op.supports_autograd and dtype.is_floating_point
    samples = take_spread(opinfos.reaching_samples(op, dtype, requires_grad=slopes))
    counts: dict[str, int] = {}
    seen: set[tuple[str, tuple[int, ...]]] = set()
    for call in record_calls(op, samples, opinfos.context.bases):
        counts[call.name] = counts.get(call.name, 0) + 1
        if not call.args or counts[call.name] > MOST_CALLS or _has_list(call):
            continue
        for label, sample in _vary_sizes(call):
            for limit, beyond in find_limits(_list_all(sample)):
                if (call.name, beyond) not in seen:
                    seen.add((call.name, beyond))
                    yield limit, (f"{label}, with tensors {beyond} alone beyond 32 bits", sample)


def _has_list(call: Call) -> bool:
    lists = (value for value in (*call.args, *call.kwargs.values()) if isinstance(value, (list, tuple)))
    return any(isinstance(element, torch.Tensor) for element in chain.from_iterable(lists))


def _vary_sizes(call: Call) -> Iterator[Varied]:
    """Yields the call with dense tensors, then with each dimension of the first long, and each of any with one element,
    where the CPU computes that.
    """
    sample = change_tensors(call.make_sample(), make_dense)
    shapes = [tensor.shape for tensor in list_tensors((sample.input, sample.args, sample.kwargs))]
    first = sample.input.ndim if isinstance(sample.input, torch.Tensor) else 0
    lengthened = ((dim, lengthen_dimensions(call_overload, sample, {dim: LONG}, MOST_ELEMENTS)) for dim in range(first))
    cut = ((at, dim) for at, shape in enumerate(shapes) for dim, size in enumerate(shape) if size > 1)
    varied = chain(
        [(call.name, sample)],
        ((f"{call.name}, dimension {dim} of {LONG}", longer) for dim, longer in lengthened if longer is not None),
        ((f"{call.name}, one of dimension {dim} of tensor {at}", _cut(sample, at, dim)) for at, dim in cut),
    )
    yield from keep_computed(stay_inside(call_overload), varied)


def _cut(sample: SampleInput, at: int, dim: int) -> SampleInput:
    """The sample with the first of a dimension of one of its tensors alone."""
    places = iter(range(len(list_tensors((sample.input, sample.args, sample.kwargs)))))
    return change_tensors(sample, lambda tensor: make_dense(tensor.narrow(dim, 0, 1)) if next(places) == at else tensor)


def _list_all(sample: SampleInput) -> list[torch.Tensor]:
    """The tensors of a call, and its results."""
    results: Any = compute_unless_refused(call_overload, copy_sample(sample))
    return [value for value in pytree.tree_leaves((sample.input, sample.args, sample.kwargs, results))
            if isinstance(value, torch.Tensor)]  # fmt: skip


def find_limits(tensors: list[torch.Tensor]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yields limits in bytes between the sizes of tensors, with the places of the tensors beyond.

    A copy of a tensor beyond, as host code may make one of another type, is beyond too.
    """
    sizes = {at: measure(tensor) for at, tensor in enumerate(tensors) if tensor.numel()}
    for small, large in pairwise(sorted(set(sizes.values()))):
        beyond = tuple(at for at, size in sizes.items() if size >= large)
        if large > (small + 1) * max(tensors[at].element_size() for at in beyond):
            yield small + 1, beyond


def measure(tensor: torch.Tensor) -> int:
    """What `canUse32BitIndexMath` compares with the largest of 32 bits: the elements of a tensor, or the offset of the
    last in bytes.
    """
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return max(tensor.numel(), last * tensor.element_size())
