"""Faults of calls whose arguments no sample gives: two scales that differ, a flag beside a tensor that is left out."""

from __future__ import annotations

from copy import copy
from typing import Any

import pytest
import torch

from porter.verdict.suite.context import Context
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.overloads import Call, call_overload
from porter.verdict.suite.variations.calls import CALLS, put_infinite
from tests.porter.verdict.suite.variations.shown import find_op, shows


def list_wrong(base: str, wrong: Any, name: str, variant: str = "") -> list[str]:
    """The labels of calls of an operator, through the gradients of another, that show a fault."""
    op = find_op(name, variant)
    opinfos = OpInfos(Context(bases=(base,), through_backward=(op.full_name,)))
    called = copy(op)
    called.op = call_overload
    varied = CALLS.list_samples(opinfos, op, torch.float32)
    return [label for label, sample in varied if shows(called, wrong, sample)]


def take_one_scale(*args: Any, **named: Any) -> Any:
    """A gradient that scales the height as the width."""
    return call_overload(*args[:4], *args[5:], *args[5:], **named)


def forget_weight(*args: Any, **named: Any) -> Any:
    """A gradient of a batch norm outside of training that is wrong where there is no weight."""
    slopes = call_overload(*args, **named)
    weight, train, mask = args[2], args[7], args[9]
    return (slopes[0] * 2, *slopes[1:]) if mask[0] and weight is None and not train else slopes


def test_height_and_width_have_scales_of_their_own() -> None:
    labels = list_wrong("upsample_bilinear2d_backward", take_one_scale, "nn.functional.interpolate", "bilinear")
    assert any("scales_h=" in label for label in labels)


def test_a_flag_is_turned_over_beside_a_tensor_that_is_left_out() -> None:
    labels = list_wrong("native_batch_norm_backward", forget_weight, "nn.functional.batch_norm")
    assert "native_batch_norm_backward with train=False, weight=None" in labels


def test_calls_whose_numbers_are_all_one_come_last() -> None:
    """Pixels that are shuffled by a factor of one are copied, and no kernel runs."""
    op = find_op("nn.functional.pixel_shuffle")
    opinfos = OpInfos(Context(bases=("pixel_shuffle",), through_backward=(op.full_name,)))
    _, sample = next(iter(CALLS.list_samples(opinfos, op, torch.float32)))
    assert sample.args == (3,)


def forget_epsilon(*args: Any, **named: Any) -> Any:
    """A gradient of a batch norm that adds the usual number to variances."""
    return call_overload(*args[:8], 1e-5, args[9], **named)


def test_a_small_number_is_another_one_that_counts() -> None:
    assert list_wrong("native_batch_norm_backward", forget_epsilon, "nn.functional.batch_norm")


def keep_last_padding(slopes: Any, index: Any, rows: int, padding: int, *args: Any, **named: Any) -> Any:
    """A gradient of an embedding that leaves the row of a padding out, unless it is the last one."""
    return call_overload(slopes, index, rows, -1 if padding == index.max() else padding, *args, **named)


def count_no_narrow(slopes: Any, index: Any, rows: int, padding: int, by_count: bool, **named: Any) -> Any:
    """A gradient of an embedding that does not divide by counts where indices have 32 bits."""
    return call_overload(slopes, index, rows, padding, by_count and index.dtype is torch.int64, **named)


def count_few_dimensions(slopes: Any, index: Any, rows: int, padding: int, by_count: bool, **named: Any) -> Any:
    """A gradient of an embedding that does not divide by counts where indices have three dimensions or more."""
    return call_overload(slopes, index, rows, padding, by_count and index.ndim < 3, **named)


def test_a_number_is_the_greatest_index_and_indices_have_32_bits_or_more_dimensions_beside_a_flag() -> None:
    for wrong in (keep_last_padding, count_no_narrow, count_few_dimensions):
        assert list_wrong("embedding_dense_backward", wrong, "nn.functional.embedding"), wrong.__name__


def mask_by_zero(at: int) -> Any:
    """A call whose results that no element of an operand goes to are zero times its sum."""

    def call(*args: Any, **named: Any) -> Any:
        result = call_overload(*args, **named)
        return result + 0 * args[at].sum()

    return call


@pytest.mark.parametrize(
    ("base", "name", "at"),
    [
        ("nll_loss_backward", "nn.functional.nll_loss", 0),
        ("embedding_dense_backward", "nn.functional.embedding", 0),
        ("max_pool2d_with_indices_backward", "nn.functional.max_pool2d", 0),
        ("tril", "tril", 0),
    ],
)
def test_elements_that_are_left_out_are_not_multiplied_by_zero(base: str, name: str, at: int) -> None:
    assert any("infinite at its end" in label for label in list_wrong(base, mask_by_zero(at), name))


def test_what_is_not_linear_or_nan_on_the_cpu_has_no_infinite_operand() -> None:
    aten: Any = torch.ops.aten
    source = torch.rand(4, 3)
    assert not list(put_infinite(Call(aten._softmax.default, (source, 1, False), {})))
    [(label, _)] = put_infinite(Call(aten.tril.default, (source,), {}))
    assert label == "tril with self infinite at its end"
