"""Faults of rows that are given a tensor in a layout which no Python function gives it."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import pytest
import torch

from porter.verdict.suite.context import Context
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.overloads import call_overload
from porter.verdict.suite.variations.channels_last import CALL_LAYOUTS
from tests.porter.verdict.suite.variations.shown import find_op, shows


def align(tensor: torch.Tensor) -> torch.Tensor:
    """What a kernel reads that takes vectors for aligned wherever rows are dense and hold whole vectors."""
    if not tensor.is_contiguous() or not tensor.ndim or tensor.shape[-1] % 4:
        return tensor
    return tensor.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset() // 4 * 4)


def read_as_dense(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.as_strided(tensor.shape, torch.empty(tensor.shape).stride())


def compute_outer_stride(tensor: torch.Tensor) -> torch.Tensor:
    """What a kernel reads that multiplies the stride of the second dimension by its size for the first one's."""
    if tensor.ndim < 3:
        return tensor
    strides = (tensor.shape[1] * tensor.stride(1), *tensor.stride()[1:])
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, strides, strict=True))
    is_inside = tensor.storage_offset() + last < tensor.untyped_storage().nbytes() // tensor.element_size()
    return tensor.as_strided(tensor.shape, strides) if is_inside else tensor


def change(at: int, read: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """A call that reads one of its arguments in a wrong way."""

    def call(*args: Any, **named: Any) -> Any:
        return call_overload(*args[:at], read(args[at]), *args[at + 1 :], **named)

    return call


@pytest.mark.parametrize(
    ("base", "name", "at", "read"),
    [
        ("_log_softmax_backward_data", "log_softmax", 1, align),
        ("_softmax", "softmax", 0, align),
        ("native_layer_norm_backward", "nn.functional.layer_norm", 1, read_as_dense),
        ("nll_loss_backward", "nn.functional.nll_loss", 2, read_as_dense),
        ("upsample_bilinear2d_backward", "nn.functional.interpolate", 0, compute_outer_stride),
        ("bmm", "bmm", 1, compute_outer_stride),
    ],
)
def test_a_tensor_is_read_in_its_own_layout(
    base: str, name: str, at: int, read: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    op = find_op(name, "bilinear" if base.startswith("upsample") else "")
    called = copy(op)
    called.op = call_overload
    varied = list(
        CALL_LAYOUTS.list_samples(OpInfos(Context(bases=(base,), through_backward=(op.full_name,))), op, torch.float32)
    )
    wrong = change(at, read)
    shown = [
        label
        for label, sample in varied
        if sample.kwargs["overload"].split(".")[0] == base and shows(called, wrong, sample)
    ]
    assert shown
    assert not any(shows(called, call_overload, sample) for _, sample in varied)


def test_a_row_has_calls_of_each_choice_of_flags() -> None:
    op = find_op("nn.functional.batch_norm")
    base = "native_batch_norm_backward"
    opinfos = OpInfos(Context(bases=(base,), through_backward=(op.full_name,)))
    varied = CALL_LAYOUTS.list_samples(opinfos, op, torch.float32)
    trains = {sample.args[6] for _, sample in varied if sample.kwargs["overload"] == base}
    assert trains == {False, True}
