"""Sizes beside powers of two, of simdgroups and threadgroups, of blocks that are sorted, and of tiles.

A kernel whose ways part at a size is right on both sides of it, and where a block is full, or has one element more. Of
long rows all elements are asked for, too: one that is lost may be none of the first few. What gradients alone call has
ways of its own: a row of log_softmax's backward stays in registers up to 8,192 elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.gradients import differentiate
from porter.verdict.suite.leaves import list_operands, replace_argument, replace_input
from porter.verdict.suite.long_rows import sums_rows
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.resizing import resize_along
from porter.verdict.suite.samples import count_results
from porter.verdict.suite.variations.choice import TYPES, choose_samples, varies_in
from porter.verdict.suite.variations.sized_arguments import MOST_RESULTS, list_numbers
from porter.verdict.suite.variations.variation import Expectation, Variation

POWERS = (32, 64, 128, 256, 512, 1024, 2048, 4096)
MOST = 1 << 20  # results: a padding as long as a row makes them its square
LARGE = (8193, 16385, 32769)  # up to where other variations go on: one of each power, past which kernels split rows
SIZES = (*(power + by for power in POWERS for by in (-1, 0, 1)), *LARGE)
GRADIENT_SIZES = (33, 129, 257, 513, 2049, 4097, *LARGE)
LONG = (1025, 2048, 4097)
OTHERS = 2  # elements of other dimensions, at most
SAMPLES = 2


def list_near_powers(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Each sample with every size along its last dimension, then its first; then with numbers beside long sizes."""
    if not varies_in(opinfos, op, dtype):
        return
    for sample in choose_samples(opinfos, op, dtype, SAMPLES):
        for dim in dict.fromkeys((sample.input.ndim - 1, 0)):
            for size, resized in resize_along(op, sample, dim, SIZES, OTHERS, partial(_is_quick, op)):
                yield f"{size} along dimension {dim}", resized
        for size, resized in resize_along(op, sample, sample.input.ndim - 1, LONG, OTHERS):
            counts = [place for place, value in list_numbers(resized) if type(value) is int and value > 0]
            whole = [(f"{size} with {place}={size}", replace_argument(resized, place, size)) for place in counts]
            small = [each for each in whole if count_results(op, each[1]) <= MOST_RESULTS]
            for label, asked in keep_computed(stay_inside(op), small):
                yield label, asked
                # Where elements spread evenly, the least and the largest of a row are in one half of it.
                yield f"{label}, reversed", replace_input(asked, asked.input.flip(-1))


def _is_quick(op: OpInfo, size: int, sample: SampleInput) -> bool:
    """Whether results are few, and one operand alone is long: a kernel may look for each element of one in another."""
    long = sum(each.numel() >= size for each in list_operands(sample)) if size in LARGE else 1
    return long == 1 and _makes_few(op, size, sample)


def _makes_few(op: OpInfo, size: int, sample: SampleInput) -> bool:
    return count_results(op, sample) <= MOST


def list_slopes_near_powers(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """A sample with sizes past powers of two along its last dimension, then its first, where gradients alone call what
    is tested; no large ones of what sums rows, whose digits 32 bits lose.
    """
    if not opinfos.context.through_backward or not varies_in(opinfos, op, dtype):
        return
    for sample in choose_samples(opinfos, op, dtype, 1, requires_grad=True):
        for dim in dict.fromkeys((sample.input.ndim - 1, 0)):
            resized = [
                (f"{size} along dimension {dim}", replace_input(varied, varied.input.requires_grad_()))
                for size, varied in resize_along(op, sample, dim, GRADIENT_SIZES, OTHERS, partial(_makes_few, op))
                if size not in LARGE or not sums_rows(varied)
            ]
            yield from keep_computed(partial(differentiate, op), resized)


NEAR_POWERS = Variation("near_powers", list_near_powers, dtypes=TYPES)
SLOPES_NEAR_POWERS = Variation(
    "slopes_near_powers", list_slopes_near_powers, expectation=Expectation.GRADIENTS, dtypes=(torch.float32,)
)
