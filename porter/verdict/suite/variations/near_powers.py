"""Sizes beside powers of two, of simdgroups and threadgroups, of blocks that are sorted, and of tiles.

A kernel whose ways part at a size is right on both sides of it, and where a block is full, or has one element more.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.testing._internal.opinfo.core import OpInfo

from porter.verdict.suite.arguments import Varied
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.resizing import resize_along
from porter.verdict.suite.variations.choice import TYPES, choose_samples, varies_in
from porter.verdict.suite.variations.variation import Variation

POWERS = (32, 64, 128, 256, 512, 1024, 2048, 4096)
SIZES = tuple(power + by for power in POWERS for by in (-1, 0, 1))
OTHERS = 2  # elements of other dimensions, at most
SAMPLES = 2


def list_near_powers(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Each sample with every size along its last dimension, then along its first."""
    if not varies_in(opinfos, op, dtype):
        return
    for sample in choose_samples(opinfos, op, dtype, SAMPLES):
        for dim in dict.fromkeys((sample.input.ndim - 1, 0)):
            for size, resized in resize_along(op, sample, dim, SIZES, OTHERS):
                yield f"{size} along dimension {dim}", resized


NEAR_POWERS = Variation("near_powers", list_near_powers, dtypes=TYPES)
