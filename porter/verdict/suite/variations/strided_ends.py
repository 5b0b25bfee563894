"""Elements that are not finite, and equal extremes, in rows that are not dense, or that vectors are read of.

A kernel has one loop for neighboring elements, which it reads as vectors, and another for those of several strides:
what one knows of NaN, or of which of two equal elements is the first, the other may not.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.layouts import take_every_second, transpose
from porter.verdict.suite.leaves import replace_input
from porter.verdict.suite.long_rows import ignores_order, makes_nan, put_ends
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.resizing import resize_along
from porter.verdict.suite.variations.choice import FEW, VECTOR, choose_samples
from porter.verdict.suite.variations.variation import Variation

SAMPLES = 4
_ENDS = ("nan last", "inf last")


def list_strided_ends(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples of two dimensions or more with such elements, transposed and of every second element; dense ones of rows
    that vectors are read of.
    """
    for sample in choose_samples(opinfos, op, dtype, SAMPLES):
        if sample.input.ndim > 1 and sample.input.layout is torch.strided:
            for size, dense in resize_along(op, sample, sample.input.ndim - 1, (VECTOR,), FEW):
                ends = ((f"{label}, rows of {size}", varied) for label, varied in put_ends(dense) if label in _ENDS)
                yield from ((label, varied) for label, varied in ends if _follows_elements(op, varied))
            labeled = [("equal extremes", replace_input(sample, tie_extremes(sample.input.detach())))]
            ends = (varied for varied in put_ends(sample) if varied[0] in _ENDS)
            labeled += [varied for varied in ends if _follows_elements(op, varied[1])]
            yield from keep_computed(op, [turned for label, varied in labeled for turned in _turn(label, varied)])


def _follows_elements(op: OpInfo, sample: SampleInput) -> bool:
    return ignores_order(op, sample) and not makes_nan(op, sample)


def tie_extremes(tensor: torch.Tensor) -> torch.Tensor:
    """The largest element in the second place of the first row and in the first of the second row, which comes before
    the other in memory where the tensor is transposed; the least one in the third place and the third row.
    """
    tied, row = tensor.clone(memory_format=torch.contiguous_format), tensor.shape[-1]
    for at, extreme in enumerate((tensor.max(), tensor.min()), 1):
        if at * row < tensor.numel():
            tied.view(-1)[[at, at * row]] = extreme
    return tied


def _turn(label: str, sample: SampleInput) -> list[Varied]:
    changes = {"transposed": transpose, "every second element": take_every_second}
    return [(f"{label}, {told}", replace_input(sample, change(sample.input))) for told, change in changes.items()]


STRIDED_ENDS = Variation("strided_ends", list_strided_ends)
