"""Images and volumes with channels last, beside each other in memory: dense ones and parts of larger ones.

A tensor of that layout is dense, so that host code may take its memory as it is, and its elements for those of the
order that a kernel expects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.indices import keep_written_once
from porter.verdict.suite.layouts import (
    BEHIND,
    CHANNELS_LAST,
    Transform,
    cut_channels_last,
    leave_gaps,
    make_dense,
    put_channels_last,
    shift,
    take_every_second,
)
from porter.verdict.suite.leaves import change_tensors, compute_unless_refused, list_operands, list_tensors
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.overloads import AS_RECORDED, Call, call_overload, record_calls
from porter.verdict.suite.samples import copy_sample
from porter.verdict.suite.variations.choice import MOST_FLAGS, choose_vectors, list_flags, varies_in
from porter.verdict.suite.variations.ranks import pick_low, vary_ranks
from porter.verdict.suite.variations.variation import Variation

MOST_SAMPLES = 2  # of each number of dimensions
_MOST_ELEMENTS = 16384
_CHANGES = {"channels last": put_channels_last, "part of channels last": cut_channels_last}


def list_channels_last(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Images and volumes of an operator with channels last; of one whose samples have fewer dimensions, those raised
    where the CPU computes that.
    """
    samples = opinfos.reaching_samples(op, dtype)
    images = [image for rank in CHANNELS_LAST for image in pick_images(samples, rank)]
    for sample in images:
        twice = _keep_if_computed(op, _double(sample), sample)
        more = _keep_if_computed(op, _add_channels(twice), twice) if _has_one_channel(op, twice) else twice
        yield from vary_channels(more)
    if not images:
        raised = [each for low in pick_low(op, samples)[:1] for _, each in vary_ranks(op, low)]
        computed = [sample for _, sample in keep_computed(stay_inside(op), [("", sample) for sample in raised])]
        for sample in (image for rank in CHANNELS_LAST for image in pick_images(computed, rank)[:1]):
            yield from vary_channels(sample)


def _keep_if_computed(op: OpInfo, varied: SampleInput, sample: SampleInput) -> SampleInput:
    return varied if any(True for _ in keep_computed(stay_inside(op), [("", varied)])) else sample


def _has_one_channel(op: OpInfo, sample: SampleInput) -> bool:
    """Whether a result is an image or a volume of one channel, whose layouts are all one."""
    results = list_tensors(compute_unless_refused(op, copy_sample(sample)))
    return any(result.ndim in CHANNELS_LAST and result.shape[1] == 1 for result in results)


def _add_channels(sample: SampleInput) -> SampleInput:
    """The sample with as many channels again in each image or volume."""

    def add(tensor: torch.Tensor) -> torch.Tensor:
        is_image = tensor.ndim in CHANNELS_LAST
        return torch.cat([tensor.detach(), tensor.detach().flip(1, -1)], 1) if is_image else tensor

    return change_tensors(sample, add)


def _double(sample: SampleInput) -> SampleInput:
    """The sample with another image or volume after each that is alone: one has no stride to be wrong."""

    def double(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.ndim not in CHANNELS_LAST or len(tensor) != 1:
            return tensor
        return torch.cat([tensor.detach(), tensor.detach().flip(tuple(range(tensor.ndim)))])

    return change_tensors(sample, double)


def pick_images(samples: Sequence[SampleInput], rank: int) -> list[SampleInput]:
    """A few samples with a tensor of so many dimensions that has another layout with channels last, the most channels
    first.
    """
    sized = [(_find_channels(sample, rank), at) for at, sample in enumerate(samples)]
    return [samples[at] for channels, at in sorted(sized, key=lambda one: (-one[0], one[1])) if channels][:MOST_SAMPLES]


def vary_channels(sample: SampleInput) -> Iterator[Varied]:
    """Yields the sample with all images and volumes in other layouts, and the first alone, with names for messages."""
    count = sum(_differs(tensor) for tensor in list_operands(sample))
    for told, change in _CHANGES.items():
        if count:
            yield told, _change(sample, change, count)
    if count > 1:
        yield "channels last, the first alone", _change(sample, put_channels_last, 1)


def _change(sample: SampleInput, change: Transform, most: int) -> SampleInput:
    """The sample with the first of its images and volumes changed, as many as told."""
    turns = iter(range(most))

    def visit(tensor: torch.Tensor) -> torch.Tensor:
        return change(tensor.detach()) if _differs(tensor) and next(turns, None) is not None else tensor

    return change_tensors(sample, visit)


def _find_channels(sample: SampleInput, rank: int) -> int:
    """The channels of the first image or volume, 0 if there is none."""
    tensors = list_operands(sample)
    if sum(tensor.numel() for tensor in tensors) > _MOST_ELEMENTS:
        return 0
    return next((tensor.shape[1] for tensor in tensors if tensor.ndim == rank and _differs(tensor)), 0)


def _differs(tensor: torch.Tensor) -> bool:
    """Whether a tensor with elements has other strides with channels last."""
    is_image = tensor.layout is torch.strided and tensor.ndim in CHANNELS_LAST and tensor.numel() > 0
    return is_image and put_channels_last(tensor.detach()).stride() != tensor.stride()


CHANNELS = Variation("channels_last", list_channels_last)


# Calls of the rows under test, forward and backward, with their tensors in other memory layouts.
#
# A backward row is given gradients, and what the forward kept: results, statistics, indices. A Python function makes
# all of these but the gradient, in the layout that it likes; who calls the row gives each in any.


_MOST_SAMPLES = 24  # that calls are recorded of
_MOST_CALLS = 2  # of each row, with vectors and without
_MOST_IN_CALL = 1 << 12


def reverse_strides(tensor: torch.Tensor) -> torch.Tensor:
    """The first dimension innermost in memory, the last one outermost."""
    dims = tuple(range(tensor.ndim))[::-1]
    return tensor.permute(dims).contiguous().permute(dims)


_TURNED: Mapping[str, Transform] = {
    "reversed": reverse_strides,
    "part of a larger one": leave_gaps,
    "every second element": take_every_second,
}


def list_call_layouts(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """A few calls of each row, one of them with rows that vectors are read of, in other layouts that the CPU takes."""
    if not varies_in(opinfos, op, dtype):
        return
    slopes = op.supports_autograd and dtype.is_floating_point
    vectors = choose_vectors(opinfos, op, dtype, requires_grad=slopes)
    reaching = opinfos.reaching_samples(op, dtype, requires_grad=slopes)
    others = reaching[:: len(reaching) // _MOST_SAMPLES + 1]
    for several in (vectors, others):
        chosen: dict[str, dict[str, Call]] = {}
        for call in _sort_calls(op, several, opinfos):
            chosen.setdefault(call.name, {}).setdefault(_describe(call), call)
        for call in chain.from_iterable(_pick_unlike(list(calls.values())) for calls in chosen.values()):
            yield from keep_written_once(call_overload, keep_computed(stay_inside(call_overload), vary_tensors(call)))


def _pick_unlike(calls: list[Call]) -> list[Call]:
    """The first few calls of a row, and one of each of a few other choices of flags, which may have kernels of their
    own: a batch norm outside of training.
    """
    flags = [list_flags(call.make_sample()) for call in calls]
    later = [at for at in range(_MOST_CALLS, len(calls)) if flags[at] not in flags[:at]]
    return [*calls[:_MOST_CALLS], *(calls[at] for at in later[:MOST_FLAGS])]


def _sort_calls(op: OpInfo, samples: Iterable[SampleInput], opinfos: OpInfos) -> list[Call]:
    """The calls that samples end in: first those of most tensors with several elements, then of most dimensions."""
    calls = record_calls(op, samples, opinfos.context.bases)
    small = [call for call in calls if 0 < _count_elements(call) <= _MOST_IN_CALL]
    return sorted(small, key=_judge, reverse=True)


def _judge(call: Call) -> tuple[int, int]:
    tensors = _list_tensors(call)
    return sum(len(tensor) > 1 for tensor in tensors if tensor.ndim), max(tensor.ndim for tensor in tensors)


def vary_tensors(call: Call) -> Iterator[Varied]:
    """Yields a call as it was recorded, which tells what its user does not see. Then with each of its tensors alone
    behind other elements, dense as it is: a kernel that reads vectors asks where each of them starts. Then with each in
    one of the other layouts, in turns, so that no two are alike.
    """
    yield f"{call.name}{AS_RECORDED}", call.make_sample()
    count = len(_list_tensors(call))
    layouts = list(_TURNED.items())
    for at in range(count):
        changes: list[Transform] = [shift if place == at else make_dense for place in range(count)]
        yield f"{call.name}, tensor {at} {BEHIND}", _change_call(call, changes).make_sample()
    for turn in range(len(layouts)):
        turned = [layouts[(turn + place) % len(layouts)] for place in range(count)]
        label = ", ".join(name for name, _ in turned)
        yield f"{call.name}, tensors {label}", _change_call(call, [change for _, change in turned]).make_sample()


def _change_call(call: Call, changes: Sequence[Transform]) -> Call:
    rest = iter(changes)
    args, kwargs = pytree.tree_map(
        lambda value: next(rest)(value.detach()) if _is_strided(value) else value, (call.args, call.kwargs)
    )
    return replace(call, args=tuple(args), kwargs=kwargs)


def _list_tensors(call: Call) -> list[torch.Tensor]:
    return [value for value in pytree.tree_leaves((call.args, call.kwargs)) if _is_strided(value)]


def _is_strided(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.strided


def _count_elements(call: Call) -> int:
    return max((tensor.numel() for tensor in _list_tensors(call)), default=0)


def _describe(call: Call) -> str:
    """The ranks of its tensors, and its other arguments but for lists: a dimension decides whether vectors are read."""
    others = [value for value in (*call.args, *call.kwargs.values()) if isinstance(value, (bool, int, float, str))]
    return repr(([tensor.ndim for tensor in _list_tensors(call)], others))


CALL_LAYOUTS = Variation("call_layouts", list_call_layouts, calls_overloads=True)
