"""Whole numbers that 32 bits, or a float, take for others: far from an index that is there, and beside powers of two.

`ignore_index = 2^32 + 1` ignores nothing, but in 32 bits the first class. Of 2^24 + 1 a float has no more than 2^24,
of 2^53 + 1 not even a double: elements, values to fill with or to look for, and keys have to stay apart.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import (
    Varied,
    keep_computed,
    shift_integers,
    shift_numbers,
    spread_integers,
    vary_far_numbers,
)
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.leaves import Place, list_passed, list_tensors, replace_argument, replace_input
from porter.verdict.suite.omitted import list_omitted
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.samples import with_edge_values
from porter.verdict.suite.variations.choice import choose_factories, choose_samples
from porter.verdict.suite.variations.variation import Expectation, Operators, Variation

_PAST = 64  # more than samples have below zero: what is added to them ends past the power of two
# Of two that are one apart, one is odd wherever it is added.
SHIFTS = (2**24 + _PAST, 2**24 + _PAST + 1, 2**53 + _PAST, 2**53 + _PAST + 1)
SAMPLES = 3
PRESENT = 3  # numbers of an index tensor
SCALARS = (2**24 + 1, -(2**24) - 1, 2**53 + 1)  # of elementwise operators, whose edge values have what is beside them
_INDICES = (torch.int64, torch.int32)


def list_far_numbers(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples with a number far from what is in their index tensors, and in int64 with larger elements and numbers, and
    with elements of which 32 bits leave nothing.

    Those that make a tensor of numbers alone are among the latter.
    """
    chosen = choose_samples(opinfos, op, dtype, SAMPLES)
    varied = [each for sample in chosen for each in vary_far_numbers(op, sample, list_present(sample))]
    if dtype == torch.int64:
        varied += [each for sample in chosen for by in SHIFTS for each in shift_integers(op, sample, by)]
        varied += [each for sample in chosen for each in spread_integers(op, tell_apart(sample))]
        factories = choose_factories(opinfos, op, dtype, SAMPLES)
        varied += [each for sample in factories for by in SHIFTS for each in shift_numbers(op, sample, by)]
    yield from keep_computed(stay_inside(op), varied)


def tell_apart(sample: SampleInput) -> SampleInput:
    """The sample with unlike elements, if all of its input are one: the first of nonzero are zeros."""
    if sample.input.numel() < 2 or (sample.input != sample.input.flatten()[0]).any():
        return sample
    return replace_input(sample, (torch.arange(sample.input.numel()) % 3).view(sample.input.shape).to(sample.input))


def list_present(sample: SampleInput) -> list[int]:
    """A few of the numbers in tensors of integers beside the input, the most frequent ones."""
    indices = [each for each in list_tensors((sample.args, sample.kwargs)) if each.dtype in _INDICES]
    if not indices:
        return []
    values, counts = torch.cat([each.flatten().long() for each in indices]).unique(return_counts=True)
    return [int(value) for value in values[counts.argsort(descending=True, stable=True)][:PRESENT]]


def list_far_scalars(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """A sample of each kind with each of its numbers, or its second operand, a number that no float is; edge values.

    Numbers that a call omits are among them.
    """
    context = opinfos.context
    seen: set[str] = set()
    for sample in opinfos.pick_kinds(op, dtype):
        places = list_number_places(op, sample)
        varied = [
            (f"with {place}={number}", replace_argument(sample, place, number))
            for place in places
            for number in SCALARS
        ]
        for label, each in keep_computed(op, [each for each in varied if each[0] not in seen]):
            seen.add(label)
            yield label, with_edge_values(each, dtype, context.literals, context.most)


def list_number_places(op: OpInfo, sample: SampleInput) -> list[Place]:
    """The arguments that take a number: given ones, by position or name, those that a call omits, and a second tensor.

    A whole number, a real one or None stands there, or a tensor of the input's type.
    """
    passed = list_passed(sample)
    omitted = ((argument.name, argument.values[0]) for argument in list_omitted(op, sample))
    tensors = [place for place, value in passed if _is_operand(value, sample.input)][:1]
    return [*(place for place, value in (*passed, *omitted) if value is None or type(value) in (int, float)), *tensors]


def _is_operand(value: object, source: torch.Tensor) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype == source.dtype


FAR_NUMBERS = Variation("far_numbers", list_far_numbers, dtypes=(torch.float32, torch.int64))
FAR_SCALARS = Variation(
    "far_scalars",
    list_far_scalars,
    operators=Operators.POINTWISE,
    expectation=Expectation.ELEMENTS,
    dtypes=(torch.int64,),
)
