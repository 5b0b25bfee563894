"""Whole numbers that are as large as a size, or by one larger: diagonals, counts, windows, pads and corrections.

OpInfo's numbers are small. A kernel or a host function that bounds one, or divides by what is left of a size, is right
for them; where all of a row is shifted, or nothing is left, the CPU computes something too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.leaves import Place, list_passed, replace_argument
from porter.verdict.suite.omitted import list_omitted
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.samples import count_results
from porter.verdict.suite.variations.variation import Variation

SAMPLES = 3
MOST = 32  # calls tried for each sample
MOST_RESULTS = 1 << 16


def list_sized(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Those of samples that differ in rank and in which arguments they give, where the CPU computes them.

    Integers are of operators that take no floats.
    """
    if dtype is torch.int64 and torch.float32 in op.supported_dtypes("cpu"):
        return
    for sample in choose_kinds(opinfos.reaching_samples(op, dtype)):
        varied = islice(vary_numbers(op, sample), MOST)
        small = [each for each in varied if count_results(op, each[1]) <= MOST_RESULTS]
        yield from keep_computed(stay_inside(op), small)


def choose_kinds(samples: Sequence[SampleInput]) -> list[SampleInput]:
    """The first sample of each rank that gives each set of numbers, those of two dimensions first."""
    unlike: dict[object, SampleInput] = {}
    for sample in samples:
        sizes = _list_sizes(sample)
        if any(size > 1 for size in sizes):
            kind = len(sizes), tuple(place for place, _ in list_numbers(sample))
            unlike.setdefault(kind, sample)
    return sorted(unlike.values(), key=lambda sample: (not list_numbers(sample), abs(len(_list_sizes(sample)) - 2)))[
        :SAMPLES
    ]


def _list_sizes(sample: SampleInput) -> list[int]:
    """The sizes of the input; of a call of numbers alone, as `tril_indices`, all numbers above zero."""
    if isinstance(sample.input, torch.Tensor):
        return list(sample.input.shape) if sample.input.numel() else []
    numbers = (sample.input, *sample.args) if type(sample.input) is int else ()
    return [number for number in numbers if type(number) is int and number > 0]


def vary_numbers(op: OpInfo, sample: SampleInput) -> Iterator[Varied]:
    """Yields the sample with each number, or one of a list, at each size and beside it, with either sign.

    Numbers that the sample omits are varied too.
    """
    ends = _list_sizes(sample)
    sizes = dict.fromkeys((ends[-1], ends[0], math.prod(ends)))
    others = list(dict.fromkeys(chain.from_iterable((size, -size, size + 1, -size - 1, size - 1) for size in sizes)))
    for place, value in list_numbers(sample):
        for label, other in _replace_each(value, others):
            yield f"with {place}{label}={other}", replace_argument(sample, place, other)
    for argument in list_omitted(op, sample):
        if argument.values and type(argument.values[0]) in (int, float):
            for number in others:
                yield f"with {argument.name}={number}", replace_argument(sample, argument.name, number)


def list_numbers(sample: SampleInput) -> list[tuple[Place, Any]]:
    """Arguments that are a whole number or a list of them."""
    return [(place, value) for place, value in list_passed(sample) if _is_whole(value)]


def _is_whole(value: Any) -> bool:
    several = value if isinstance(value, (list, tuple)) else [value]
    return bool(several) and all(type(number) is int for number in several)


def _replace_each(value: Any, numbers: Sequence[int]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, int):
        yield from (("", number) for number in numbers if number != value)
        return
    kind = type(value) if type(value) in (list, tuple) else tuple
    for number in numbers:
        for at in range(len(value)):
            if number != value[at]:
                yield f"[{at}]", kind((*value[:at], number, *value[at + 1 :]))


SIZED_ARGUMENTS = Variation("sized_arguments", list_sized, dtypes=(torch.float32, torch.int64))
