"""The samples that calls of porter's own sizes are made of."""

from collections.abc import Iterator

import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.core.dtypes import FLOAT
from porter.recording.own_calls import _pick_samples


def test_scalars_that_branches_ask_for_are_among_few_samples() -> None:
    ranked = [SampleInput(torch.rand([2] * rank), args=(dim,)) for rank in (5, 4, 3) for dim in range(-2, 2)]
    numbers = (0.5, 0.0, -1.5, float("inf"), -float("inf"), 0.7)
    scalars = [SampleInput(torch.rand(2, 2), args=(number,)) for number in numbers]

    class Added:
        """An OpInfo, as far as samples are picked."""

        def sample_inputs(self, *_args: object, **_options: object) -> Iterator[SampleInput]:
            return iter((*ranked, *scalars))

        def __call__(self, sample: torch.Tensor, number: float) -> torch.Tensor:
            return torch.add(sample, number)

    samples, _ = _pick_samples(Added(), "add", FLOAT, differentiable=False)
    picked = [sample.args[0] for sample in samples if sample.input.ndim == 2]
    assert picked == [0.5, 0.0, -1.5, float("inf"), -float("inf")]
