"""Faults that sizes past 16 bits show, and OpInfo's samples do not."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

from porter.verdict.suite.context import Context
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.variations.choice import choose_samples, list_flags
from porter.verdict.suite.variations.variation import Variation
from porter.verdict.suite.variations.wide_sizes import (
    GRADIENT_ROW,
    LONG,
    LONG_GRADIENTS,
    LONGER_GRADIENTS,
    LONGER_ROWS,
    ROW,
    SLICED_ROW,
    WIDE_GRADIENTS,
    WIDE_GRADIENTS_IN_16_BITS,
    WIDE_SIZES,
    WIDER_GRADIENTS,
)
from tests.porter.verdict.suite.variations.shown import find_op, is_shown, is_shown_as_given, list_samples

SHORT = 1 << 16
Call = Callable[..., Any]


def wrap_rows(result: torch.Tensor, split: int) -> torch.Tensor:
    """A result whose rows, of all dimensions but so many, are computed in place of others by a number of 16 bits."""
    if not result.numel():
        return result
    rows = result.reshape(-1, *result.shape[max(result.ndim - split, 0) :])
    return rows[torch.arange(len(rows)) % SHORT].reshape(result.shape)


def wrap_columns(result: torch.Tensor, split: int) -> torch.Tensor:
    """A result whose elements along the last dimensions, so many, are those of positions in 16 bits."""
    if not result.numel():
        return result
    rows = result.reshape(*result.shape[: max(result.ndim - split, 0)], -1)
    return rows[..., torch.arange(rows.shape[-1]) % SHORT].reshape(result.shape)


def triangle(x: torch.Tensor, diagonal: int = 0) -> torch.Tensor:
    rows, columns = torch.arange(x.shape[-2]) % SHORT, torch.arange(x.shape[-1])
    return torch.where(columns[None] - rows[:, None] >= diagonal, x, 0)


def gather(x: torch.Tensor, dim: int, index: torch.Tensor, **rest: Any) -> torch.Tensor:
    return torch.gather(x, dim, index % SHORT, **rest)


def read_by_threads(op: Call) -> Call:
    """An operator that reads four elements by each of as many threads as 16 bits count."""

    def compute(x: torch.Tensor, *args: Any, **rest: Any) -> Any:
        read = 4 * (((x.shape[-1] - 1) // 4 + 1) % SHORT) if x.ndim else 1
        at = torch.arange(x.shape[-1]) if x.ndim else None
        return op(x if at is None else torch.where(at < read, x, x.flatten()[0]), *args, **rest)

    return compute


@pytest.mark.parametrize(("name", "op"), [("median", torch.median), ("cumsum", torch.cumsum), ("sum", torch.sum)])
def test_a_row_whose_threads_are_past_16_bits_is_found(name: str, op: Call) -> None:
    info = find_op(name)
    assert not is_shown(WIDE_SIZES, info, read_by_threads(op))
    assert is_shown(LONGER_ROWS, info, read_by_threads(op)) and not is_shown(LONGER_ROWS, info, op)


def start_anew(scan: Call) -> Call:
    """A scan of many columns that forgets what it had after a turn of a threadgroup."""

    def call(x: torch.Tensor, dim: int, **rest: Any) -> torch.Tensor:
        turns = x.split(128, dim) if x.ndim > 1 and dim % x.ndim == 0 and x.shape[-1] >= 2048 else [x]
        return torch.cat([scan(turn, dim, **rest) for turn in turns], dim % max(x.ndim, 1)) if x.ndim else scan(x, dim)

    return call


@pytest.mark.parametrize(
    ("name", "variant", "wrong"),
    [
        ("cumsum", "", start_anew(torch.cumsum)),
        ("cumprod", "", start_anew(torch.cumprod)),
        ("log_softmax", "", start_anew(torch.log_softmax)),
        ("softmax", "", lambda *a, **k: wrap_rows(torch.softmax(*a, **k), 1)),
        ("cumsum", "", lambda *a, **k: wrap_columns(torch.cumsum(*a, **k), 1)),
        ("triu", "", triangle),
        ("gather", "", gather),
        ("nn.functional.interpolate", "bilinear", lambda *a, **k: wrap_columns(interpolate(*a, **k), 2)),
        ("nn.functional.max_pool2d", "", lambda *a, **k: pool(*a, **k)),
        ("native_batch_norm", "", lambda *a, **k: wrap_first(torch.native_batch_norm(*a, **k))),
        ("arange", "", lambda *a, **k: torch.arange(*a, **k).clamp(max=SHORT)),
        ("var", "", lambda *a, **k: wrap_rows(torch.var(*a, **k), 0)),
        ("nn.functional.layer_norm", "", lambda *a, **k: wrap_rows(torch.nn.functional.layer_norm(*a, **k), 1)),
        ("linalg.vector_norm", "", lambda *a, **k: wrap_rows(torch.linalg.vector_norm(*a, **k), 0)),
    ],
)
def test_a_number_of_16_bits_is_seen(name: str, variant: str, wrong: Call) -> None:
    dtype = torch.float32
    op = find_op(name, variant)
    assert not is_shown_as_given(op, wrong, dtype)
    assert is_shown(WIDE_SIZES, op, wrong, dtype)


def interpolate(*args: Any, **named: Any) -> torch.Tensor:
    return torch.nn.functional.interpolate(*args, **named)


def pool(*args: Any, **named: Any) -> Any:
    results = torch.nn.functional.max_pool2d(*args, **named)
    return tuple(wrap_rows(each, 2) for each in results) if isinstance(results, tuple) else wrap_rows(results, 2)


def wrap_first(results: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Pixels of a normalized image, of all channels and images, by a number of 16 bits."""
    return wrap_rows(results[0], 0), *results[1:]


def wrap_dimension(result: torch.Tensor, dim: int) -> torch.Tensor:
    """A tensor of which positions along a dimension are numbers of 16 bits."""
    return result.index_select(dim, torch.arange(result.shape[dim]) % SHORT) if result.ndim >= -dim else result


def shuffle(x: torch.Tensor, upscale_factor: int) -> torch.Tensor:
    return torch.nn.functional.pixel_shuffle(wrap_dimension(x, -2), upscale_factor)


def unshuffle(x: torch.Tensor, downscale_factor: int) -> torch.Tensor:
    return torch.nn.functional.pixel_unshuffle(wrap_dimension(x, -2), downscale_factor)


def count(x: torch.Tensor, *args: Any, **named: Any) -> torch.Tensor:
    counts = torch.bincount(x, *args, **named)
    counts[SHORT:] = 0
    return counts


@pytest.mark.parametrize(
    ("name", "dtype", "wrong"),
    [
        ("nn.functional.pixel_shuffle", torch.float32, shuffle),
        ("nn.functional.pixel_unshuffle", torch.float32, unshuffle),
        ("bincount", torch.int64, count),
    ],
)
def test_a_row_of_an_image_or_an_element_is_no_number_of_16_bits(name: str, dtype: torch.dtype, wrong: Call) -> None:
    assert is_shown(WIDE_SIZES, find_op(name), wrong, dtype)


def test_a_weight_is_as_long_as_the_rows_that_it_goes_with() -> None:
    samples = dict(list_samples(WIDE_GRADIENTS, find_op("nn.functional.layer_norm")))
    rows, columns = samples["a long first dimension"], samples["a long last dimension"]
    assert len(rows.input) >= LONG and rows.input.requires_grad
    assert columns.input.shape[-1] >= GRADIENT_ROW
    assert list(columns.args[0]) == [columns.input.shape[-1]]


def test_attention_does_not_vary_what_it_reaches() -> None:
    through = ("nn.functional.scaled_dot_product_attention", "softmax", "nn.functional.multi_head_attention_forward")
    opinfos = OpInfos(Context(bases=("_softmax",), through=through))
    varied = {op.name for op in op_db if op.full_name in through and choose_samples(opinfos, op, torch.float32, 1)}
    assert "softmax" in varied and "nn.functional.multi_head_attention_forward" not in varied


@pytest.mark.parametrize("name", ["nn.functional.batch_norm", "_native_batch_norm_legit"])
def test_gradients_have_long_columns_and_each_choice_of_flags(name: str) -> None:
    context = Context(bases=("native_batch_norm_backward",), through_backward=(name,))
    opinfos, op = OpInfos(context), find_op(name)
    flags, channels = set[bool](), set[bool]()
    for variation, dtype in ((WIDER_GRADIENTS, torch.float32), (WIDE_GRADIENTS_IN_16_BITS, torch.float16)):
        for _, sample in variation.list_samples(opinfos, op, dtype):
            shape = sample.input.shape
            assert max(shape) >= LONG or shape[0] * shape[1] > SHORT
            trains = "True" in list_flags(sample)
            flags |= {trains} if dtype is torch.float16 else set()
            channels |= {trains} if shape[1] >= LONG else set()
    assert channels == {False, True} and (flags == channels or name.startswith("_"))
    softmax = Context(bases=("_softmax_backward_data",), through_backward=("softmax",))
    varied = WIDER_GRADIENTS.list_samples(OpInfos(softmax), find_op("softmax"), torch.float32)
    assert next(varied)[0] == f"{LONG} along the last dimension"


@pytest.mark.parametrize(("variation", "rows"), [(LONG_GRADIENTS, SLICED_ROW), (LONGER_GRADIENTS, ROW)])
def test_gradients_sum_so_many_rows_that_more_slices_are_combined_than_threads_do(
    variation: Variation, rows: int
) -> None:
    op = find_op("native_layer_norm")
    (_, sample), *others = list_samples(variation, op)
    weight = sample.args[1]
    assert len(sample.input) >= rows > weight.numel() and weight.requires_grad
    assert bool(others) is (variation is LONG_GRADIENTS)


def test_gradients_sum_slices_of_rows_with_each_choice_of_flags_and_alone() -> None:
    op = find_op("nn.functional.batch_norm")
    context = Context(bases=("native_batch_norm_backward",), through_backward=(op.full_name,))
    varied = [sample for _, sample in LONG_GRADIENTS.list_samples(OpInfos(context), op, torch.float32)]
    asked = {
        (bool(sample.kwargs.get("training")), tuple(leaf.requires_grad for leaf in (sample.input, *sample.args[2:4])))
        for sample in varied
    }
    alone = ((True, True, True), (False, True, False), (False, False, True))
    assert asked >= set(product((False, True), alone)), asked


def test_gradients_of_long_rows_have_no_weight_too() -> None:
    op = find_op("nn.functional.layer_norm")
    context = Context(bases=("native_layer_norm_backward",), through_backward=(op.full_name,))
    varied = dict(WIDER_GRADIENTS.list_samples(OpInfos(context), op, torch.float32))
    longest = varied[f"the fewest tensors, {LONG} along the last dimension"]
    assert longest.input.shape[-1] >= LONG and len(longest.args) == 1
