"""Channels last: which samples are images and volumes, and that what takes their memory for another order differs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.layouts import put_channels_last
from porter.verdict.suite.variations.channels_last import list_channels_last, pick_images, vary_channels
from tests.porter.verdict.suite.variations.planted import find_op, list_different


def read_dense(x: torch.Tensor) -> torch.Tensor:
    """The elements that a kernel reads which takes memory for dense."""
    flat = torch.cat([x.as_strided((x.untyped_storage().nbytes() // x.element_size(),), (1,), 0), x.flatten()])
    return flat[: x.numel()].view(x.shape)


def read_input(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *args, **kwargs: right(read_dense(x), *args, **kwargs)


def write_dense(right: Callable[..., Any]) -> Callable[..., Any]:
    """Writes in the order of dense memory to results that have the layout of the input."""

    def compute(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        result = right(x.contiguous(), *args, **kwargs)
        if x.is_contiguous() or not x.is_contiguous(memory_format=torch.channels_last):
            return result
        written = torch.empty_like(result, memory_format=torch.channels_last)
        written.as_strided((result.numel(),), (1,), 0).copy_(result.flatten())
        return written

    return compute


def take_dense_for_contiguous(right: Callable[..., Any]) -> Callable[..., Any]:
    """Reads parts of larger tensors by their strides, and dense tensors as they are in memory."""
    return lambda x, *args, **kwargs: right(
        x if x.is_contiguous() or torch._debug_has_internal_overlap(x) != 0 else read_dense(x), *args, **kwargs
    )


@pytest.mark.parametrize(
    ("base", "spoil"),
    [
        ("avg_pool2d", read_input),
        ("avg_pool2d", write_dense),
        ("native_batch_norm", read_input),
        ("upsample_bilinear", write_dense),
        ("avg_pool3d", read_input),
        ("cumsum", write_dense),
        ("amax", take_dense_for_contiguous),
    ],
)
def test_an_order_of_memory_that_is_taken_for_another_one_differs(base: str, spoil: Callable[..., Any]) -> None:
    opinfos, op = find_op(base)
    varied = list(list_channels_last(opinfos, op, torch.float32))
    assert {"channels last", "part of channels last"} <= {label for label, _ in varied}
    assert list_different(spoil(op), op, varied)
    assert not list_different(op, op, ((label, sample.transform(make_contiguous)) for label, sample in varied))


def make_contiguous(value: Any) -> Any:
    return value.contiguous() if isinstance(value, torch.Tensor) else value


def test_images_with_the_most_channels_come_first() -> None:
    shapes = [(2, 1, 4, 4), (2, 3, 4, 4), (2, 3, 0, 4), (2, 5, 4, 4), (2, 4, 4, 4), (4, 4), (2, 3, 4, 4, 4)]
    samples = [SampleInput(torch.ones(shape)) for shape in shapes]
    assert [tuple(image.input.shape) for image in pick_images(samples, 4)] == [(2, 5, 4, 4), (2, 4, 4, 4)]
    assert [tuple(image.input.shape) for image in pick_images(samples, 5)] == [(2, 3, 4, 4, 4)]


def test_a_sample_has_all_its_images_changed_and_the_first_alone() -> None:
    sample = SampleInput(torch.randn(2, 3, 4, 5), args=(torch.ones(3), torch.randn(2, 3, 2, 2)))
    found = dict(vary_channels(sample))
    assert list(found) == ["channels last", "part of channels last", "channels last, the first alone"]
    strides = [(each.input.stride(), each.args[0].stride(), each.args[1].stride()) for each in found.values()]
    assert strides == [
        ((60, 1, 15, 3), (1,), (12, 1, 6, 3)),
        ((72, 1, 18, 3), (1,), (18, 1, 9, 3)),
        ((60, 1, 15, 3), (1,), (12, 4, 2, 1)),
    ]
    assert all(each.input.equal(sample.input) for each in found.values())


def test_tensors_of_fewer_dimensions_stay_as_they_are() -> None:
    vector = torch.ones(3)
    assert put_channels_last(vector) is vector
    assert not list(vary_channels(SampleInput(torch.ones(3, 4, 5))))
