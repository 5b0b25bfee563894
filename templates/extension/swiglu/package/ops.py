"""The operators as Python functions: shapes for fake tensors, and gradients."""

from __future__ import annotations

from typing import Any

import torch

_OPS = torch.ops.$name


def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """SiLU of `gate` times `up`, in one kernel."""
    return _OPS.swiglu(gate, up)


@torch.library.register_fake("$name::swiglu")
def _(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    torch._check(gate.shape == up.shape, lambda: f"swiglu: gate has shape {gate.shape} and up has shape {up.shape}")
    return torch.empty_like(gate, memory_format=torch.contiguous_format)


@torch.library.register_fake("$name::swiglu_backward")
def _(grad: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    made = [torch.empty_like(each, memory_format=torch.contiguous_format) for each in (gate, up)]
    return made[0], made[1]


def _save(ctx: Any, inputs: tuple[torch.Tensor, torch.Tensor], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _differentiate(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return _OPS.swiglu_backward(grad, *ctx.saved_tensors)


torch.library.register_autograd("$name::swiglu", _differentiate, setup_context=_save)
