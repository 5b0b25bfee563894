"""Sizes that a flag alone allows: with `enable_gqa`, keys of attention have fewer heads than queries, which share them.

OpInfo has no such samples. A kernel that pairs heads in another way is right where there are as many of both.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_computed, keep_refused
from porter.verdict.suite.leaves import list_passed, replace_argument, replace_arguments
from porter.verdict.suite.omitted import list_omitted
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.variations.choice import choose_samples
from porter.verdict.suite.variations.variation import Variation

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
