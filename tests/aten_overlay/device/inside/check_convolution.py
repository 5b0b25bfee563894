"""Convolutions reach the fork's own operators once they are loaded, as they do in a libtorch that is built for a Mac."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import aten_overlay

device = aten_overlay.start()
calls: list[str] = []


def _cpu(*tensors: torch.Tensor | None) -> Any:
    return [None if t is None else t.cpu() for t in tensors]


def convolution(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    padding: list[int],
    stride: list[int],
    dilation: list[int],
    groups: int,
) -> Any:
    calls.append("forward")
    return torch.ops.aten.convolution(
        *_cpu(x, weight, bias), stride, padding, dilation, False, [0] * len(padding), groups
    ).to("mps")


def convolution_backward(
    x: torch.Tensor,
    gradient: torch.Tensor,
    weight: torch.Tensor,
    padding: list[int],
    stride: list[int],
    dilation: list[int],
    groups: int,
    mask: list[bool],
) -> Any:
    calls.append("backward")
    made = torch.ops.aten.convolution_backward(
        *_cpu(gradient, x, weight),
        [weight.shape[0]],
        stride,
        padding,
        dilation,
        False,
        [0] * len(padding),
        groups,
        mask,
    )
    return tuple(None if t is None else t.to("mps") for t in made)


def transpose(
    x: torch.Tensor,
    weight: torch.Tensor,
    padding: list[int],
    output_padding: list[int],
    stride: list[int],
    dilation: list[int],
    groups: int,
) -> Any:
    calls.append("transpose")
    return torch.ops.aten.convolution(
        *_cpu(x, weight), None, stride, padding, dilation, True, output_padding, groups
    ).to("mps")


def transpose_backward(
    x: torch.Tensor,
    gradient: torch.Tensor,
    weight: torch.Tensor,
    padding: list[int],
    output_padding: list[int],
    stride: list[int],
    dilation: list[int],
    groups: int,
    mask: list[bool],
) -> Any:
    calls.append("transpose backward")
    made = torch.ops.aten.convolution_backward(
        *_cpu(gradient, x, weight), None, stride, padding, dilation, True, output_padding, groups, [*mask, False]
    )
    return tuple(None if t is None else t.to("mps") for t in made[:2])


library = torch.library.Library("aten", "IMPL", "MPS")
library.impl("_mps_convolution", convolution)
library.impl("mps_convolution_backward", convolution_backward)
library.impl("_mps_convolution_transpose", transpose)
library.impl("mps_convolution_transpose_backward", transpose_backward)


def _run(where: str, transposed: bool) -> Any:
    torch.manual_seed(0)
    image, weight, bias = (torch.randn(*s).to(where).requires_grad_() for s in ((2, 4, 6, 5), (4, 2, 3, 2), (4,)))
    for leaf in (image, weight, bias):
        leaf.retain_grad()
    called = torch.nn.functional.conv_transpose2d if transposed else torch.nn.functional.conv2d
    made = called(image, weight, bias, stride=(2, 1), padding=(1, 0), groups=2)
    made.square().sum().backward()
    return [t.detach().cpu() for t in (made, image.grad, weight.grad, bias.grad) if t is not None]


def _same(transposed: bool) -> None:
    pairs = list(zip(_run("mps", transposed), _run("cpu", transposed), strict=True))
    assert len(pairs) == 4
    for got, wanted in pairs:
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)


def test_convolutions_are_the_forks_own() -> None:
    _same(transposed=False)
    assert calls == ["forward", "backward"]


def test_transposed_ones_get_their_bias_and_its_gradient() -> None:
    calls.clear()
    _same(transposed=True)
    assert calls == ["transpose", "transpose backward"]
    assert "aten::convolution_overrideable" not in device.fallbacks()


@pytest.mark.parametrize("called", [torch.nn.functional.conv1d, torch.nn.functional.conv_transpose1d])
def test_parameters_have_the_type_of_the_input_as_on_a_mac(called: Any) -> None:
    image, weight = torch.ones(1, 2, 4, device="mps"), torch.ones(2, 2, 3, device="mps")
    calls.clear()
    with pytest.raises(RuntimeError, match=r"Input type .* and bias type .* should be the same"):
        called(image, weight, torch.ones(2, dtype=torch.int64, device="mps"))
    with pytest.raises(RuntimeError, match=r"Input type .* and weight type .* should be the same"):
        called(image, weight.half())
    assert calls == []
