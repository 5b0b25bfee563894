"""Factors of zero, of whose tensor nothing is read: with a `beta` of 0, NaN in what `addmm` adds to is ignored."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.testing._internal.opinfo.core import OpInfo

from porter.verdict.suite.arguments import Varied, keep_computed, list_arguments
from porter.verdict.suite.leaves import replace_argument, replace_input
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.variations.choice import choose_samples
from porter.verdict.suite.variations.combines import has_other_tensors, is_finite
from porter.verdict.suite.variations.variation import Variation

SAMPLES = 3


def list_zero_factors(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples with an input of NaN, beside other tensors, and a number of 0 by which the CPU ignores it."""
    for sample in choose_samples(opinfos, op, dtype, SAMPLES):
        if not has_other_tensors(sample):
            continue
        unread = replace_input(sample, torch.full_like(sample.input.detach(), torch.nan))
        numbers = dict.fromkeys(place for place, value in list_arguments(op, sample) if type(value) in (int, float))
        varied = keep_computed(op, [(f"NaN with {at}=0", replace_argument(unread, at, 0)) for at in numbers])
        yield from ((label, ignored) for label, ignored in varied if is_finite(op, ignored))


ZERO_FACTORS = Variation("zero_factors", list_zero_factors)
