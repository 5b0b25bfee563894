"""Result types that are named, and elements that they hold and their own type does not, or the other way round.

Where a result type is named, the CPU converts elements first. A kernel that computes in their own type, and converts
what it made of them, is right for small numbers: three of 2^30 overflow in int32, and 256 that are true are none in 8
bits.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.testing._internal.opinfo.core import OpInfo

from porter.verdict.suite.arguments import RESULT_TYPE, Varied, keep_computed, list_result_types, takes_result_type
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.leaves import replace_argument, replace_input
from porter.verdict.suite.opinfos import MPS_DTYPES, OpInfos
from porter.verdict.suite.variations.choice import choose_samples
from porter.verdict.suite.variations.combines import has_other_tensors, lengthen_reduced
from porter.verdict.suite.variations.variation import Variation

SAMPLES = 1
COUNTED = 256  # ones, of which 8 bits count none
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
