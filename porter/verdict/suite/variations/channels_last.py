"""Images and volumes with channels last, beside each other in memory: dense ones and parts of larger ones.

A tensor of that layout is dense, so that host code may take its memory as it is, and its elements for those of the
order that a kernel expects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.layouts import CHANNELS_LAST, Transform, cut_channels_last, put_channels_last
from porter.verdict.suite.leaves import change_tensors, list_operands
from porter.verdict.suite.opinfos import OpInfos
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
        twice = _double(sample)
        is_computed = any(True for _ in keep_computed(stay_inside(op), [("", twice)]))
        yield from vary_channels(twice if is_computed else sample)
    if not images:
        raised = [each for low in pick_low(op, samples)[:1] for _, each in vary_ranks(op, low)]
        computed = [sample for _, sample in keep_computed(stay_inside(op), [("", sample) for sample in raised])]
        for sample in (image for rank in CHANNELS_LAST for image in pick_images(computed, rank)[:1]):
            yield from vary_channels(sample)


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
