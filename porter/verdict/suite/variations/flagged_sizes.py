"""Arguments that samples omit, and sizes that a flag alone allows.

With `enable_gqa`, keys of attention have fewer heads than queries, which share them. OpInfo has no such samples. A
kernel that pairs heads in another way is right where there are as many of both.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_computed, keep_refused
from porter.verdict.suite.leaves import list_passed, replace_argument, replace_arguments
from porter.verdict.suite.omitted import list_omitted, vary_omitted, vary_strings, vary_tensors
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.samples import copy_sample, with_edge_values
from porter.verdict.suite.variations.choice import choose_samples
from porter.verdict.suite.variations.variation import Expectation, Operators, Variation

SAMPLES = 6
LEAST = 4  # elements along a dimension, so that two are left


def list_flagged(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples with half of the other tensors along a dimension, which the CPU refuses without a flag that they omit."""
    for sample in choose_samples(opinfos, op, dtype, SAMPLES):
        flags = [argument.name for argument in list_omitted(op, sample) if True in argument.values]
        for label, halved in keep_refused(op, halve_others(sample) if flags else ()):
            flagged = [(f"{label} with {name}", replace_argument(halved, name, True)) for name in flags]
            yield from keep_computed(op, flagged)


def halve_others(sample: SampleInput) -> Iterator[Varied]:
    """The sample with half of all tensors behind its input, along each dimension that they have in common."""
    others = {place: value for place, value in list_passed(sample) if isinstance(value, torch.Tensor)}
    for dim in range(1, min((value.ndim for value in others.values()), default=0) + 1):
        sizes = {value.shape[-dim] for value in others.values()}
        if len(sizes) == 1 and (size := min(sizes)) >= LEAST:
            halves = {place: value.narrow(-dim, 0, size // 2) for place, value in others.items()}
            yield f"half of dimension -{dim}", replace_arguments(sample, halves)


FLAGGED_SIZES = Variation("flagged_sizes", list_flagged)


_SAMPLES = 2


def list_structured(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Those of the first samples that the CPU computes.

    Arguments that samples omit, and strings at each value, of operators that are not elementwise and of those that are.
    Elementwise ones get edge values: what `nan=` and `posinf=` are for, no random element shows.
    """
    for sample in opinfos.pick_samples(op, dtype)[:_SAMPLES]:
        varied = [*vary_omitted(op, sample), *vary_strings(op, sample)]
        if varied:
            yield from ((label, copy_sample(each)) for label, each in keep_computed(op, varied))


def list_elementwise(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Those of a sample of each kind, with edge values."""
    context = opinfos.context
    for sample in opinfos.pick_kinds(op, dtype)[:_SAMPLES]:
        for label, varied in (*vary_omitted(op, sample), *vary_strings(op, sample)):
            yield label, with_edge_values(varied, dtype, context.literals, context.most)


def list_numbered(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """A sample of each kind with numbers in place of tensors, and edge values: OpInfo's samples of clamp have none."""
    context = opinfos.context
    for sample in opinfos.pick_kinds(op, dtype)[:_SAMPLES]:
        numbered = (labeled for labeled in vary_tensors(sample) if _is_at_most(labeled[1], context.most))
        for label, varied in keep_computed(op, numbered):
            yield label, with_edge_values(varied, dtype, context.literals, context.most)


def _is_at_most(sample: SampleInput, most: float) -> bool:
    numbers = (value for value in (*sample.args, *sample.kwargs.values()) if isinstance(value, (int, float)))
    return all(abs(number) <= most for number in numbers)


STRUCTURED = Variation("omitted_arguments", list_structured)
ELEMENTWISE = Variation(
    "omitted_numbers", list_elementwise, operators=Operators.POINTWISE, expectation=Expectation.ELEMENTS
)
NUMBERED = Variation(
    "numbers_for_tensors",
    list_numbered,
    operators=Operators.POINTWISE,
    expectation=Expectation.ELEMENTS,
    dtypes=(torch.float32, torch.int64, torch.uint8),
)
