"""Result types that are named, and elements that they hold and their own type does not, or the other way round.

Where a result type is named, the CPU converts elements first. A kernel that computes in their own type, and converts
what it made of them, is right for small numbers: three of 2^30 overflow in int32, and 256 that are true are none in 8
bits.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import RESULT_TYPE, Varied, keep_computed, list_result_types, takes_result_type
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.leaves import change_tensors, list_passed, read_argument, replace_argument, replace_input
from porter.verdict.suite.opinfos import MPS_DTYPES, OpInfos
from porter.verdict.suite.samples import copy_sample, with_edge_values
from porter.verdict.suite.variations.choice import choose_samples
from porter.verdict.suite.variations.combines import has_other_tensors, lengthen_reduced
from porter.verdict.suite.variations.variation import Expectation, Operators, Variation

SAMPLES = 1
COUNTED = 256  # ones, of which 8 bits count none
_FRACTION = 0.375  # of real numbers beside integers: one that is rounded to a whole number is another
_TURNS = 3  # elements of which a sum is more than twice as large as one


def list_typed(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples with each result type, of such elements, and of as many ones as a small type does not count."""
    if not takes_result_type(op):
        return
    types = list_result_types(op, MPS_DTYPES)
    chosen = choose_samples(opinfos, op, dtype, SAMPLES)
    sources = [(sample, fill(sample.input, other), other) for sample in chosen for other in types if other != dtype]
    varied = [(sample, elements, other) for sample, elements, other in sources if elements is not None]
    if ones := next((resized for sample in chosen[:1] if (resized := lengthen_reduced(op, sample, COUNTED))), None):
        counted = torch.arange(ones.input.numel()).reshape(ones.input.shape) < COUNTED
        varied += [(ones, counted.to(dtype), other) for other in types if not has_other_tensors(ones)]
    labeled = (
        (f"with {RESULT_TYPE}={other}, of {elements.flatten()[0].item()}", replace_argument(
            replace_input(sample, elements), RESULT_TYPE, other))
        for sample, elements, other in varied
    )  # fmt: skip
    yield from keep_computed(stay_inside(op), labeled)


def fill(source: torch.Tensor, other: torch.dtype) -> torch.Tensor | None:
    """Elements for a tensor that tell when they are converted to another type; None where none do."""
    turns = (torch.arange(source.numel()) % _TURNS).reshape(source.shape)
    dtype = source.dtype
    if dtype.is_complex or other.is_complex or dtype is torch.bool:
        return None
    if not dtype.is_floating_point:
        return (torch.iinfo(dtype).max - turns).to(dtype)
    if not other.is_floating_point:
        return (turns + 0.75).to(dtype)
    largest, limit = torch.finfo(dtype).max, torch.finfo(other).max
    if limit / 4 < largest < limit * 4:
        return None
    return (
        torch.where(turns == _TURNS - 1, -1.0 if limit < largest else 1.0, 1.0)
        .mul(min(largest / 2, limit * 2))
        .to(dtype)
    )


RESULT_TYPES = Variation(
    "result_types",
    list_typed,
    dtypes=(torch.float32, torch.float16, torch.int64, torch.int32, torch.bool),
)


# Samples in the types that a port has kernels for, that the CPU computes, and that the OpInfo does not list.
#
# The OpInfo of nan_to_num lists no complex type, and no test launched its complex kernel. That of bincount has no real
# weights: neither a kernel of these, nor its alert in deterministic mode was asked for.


def list_structured(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """The first sample in each such type."""
    for sample in opinfos.pick_samples(op, dtype)[:1]:
        converted = [(f"in {other}", _convert(sample, dtype, other)) for other in _list_types(opinfos, op)]
        if converted:
            yield from ((label, copy_sample(each)) for label, each in keep_computed(op, converted))


def list_elementwise(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """A sample of each kind in each such type, with edge values."""
    context = opinfos.context
    for other in _list_types(opinfos, op):
        for sample in opinfos.pick_kinds(op, dtype):
            converted = _convert(sample, dtype, other)
            if any(True for _ in keep_computed(op, [("", converted)])):
                yield f"in {other}", with_edge_values(converted, other, context.literals, context.most)


def _list_types(opinfos: OpInfos, op: OpInfo) -> list[torch.dtype]:
    return [each for each in opinfos.dtypes if opinfos.plans(each) and each not in op.supported_dtypes("cpu")]


def _convert(sample: SampleInput, dtype: torch.dtype, other: torch.dtype) -> SampleInput:
    return change_tensors(sample, lambda tensor: tensor.detach().to(other) if tensor.dtype == dtype else tensor)


def list_real_others(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples of integers in each of which another tensor, as the weights of bincount, has real numbers."""
    if dtype.is_floating_point or dtype.is_complex or dtype is torch.bool:
        return
    seen: set[str] = set()
    for sample in opinfos.pick_kinds(op, dtype):
        alike = [
            place for place, value in list_passed(sample) if isinstance(value, torch.Tensor) and value.dtype == dtype
        ]
        real = [
            (
                f"{place} in float32",
                replace_argument(sample, place, _add_fractions(read_argument(sample, place).detach())),
            )
            for place in alike
        ]
        for label, varied in keep_computed(stay_inside(op), [each for each in real if each[0] not in seen]):
            seen.add(label)
            yield label, varied


def _add_fractions(tensor: torch.Tensor) -> torch.Tensor:
    """Real numbers, every second one of them whole: what compares them finds some that are equal."""
    turns = torch.arange(1, tensor.numel() + 1).remainder(2).view(tensor.shape)
    return tensor + turns * _FRACTION


STRUCTURED = Variation("unlisted_types", list_structured)
ELEMENTWISE = Variation(
    "unlisted_types_of_elements", list_elementwise, operators=Operators.POINTWISE, expectation=Expectation.ELEMENTS
)
REAL_OTHERS = Variation("real_others", list_real_others, dtypes=None)
