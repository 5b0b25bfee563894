"""`TestSlopeLayoutsMPS.test_slopes_by_layouts_<op>_mps_float32`: gradients where memory is laid out in other ways.

The other tests differentiate by dense tensors, with dense gradients of the results.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.testing._internal.common_device_type import OpDTypes
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.consistency import instantiate
from porter.verdict.suite.context import get_context
from porter.verdict.suite.gradients import Gradients
from porter.verdict.suite.layouts import CHANNELS_LAST
from porter.verdict.suite.opinfos import opinfos, parametrize_over
from porter.verdict.suite.refusals import REFUSALS
from porter.verdict.suite.slope_layouts import make_dense_leaves, vary_operands, vary_seeds
from porter.verdict.suite.variations.channels_last import pick_images
from porter.verdict.suite.variations.choice import choose_flags, choose_vectors, list_flags, varies_in

OPINFOS = opinfos(get_context())
SLOPES = OPINFOS.select("mps_ops_grad_modifier", OPINFOS.context.through_backward)


def is_run(op: OpInfo, dtype: torch.dtype) -> bool:
    """Whether an OpInfo has its test in this run: one with bounds checks, which is slow, has the plainest of those
    whose gradients alone call what is tested.
    """
    context = OPINFOS.context
    return not context.checks_memory or (bool(context.through_backward) and varies_in(OPINFOS, op, dtype))


def list_samples(op: OpInfo, dtype: torch.dtype) -> list[SampleInput]:
    """A few samples, with an image and a volume among them if there are any, one of each of a few other choices of
    flags, which may have host code of their own, and rows that vectors are read of.
    """
    picked = OPINFOS.pick_samples(op, dtype, requires_grad=True)
    every = OPINFOS.reaching_samples(op, dtype, requires_grad=True)
    missing = [rank for rank in CHANNELS_LAST if not pick_images(picked, rank)]
    images = [image for rank in missing for image in pick_images(every, rank)[:1]]
    shown = [sample for rank in CHANNELS_LAST for sample in pick_images([*picked, *images], rank)]
    unlike = {list_flags(image): image for rank in CHANNELS_LAST for image in pick_images(every, rank)}
    flagged = [image for flags, image in unlike.items() if flags not in map(list_flags, shown)]
    flagged = flagged or choose_flags(OPINFOS, op, dtype, shown or picked)
    return [*picked, *images, *flagged, *choose_vectors(OPINFOS, op, dtype, requires_grad=True)]


@contextmanager
def telling(label: str) -> Iterator[None]:
    """Puts a layout before what the device refuses it with."""
    try:
        yield
    except REFUSALS as error:
        raise AssertionError(f"{label}: {error}") from None


class TestSlopeLayouts(Gradients):
    """A layout changes no gradient."""

    opinfos = OPINFOS

    @parametrize_over(SLOPES, applies=is_run, dtypes=OpDTypes.supported_backward, allowed_dtypes=[torch.float32])
    def test_slopes_by_layouts(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op, slopes=True):
            for sample in list_samples(op, dtype):
                for label, each in vary_operands(op, sample):
                    with self.asking(), telling(label):
                        self.match_slopes(op, dtype, each, device, f"{label}: ", dense=make_dense_leaves(each))
                for label, seeds in vary_seeds(op, sample):
                    with self.asking(), telling(f"gradient {label}"):
                        self.match_slopes(op, dtype, sample, device, f"gradient {label}: ", seeds)


instantiate(TestSlopeLayouts, globals())
