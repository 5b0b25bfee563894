"""Arguments that samples omit, and strings at each value, of operators that are not elementwise and of those that are.

Elementwise ones get edge values: what `nan=` and `posinf=` are for, no random element shows.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.omitted import vary_omitted, vary_strings, vary_tensors
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.samples import copy_sample, with_edge_values
from porter.verdict.suite.variations.variation import Expectation, Operators, Variation

_SAMPLES = 2


def list_structured(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Those of the first samples that the CPU computes."""
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
