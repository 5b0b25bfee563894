"""The samples that calls of porter's own sizes are made of."""

from types import SimpleNamespace

import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.core.dtypes import FLOAT
from porter.recording.own_calls import _pick_samples


def test_scalars_that_branches_ask_for_are_among_few_samples() -> None:
    ranked = [SampleInput(torch.rand([2] * rank), args=(dim,)) for rank in (5, 4, 3) for dim in range(-2, 2)]
    numbers = (0.5, 0.0, -1.5, float("inf"), -float("inf"), 0.7)
    scalars = [SampleInput(torch.rand(2, 2), args=(number,)) for number in numbers]
    op = SimpleNamespace(sample_inputs=lambda *args, **options: iter((*ranked, *scalars)))
    picked = [sample.args[0] for sample in _pick_samples(op, FLOAT, differentiable=False) if sample.input.ndim == 2]
    assert picked == [0.5, 0.0, -1.5, float("inf"), -float("inf")]
