"""Long tensors beside an input that is not: each element of isin is looked for in all of another tensor.

What is reduced is the other tensor then, in slices if it is long; elsewhere that of the input alone is. A flag has
kernels of its own, those that combine slices too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.leaves import Place, compute, list_passed, replace_argument
from porter.verdict.suite.omitted import list_omitted
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.resizing import spread_values
from porter.verdict.suite.samples import copy_sample
from porter.verdict.suite.variations.choice import TYPES, choose_samples
from porter.verdict.suite.variations.variation import Variation

LONG = 70_001
_SAMPLES = 2
_MOST_ELEMENTS = 64  # of the input, and of each long row


def list_long_operands(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples with one vector beside the input long, in order, where results keep their shapes; with each flag too."""
    for sample in choose_samples(opinfos, op, dtype, _SAMPLES):
        if sample.input.numel() <= _MOST_ELEMENTS:
            for place, value in list_passed(sample):
                if isinstance(value, torch.Tensor) and value.ndim == 1 and value.numel() and not value.is_complex():
                    yield from _keep_shapes(op, sample, list(_lengthen(op, sample, place, value)))


def _lengthen(op: OpInfo, sample: SampleInput, place: Place, value: torch.Tensor) -> Iterator[Varied]:
    ordered = spread_values(value.detach(), (LONG,)).sort().values
    longer = replace_argument(sample, place, ordered)
    yield f"tensor {place} of {LONG} elements", longer
    for argument in list_omitted(op, sample):
        if isinstance(argument.values[0], bool):
            flagged = replace_argument(longer, argument.name, argument.values[0])
            yield f"tensor {place} of {LONG} elements, with {argument.name}={argument.values[0]}", flagged


def _keep_shapes(op: OpInfo, sample: SampleInput, varied: list[Varied]) -> Iterator[Varied]:
    kept = list(keep_computed(stay_inside(op), varied))
    shapes = _list_shapes(op, sample) if kept else []
    yield from ((label, longer) for label, longer in kept if _list_shapes(op, longer) == shapes)


def _list_shapes(op: OpInfo, sample: SampleInput) -> list[Any]:
    results = pytree.tree_leaves(compute(op, copy_sample(sample)))
    return [result.shape if isinstance(result, torch.Tensor) else result for result in results]


LONG_OPERANDS = Variation("long_operands", list_long_operands, dtypes=TYPES)
