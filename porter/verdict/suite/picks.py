"""Samples with long rows of elements that all differ, for operators that pick elements or give whole numbers.

OpInfo's rows are short, and long ones of equal elements hide most of what is picked wrongly. Nothing is rounded where
elements are picked, so that any elements do: each result is right or wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import turn_flags
from porter.verdict.suite.leaves import compute_unless_refused, list_tensors, replace_input
from porter.verdict.suite.long_rows import keeps, reduces

LONG, ROWS = 2_500, 3  # more elements than two threadgroups have threads
SHORT = 37, 2  # enough to tell an operator that picks; of one element in a dimension, sums pick it too


def list_picked(op: OpInfo, sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    """The sample with several long rows in each dimension, with names for messages, and with each of its flags turned
    over, where the CPU picks elements of such rows.
    """
    if not _is_alone(sample):
        return
    for dim in range(sample.input.ndim):
        if not picks(op, roughen(shuffle(sample, dim, *SHORT))):
            continue
        long = shuffle(sample, dim)
        for label, turned in (("", long), *((f", {label}", flagged) for label, flagged in turn_flags(op, long))):
            yield f"long rows that differ in dimension {dim}{label}", turned
            if turned.input.is_floating_point():
                yield f"long rows with a NaN in dimension {dim}{label}", put_nan(turned)


def picks(op: OpInfo, sample: SampleInput) -> bool:
    """Whether all results of a sample are elements of its input, or whole numbers, and no more than these."""
    result = compute_unless_refused(op, sample)
    is_by_rows = keeps(result, sample) or reduces(result, sample)
    return is_by_rows and all(_is_exact(each, sample.input) for each in list_tensors(result))


def shuffle(sample: SampleInput, dim: int, long: int = LONG, others: int = 1) -> SampleInput:
    """The sample with another input: rows along a dimension, of which no two elements are equal.

    Where there is another dimension, there are several rows.
    """
    rank = sample.input.ndim
    shape = [long if each == dim else ROWS if each == (dim + 1) % rank else others for each in range(rank)]
    count = math.prod(shape)
    numbers = torch.randperm(count, generator=torch.Generator().manual_seed(0)) - count // 3
    return replace_input(sample, numbers.view(shape).to(sample.input.dtype))


def roughen(sample: SampleInput) -> SampleInput:
    """The sample with floats at no even distances, of which no sum or mean is one of them."""
    return replace_input(sample, sample.input.sin() if sample.input.is_floating_point() else sample.input)


def put_nan(sample: SampleInput) -> SampleInput:
    """The sample with one NaN, in the middle of a row: any other row has none."""
    changed = sample.input.clone()
    changed.view(-1)[changed.numel() // 2] = math.nan
    return replace_input(sample, changed)


def _is_alone(sample: SampleInput) -> bool:
    """Whether the input has dimensions, and no other tensor has sizes that go with its own."""
    if list_tensors((sample.args, sample.kwargs)) or not isinstance(sample.input, torch.Tensor):
        return False
    return sample.input.ndim > 0 and sample.input.numel() > 0


def _is_exact(result: torch.Tensor, source: torch.Tensor) -> bool:
    """Whether a result is of whole numbers, or its elements are a tensor's."""
    if not result.is_floating_point() and not result.is_complex():
        return True
    return result.dtype == source.dtype and bool(torch.isin(result, source).all())


def tell_apart(samples: list[SampleInput]) -> list[SampleInput]:
    """The first sample of each rank and other arguments."""
    unlike: dict[Any, SampleInput] = {}
    for sample in samples:
        rank = sample.input.ndim if isinstance(sample.input, torch.Tensor) else None
        unlike.setdefault((rank, repr((sample.args, sample.kwargs))), sample)
    return list(unlike.values())
