"""Tensors made of numbers alone: so many elements that 16 bits count none of the last ones, and fractions for integers.

A kernel of `arange` that counts in the result's type is right for all that OpInfo has: of 2,048 elements or fewer a
half counts each, and a bfloat16 of 256. An integer is what is left of a fraction, and upstream's tolerance of one
accepts what it is rounded to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.leaves import Place, replace_arguments
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.samples import count_results
from porter.verdict.suite.variations.variation import Expectation, Variation

COUNT = 2_112  # more than the 2,048 of a half, and a number that a bfloat16 has
FRACTION = 0.5
SAMPLES = 3
MOST_RESULTS = 1 << 14
NARROW = (torch.int16, torch.int8, torch.uint8)
WHOLE = (torch.int64, torch.int32, *NARROW)


def list_counted(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples with each number far below zero or above it, which makes them long, and for integers a fraction more."""
    for sample in choose_numbered(opinfos.reaching_samples(op, dtype)):
        varied = (each for each in vary_numbers(sample, dtype) if 0 < count_results(op, each[1]) <= MOST_RESULTS)
        yield from keep_computed(op, varied)


def choose_numbered(samples: Iterable[SampleInput]) -> list[SampleInput]:
    """The first ones whose arguments by position are numbers, of each count of these."""
    several: dict[int, list[SampleInput]] = {}
    for sample in samples:
        if all(type(value) in (int, float) for value in (sample.input, *sample.args)):
            several.setdefault(len(sample.args), []).append(sample)
    return [sample for alike in several.values() for sample in alike[:SAMPLES]]


def pick_samples(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> list[SampleInput]:
    """A few samples with a tensor input, or where an operator takes none, of numbers."""
    return opinfos.pick_samples(op, dtype) or choose_numbered(opinfos.reaching_samples(op, dtype))


def vary_numbers(sample: SampleInput, dtype: torch.dtype) -> Iterator[Varied]:
    """The sample with each number far from zero, and integers with a fraction more or the last so beside."""
    places: list[Place] = ["input", *range(len(sample.args))]
    numbers = (sample.input, *sample.args)
    far = [{place: other} for place in places for other in (-COUNT, COUNT)] if dtype not in NARROW else []
    yield from (_replace(sample, others) for others in far)
    if dtype in WHOLE:
        last = {places[-1]: numbers[-1] + FRACTION}
        yield from (_replace(sample, others | last) for others in far[:-2])
        yield from (_replace(sample, {at: value + FRACTION}) for at, value in zip(places, numbers, strict=True))


def _replace(sample: SampleInput, others: Mapping[Place, float]) -> Varied:
    label = ", ".join(f"{place}={other}" for place, other in others.items())
    return f"with {label}", replace_arguments(sample, others)


COUNTED = Variation("counted", list_counted, expectation=Expectation.TRUNCATED, dtypes=None)
