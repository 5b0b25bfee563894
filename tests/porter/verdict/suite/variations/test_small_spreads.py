"""Small deviations from a mean: which operators take it away, and that a variance in one pass is found."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from porter.verdict.suite.variations.choice import choose_samples
from porter.verdict.suite.variations.many_addends import SAMPLES, ignores_shift, list_small_spreads
from tests.porter.verdict.suite.variations.planted import find_op, list_different


def take_squares(x: torch.Tensor, shape: Any, weight: Any, bias: Any, eps: float) -> tuple[torch.Tensor, ...]:
    """native_layer_norm with the mean of squares less the square of the mean."""
    return _normalize(x, shape, weight, bias, eps, lambda variance: variance)


def drop_small(x: torch.Tensor, shape: Any, weight: Any, bias: Any, eps: float) -> tuple[torch.Tensor, ...]:
    """native_layer_norm that takes a small variance for none."""
    return _normalize(x, shape, weight, bias, eps, lambda variance: torch.where(variance < 1e-6, 0.0, variance))


def _normalize(x: torch.Tensor, shape: Any, weight: Any, bias: Any, eps: float, mend: Any) -> tuple[torch.Tensor, ...]:
    dims = tuple(range(-len(shape), 0))
    mean = x.mean(dims, keepdim=True)
    scale = (mend((x * x).mean(dims, keepdim=True) - mean * mean) + eps).rsqrt()
    result = (x - mean) * scale * (1 if weight is None else weight) + (0 if bias is None else bias)
    return result, mean, scale


@pytest.mark.parametrize("wrong", [take_squares, drop_small])
def test_a_variance_in_one_pass_is_found(wrong: Any) -> None:
    opinfos, op = find_op("native_layer_norm")
    samples = list(list_small_spreads(opinfos, op, torch.float32))
    assert list_different(wrong, op.op, samples)
    assert not list_different(op.op, op.op, samples)


@pytest.mark.parametrize(("base", "ignores"), [("var", True), ("mean", False), ("exp", False)])
def test_only_what_ignores_a_shift_has_such_samples(base: str, ignores: bool) -> None:
    opinfos, op = find_op(base)
    samples = choose_samples(opinfos, op, torch.float32, SAMPLES)
    assert samples
    assert any(ignores_shift(op, sample) for sample in samples) is ignores
