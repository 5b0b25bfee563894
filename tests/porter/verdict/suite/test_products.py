"""Products of many elements: which operators make them, and faults that products of nothing do not show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.products import keep_products, make_factors, multiplies
from porter.verdict.suite.variations.combines import COMBINES, COMBINES_IN_OTHER_TYPES
from porter.verdict.suite.variations.variation import Variation
from porter.verdict.suite.variations.wide_sizes import LONG, LONGER_ROWS, WIDE_SIZES
from tests.porter.verdict.suite.variations.shown import find_op, is_shown, is_shown_as_given

Call = Callable[..., Any]


@pytest.mark.parametrize(
    ("name", "is_product"),
    [("prod", True), ("cumprod", True), ("sum", False), ("amax", False), ("var", False), ("cumsum", False)],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_the_cpu_says_what_multiplies(name: str, is_product: bool, dtype: torch.dtype) -> None:
    op = find_op(name)
    if dtype in op.supported_dtypes("cpu"):
        assert multiplies(op, SampleInput(torch.zeros(3, 4, dtype=dtype), args=(1,))) is is_product


def test_one_factor_is_no_product() -> None:
    op = find_op("cumprod")
    assert not multiplies(op, SampleInput(torch.ones(1), args=(0,)))
    assert not multiplies(op, SampleInput(torch.ones(3, dtype=torch.bool), args=(0,)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.uint8])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3,), (5000,), (LONG,), (3, 1, 700), (2, 2, 2, 2, 2)])
def test_no_product_of_factors_vanishes(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    factors = make_factors(torch.empty(shape, dtype=dtype))
    assert factors.dtype is dtype and factors.shape == shape
    if not dtype.is_floating_point:
        assert bool(factors.bitwise_and(1).all())
        return
    largest = factors.abs().double()
    for chosen in (largest[largest > 1], largest[largest < 1]):
        product = chosen.prod().to(dtype)
        assert bool(product.isfinite()) and bool(product > 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64])
@pytest.mark.parametrize(
    "shape", [(1,), (512,), (1024,), (2, 1024), (1024, 3), (2, 3, 300), (300, 8, 8, 8), (2, 50, 2, 2, 3)]
)
def test_the_ends_of_rows_are_missed_in_products(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    factors = make_factors(torch.empty(shape, dtype=dtype))
    for dim, size in enumerate(shape):
        for end in (0, size - 1):
            assert bool((factors.select(dim, end) != 1).any())
            assert dtype is torch.int64 or bool((factors.select(dim, end).abs() != 1).any())


@pytest.mark.parametrize("call", [torch.square, lambda x: torch.pow(x, 2), torch.linalg.vander])
def test_powers_of_elements_are_no_products(call: Call) -> None:
    assert not multiplies(call, SampleInput(torch.ones(4)))


def test_elements_of_a_sum_stay_as_they_are() -> None:
    sample = SampleInput(torch.rand(3, 4), args=(1,))
    assert keep_products(find_op("sum"), sample, sample) is sample
    leaf = SampleInput(torch.rand(3, 4, requires_grad=True), args=(1,))
    assert keep_products(find_op("prod"), leaf, leaf) is leaf


def lose(call: Call, first: float, count: float) -> Call:
    """A product that leaves out some elements of long rows."""

    def multiply(x: torch.Tensor, *args: Any, **named: Any) -> Any:
        size = max(x.shape, default=0)
        if size < LONG:
            return call(x, *args, **named)
        kept = x.clone(memory_format=torch.contiguous_format)
        kept.narrow(list(x.shape).index(size), int(first * size), int(count * size)).fill_(1)
        return call(kept, *args, **named)

    return multiply


def begin_rows_early(x: torch.Tensor, dim: int, **named: Any) -> torch.Tensor:
    """A scan of rows that begin where 16 bits say."""
    size = x.shape[-1] if x.ndim else 0
    if size < LONG:
        return torch.cumprod(x, dim, **named)
    rows = x.reshape(-1, size)
    early = [x.flatten()[at * (1 << 16) :][:size] for at in range(len(rows))]
    return torch.cumprod(torch.stack(early).view(x.shape), dim, **named)


@pytest.mark.parametrize(
    ("name", "wrong", "variation", "dtype"),
    [
        ("prod", lose(torch.prod, 0.4, 0.02), WIDE_SIZES, torch.float32),
        ("prod", lose(torch.prod, 0.4, 0.02), LONGER_ROWS, torch.float32),
        ("prod", lose(torch.prod, 0.4, 0.02), COMBINES, torch.float32),
        ("prod", lose(torch.prod, 0.4, 0.02), COMBINES_IN_OTHER_TYPES, torch.int64),
        ("cumprod", lose(torch.cumprod, 0.4, 0.02), LONGER_ROWS, torch.float32),
        ("cumprod", begin_rows_early, WIDE_SIZES, torch.float32),
    ],
)
def test_elements_of_long_rows_that_are_lost_are_missed(
    name: str, wrong: Call, variation: Variation, dtype: torch.dtype
) -> None:
    op = find_op(name)
    assert not is_shown_as_given(op, wrong, dtype)
    assert is_shown(variation, op, wrong, dtype)
