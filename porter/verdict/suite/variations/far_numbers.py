"""Whole numbers that 32 bits, or a float, take for others: far from an index that is there, and beside powers of two.

`ignore_index = 2^32 + 1` ignores nothing, but in 32 bits the first class. Of 2^24 + 1 a float has no more than 2^24,
of 2^53 + 1 not even a double: elements, values to fill with or to look for, and keys have to stay apart.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite.arguments import Varied, keep_computed, shift_integers, vary_far_numbers
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.variations.choice import choose_samples
from porter.verdict.suite.variations.variation import Variation

SHIFTS = (2**24, 2**24 + 1, 2**53, 2**53 + 1)  # of two that are one apart, one is odd wherever it is added
SAMPLES = 3
PRESENT = 3  # numbers of an index tensor
_INDICES = (torch.int64, torch.int32)


def list_far_numbers(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples with a number far from what is in their index tensors, and in int64 with larger elements and numbers."""
    chosen = choose_samples(opinfos, op, dtype, SAMPLES)
    varied = [each for sample in chosen for each in vary_far_numbers(op, sample, list_present(sample))]
    if dtype == torch.int64:
        varied += [each for sample in chosen for by in SHIFTS for each in shift_integers(op, sample, by)]
    yield from keep_computed(stay_inside(op), varied)


def list_present(sample: SampleInput) -> list[int]:
    """A few of the numbers in tensors of integers beside the input, the most frequent ones."""
    leaves = pytree.tree_leaves((sample.args, sample.kwargs))
    indices = [each for each in leaves if isinstance(each, torch.Tensor) and each.dtype in _INDICES]
    if not indices:
        return []
    values, counts = torch.cat([each.flatten().long() for each in indices]).unique(return_counts=True)
    return [int(value) for value in values[counts.argsort(descending=True, stable=True)][:PRESENT]]


FAR_NUMBERS = Variation("far_numbers", list_far_numbers, dtypes=(torch.float32, torch.int64))
