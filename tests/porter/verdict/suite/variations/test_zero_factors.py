"""Faults in what a factor of zero leaves out, and in what it does not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from porter.verdict.suite.torch_tools import Decomposing
from porter.verdict.suite.variations.many_addends import INFINITE_INPUTS, ZERO_FACTORS
from tests.porter.verdict.suite.variations.shown import Call, find_op, is_shown, is_shown_as_given, list_samples


def multiply_all(product: Call) -> Call:
    """A product to which `beta` times a tensor is added, whatever `beta` is."""

    def add(x: torch.Tensor, *args: Any, beta: Any = 1, alpha: Any = 1, **named: Any) -> torch.Tensor:
        result: torch.Tensor = beta * x + (alpha * product(*args) if alpha != 1 else product(*args))
        return result

    return add


@pytest.mark.parametrize(
    ("name", "product"),
    [("addmm", torch.mm), ("baddbmm", torch.bmm), ("addmv", torch.mv)],
)
def test_nan_times_a_beta_of_zero_is_found(name: str, product: Call) -> None:
    op = find_op(name)
    assert not is_shown_as_given(op, multiply_all(product))
    assert is_shown(ZERO_FACTORS, op, multiply_all(product))


def test_what_reads_its_input_in_any_case_has_no_samples() -> None:
    assert not list_samples(ZERO_FACTORS, find_op("index_add")) and not list_samples(ZERO_FACTORS, find_op("matmul"))


def _skip_zeros(call: Call) -> Call:
    """A sum in which an addend whose weight is zero counts for nothing, whatever the input is."""

    def skip(x: torch.Tensor, *args: Any, **named: Any) -> Any:
        weights = [w for w in (*args, *named.values()) if isinstance(w, torch.Tensor) and w.is_floating_point()]
        is_skipped = any(bool((weight == 0).any()) for weight in weights)
        return call(x.nan_to_num(posinf=torch.finfo(x.dtype).max) if is_skipped else x, *args, **named)

    return skip


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("mm", torch.mm),
        ("nn.functional.conv1d", torch.nn.functional.conv1d),
        ("nn.functional.nll_loss", torch.nn.functional.nll_loss),
        ("nn.functional.batch_norm", torch.nn.functional.batch_norm),
    ],
)
def test_a_weight_of_zero_that_skips_infinity_is_found(name: str, call: Call) -> None:
    op = find_op(name)
    assert not is_shown_as_given(op, _skip_zeros(call))
    assert is_shown(INFINITE_INPUTS, op, _skip_zeros(call))
    assert not is_shown(INFINITE_INPUTS, op, call)


def _skip_zeros_of_the_left(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.where(x.unsqueeze(-1) == 0, 0, x.unsqueeze(-1) * y.unsqueeze(0)).sum(1)


def _skip_zeros_beside_a_vector(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return _skip_zeros_of_the_left(y.t(), x.t()).t() if len(x) == 1 else x @ y


@pytest.mark.parametrize("wrong", [_skip_zeros_of_the_left, _skip_zeros_beside_a_vector])
def test_a_factor_of_zero_that_skips_infinity_is_found(wrong: Call) -> None:
    op = find_op("mm")
    assert not is_shown_as_given(op, wrong)
    assert is_shown(INFINITE_INPUTS, op, wrong)


def test_nan_that_torchs_decomposition_has_not_is_no_promise() -> None:
    """Batch norm takes the mean away before it multiplies, as CUDA's kernel does and the CPU's does not."""

    def call(*args: Any) -> Any:
        with Decomposing():
            return torch.native_batch_norm(*args)

    op = find_op("native_batch_norm")
    assert not is_shown_as_given(op, call)
    assert not is_shown(INFINITE_INPUTS, op, call)


@pytest.mark.parametrize("name", ["nn.functional.layer_norm", "nn.functional.avg_pool2d", "fft.fft"])
def test_what_weighs_no_input_has_no_infinite_inputs(name: str) -> None:
    assert not list_samples(INFINITE_INPUTS, find_op(name))
