"""Run against the extension `kernel_ops`, which is made of kernels.py: the values of its kernels, and what torch does."""

from __future__ import annotations

from typing import Any

import kernel_ops  # type: ignore[import-not-found]
import pytest
import torch

TYPES = (torch.float32, torch.float16, torch.bfloat16)


def scaled(x: torch.Tensor, scale: Any) -> torch.Tensor:
    call: dict[str, Any] = {"template": {"T": x.dtype}, "grid": (x.numel(), 1, 1), "threadgroup": (32, 1, 1)}
    call |= {"output_shapes": {"out": x.shape}, "output_dtypes": {"out": x.dtype}}
    out: torch.Tensor = kernel_ops.scaled_silu({"x": x, "scale": scale}, **call)["out"]
    return out


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", [(7, 9), (0, 3), (33,)], ids=str)
def test_values_are_those_of_the_reference(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = torch.randn(2, *shape, dtype=dtype)[1]
    for view in (x, x.t()):
        torch.testing.assert_close(scaled(view.to("mps"), 2.0).cpu(), scaled(view, 2.0))


def test_a_slice_starts_within_its_buffer() -> None:
    x = torch.randn(5, 8)
    torch.testing.assert_close(scaled(x.to("mps")[2:, 1:6], 1.0).cpu(), scaled(x[2:, 1:6], 1.0))


def test_atomics_start_from_the_initial_value() -> None:
    x = torch.randn(1000, device="mps")
    call: dict[str, Any] = {"template": [("LIMIT", 0)], "grid": (1000,), "threadgroup": (64,), "init_value": 5}
    (counts,) = kernel_ops.count_below([x], output_shapes=[(1,)], output_dtypes=[torch.int32], **call)
    assert counts.item() == 5 + (x < 0).sum().item()


def test_tensors_take_two_indices() -> None:
    x = torch.arange(12.0, device="mps").reshape(3, 4)
    (out,) = kernel_ops.twice_transposed([x], grid=(4, 3), output_shapes=[(4, 3)], output_dtypes=[x.dtype])
    assert torch.equal(out.cpu(), (x.cpu() * 2).t())


def test_gradients_are_those_of_the_reference() -> None:
    x = torch.randn(5, device="mps", requires_grad=True)
    scale = torch.tensor(3.0, device="mps", requires_grad=True)
    found = torch.autograd.grad(scaled(x, scale).sum(), (x, scale))
    expected = torch.autograd.grad((torch.nn.functional.silu(x) * scale).sum(), (x, scale))
    for mine, torchs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, torchs)


def test_compiles_without_a_graph_break() -> None:
    x = torch.randn(5, device="mps")
    compiled = torch.compile(lambda t: scaled(t, 2.0) + 1, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), scaled(x, 2.0) + 1)


def test_without_a_reference_there_is_no_cpu() -> None:
    with pytest.raises(NotImplementedError, match="count_below"):
        kernel_ops.count_below([torch.ones(3)], output_shapes=[(1,)], output_dtypes=[torch.int32])
