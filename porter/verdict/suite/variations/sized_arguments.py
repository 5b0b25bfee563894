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

from porter.verdict.suite.arguments import (
    Varied,
    keep_computed,
    scale_numbers,
    shift_integers,
    shift_numbers,
    spread_integers,
    vary_far_numbers,
)
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.leaves import Place, list_passed, list_tensors, replace_argument, replace_input
from porter.verdict.suite.omitted import list_omitted
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.samples import count_results, with_edge_values
from porter.verdict.suite.variations.choice import choose_factories, choose_flags, choose_samples, list_words
from porter.verdict.suite.variations.variation import Expectation, Operators, Variation

SAMPLES = 3
SCALE = (1 << 32) + 1  # of no float, nor of 32 bits
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


# Whole numbers that 32 bits, or a float, take for others: far from an index that is there, and beside powers of two.
#
# `ignore_index = 2^32 + 1` ignores nothing, but in 32 bits the first class. Of 2^24 + 1 a float has no more than 2^24,
# of 2^53 + 1 not even a double: elements, values to fill with or to look for, and keys have to stay apart.


_PAST = 64  # more than samples have below zero: what is added to them ends past the power of two
# Of two that are one apart, one is odd wherever it is added.
SHIFTS = (2**24 + _PAST, 2**24 + _PAST + 1, 2**53 + _PAST, 2**53 + _PAST + 1)
PRESENT = 3  # numbers of an index tensor
SCALARS = (2**24 + 1, -(2**24) - 1, 2**53 + 1)  # of elementwise operators, whose edge values have what is beside them
_INDICES = (torch.int64, torch.int32)


def list_far_numbers(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples with a number far from what is in their index tensors, and in int64 with larger elements and numbers, and
    with elements of which 32 bits leave nothing.

    Those that make a tensor of numbers alone are among the latter. Of the former some have other strings, as losses do.
    """
    chosen = choose_samples(opinfos, op, dtype, SAMPLES)
    unlike = choose_flags(opinfos, op, dtype, chosen, list_words, requires_grad=False)
    varied = [each for sample in (*chosen, *unlike) for each in vary_far_numbers(op, sample, list_present(sample))]
    if dtype == torch.int64:
        varied += [each for sample in chosen for by in SHIFTS for each in shift_integers(op, sample, by)]
        varied += [each for sample in chosen for each in spread_integers(op, tell_apart(sample))]
        factories = choose_factories(opinfos, op, dtype, SAMPLES)
        varied += [each for sample in factories for by in SHIFTS for each in shift_numbers(op, sample, by)]
        varied += [each for sample in factories for each in scale_numbers(op, sample, SCALE)]
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


NUMBER = 0.75 - 1.5j


def list_complex_scalars(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """A sample of each kind with each of its numbers, those that a call omits too, a complex one.

    Numbers of complex calls with an imaginary part: OpInfo's `alpha`, `value` and exponents are real ones. With a real
    number a product's real and imaginary parts need one of its two terms alone.
    """
    seen: set[str] = set()
    for sample in opinfos.pick_kinds(op, dtype):
        tensors = {place for place, value in list_passed(sample) if isinstance(value, torch.Tensor)}
        places = [place for place in list_number_places(op, sample) if place not in tensors]
        varied = [(f"with {place}={NUMBER}", replace_argument(sample, place, NUMBER)) for place in places]
        for label, computed in keep_computed(op, [each for each in varied if each[0] not in seen]):
            seen.add(label)
            yield label, computed


COMPLEX_SCALARS = Variation("complex_scalars", list_complex_scalars, operators=Operators.ALL, dtypes=(torch.complex64,))
