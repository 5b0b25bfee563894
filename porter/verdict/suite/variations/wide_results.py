"""Results of more than 2^20 elements, and gradients: of a launch whose grid ends at a round number, the rest is memory
that nobody wrote.

Other sizes go past 16 bits along a dimension and stay below this, as most of them would take long.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.gradients import differentiate
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.resizing import lengthen_dimensions
from porter.verdict.suite.samples import count_results
from porter.verdict.suite.variations.choice import TYPES, choose_samples, varies_in
from porter.verdict.suite.variations.variation import Expectation, Variation

RESULTS = 1 << 20
MOST = RESULTS + RESULTS // 4
ROWS, COLUMNS = 1_031, 1_033  # together more than that
LONG = RESULTS + 77
BATCH, LENGTH = 15, 70_001  # likewise, and so long that a gradient which sums that many is judged by its own bound
SAMPLES = 6


def list_wide_results(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """One sample whose results have so many elements."""
    if not varies_in(opinfos, op, dtype):
        return
    for sample in choose_samples(opinfos, op, dtype, SAMPLES):
        for longs in _list_longs(sample) if count_results(op, sample) > 1 else ():
            resized = lengthen_dimensions(op, sample, longs, MOST, largest=True)
            if resized is not None and count_results(op, resized) > RESULTS:
                yield f"results of more than {RESULTS} elements", resized
                return


def list_wide_slopes(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """One sample whose input has so many elements, where gradients alone call what is tested."""
    if not opinfos.context.through_backward or not varies_in(opinfos, op, dtype):
        return
    for sample in choose_samples(opinfos, op, dtype, SAMPLES, requires_grad=True):
        last = sample.input.ndim - 1
        longs = {0: BATCH, last: LENGTH} if last else {0: LONG}
        resized = lengthen_dimensions(op, sample, longs, MOST)
        if resized is not None and resized.input.numel() > RESULTS:
            yield from keep_computed(partial(differentiate, op), [(f"more than {RESULTS} elements", resized)])
            return


def _list_longs(sample: SampleInput) -> tuple[Mapping[int, int], ...]:
    """The dimensions that are long: rows and columns, or for results of a row each the rows alone."""
    last = sample.input.ndim - 1
    return ({0: ROWS, last: COLUMNS}, {0: LONG}) if last else ({0: LONG},)


WIDE_RESULTS = Variation("wide_results", list_wide_results, dtypes=TYPES)
SLOPES_OF_WIDE_INPUTS = Variation("slopes_of_wide_inputs", list_wide_slopes, expectation=Expectation.GRADIENTS)
