"""Which operators are transforms, and how far rounding of all elements lets their results be off."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.long_rows import ignores_order
from porter.verdict.suite.transforms import is_near, mixes

X = torch.linspace(1, 2, 12).view(3, 4)
TRANSFORMS: dict[str, Callable[..., torch.Tensor]] = {
    "fft": torch.fft.fft, "hfft": torch.fft.hfft, "irfft": torch.fft.irfft, "rfft2": torch.fft.rfft2,
    "of a part": lambda x: torch.fft.fft2(x, (2, 10)),
    "with a window": lambda x: torch.fft.rfft(x * torch.hann_window(4, periodic=False, dtype=x.dtype).add(1)),
}  # fmt: skip
OTHERS: dict[str, Callable[..., torch.Tensor]] = {
    "cumsum": lambda x: x.cumsum(1), "mean": lambda x: x.mean(1), "negative": torch.neg, "diff": torch.diff,
    "repeat": lambda x: x.repeat(1, 3), "not linear": lambda x: torch.fft.fft(x).abs(),
    "with what is added": lambda x: torch.fft.fft(x) + 1, "power": lambda x: torch.fft.fft(x) ** 2,
}  # fmt: skip


@pytest.mark.parametrize("name", [*TRANSFORMS, *OTHERS])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int8])
def test_transforms_are_told_from_others(name: str, dtype: torch.dtype) -> None:
    op = {**TRANSFORMS, **OTHERS}[name]
    assert mixes(op, SampleInput(X.to(dtype))) is (name in TRANSFORMS)


def test_an_operator_of_two_tensors_is_no_transform() -> None:
    assert not mixes(lambda x, y: torch.fft.fft(x) * y, SampleInput(X, args=(X,)))


def test_what_rounding_may_be() -> None:
    exact = torch.fft.fft(torch.full((8,), 1000.0, dtype=torch.float64))  # zeros but for the first
    for error, off, is_right in ((0, 2e-3, True), (0, 4e-3, False), (2e-3, 7e-3, True), (2e-3, 9e-3, False)):
        theirs, mine = ((exact + each).to(torch.complex64) for each in (error, off))
        assert is_near(mine, theirs, exact) is is_right
    nothing = torch.full((8,), torch.nan, dtype=torch.complex64)
    assert not is_near(nothing, exact.to(torch.complex64), exact)


def test_what_the_largest_result_is_off_by_is_no_measure_of_others() -> None:
    exact = torch.fft.fft(torch.full((8,), 1000.0, dtype=torch.float64))
    first = torch.eye(8)[0]
    theirs = (exact + first).to(torch.complex64)
    assert not is_near((exact + 0.1).to(torch.complex64), theirs, exact)


def test_where_infinite_results_are_is_not_asked_of_transforms() -> None:
    sample = SampleInput(torch.tensor([1.0, 2, torch.inf, 3]))
    assert ignores_order(partial(torch.cumsum, dim=0), SampleInput(torch.tensor([torch.inf] * 3)))
    assert not ignores_order(torch.fft.fft, sample)
