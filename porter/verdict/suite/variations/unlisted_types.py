"""Samples in the types that a port has kernels for, that the CPU computes, and that the OpInfo does not list.

The OpInfo of nan_to_num lists no complex type, and no test launched its complex kernel. That of bincount has no real
weights: neither a kernel of these, nor its alert in deterministic mode was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.leaves import change_tensors, list_passed, read_argument, replace_argument
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.samples import copy_sample, with_edge_values
from porter.verdict.suite.variations.variation import Expectation, Operators, Variation


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
            (f"{p} in float32", replace_argument(sample, p, read_argument(sample, p).detach().float())) for p in alike
        ]
        for label, varied in keep_computed(stay_inside(op), [each for each in real if each[0] not in seen]):
            seen.add(label)
            yield label, varied


STRUCTURED = Variation("unlisted_types", list_structured)
ELEMENTWISE = Variation(
    "unlisted_types_of_elements", list_elementwise, operators=Operators.POINTWISE, expectation=Expectation.ELEMENTS
)
REAL_OTHERS = Variation("real_others", list_real_others, dtypes=None)
