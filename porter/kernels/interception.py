"""Whether anything has to see the call of an operator, so that it goes through torch's dispatcher."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.autograd import forward_ad

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def is_intercepted(values: Sequence[object]) -> bool:
    """Whether a call with these inputs is traced, transformed, profiled or differentiated."""
    if torch.compiler.is_compiling():
        return True
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    if any(type(tensor) not in _PLAIN or _is_lazy(tensor) for tensor in tensors):
        return True
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return True
    return _is_watched()


def _is_lazy(tensor: torch.Tensor) -> bool:
    """Whether the dispatcher makes another tensor of it first: one that is to be conjugated or negated, or is zero."""
    return tensor.is_conj() or tensor.is_neg() or tensor._is_zerotensor()


def _is_watched() -> bool:
    """Whether something is active that sees every operator."""
    return bool(
        torch._C._len_torch_dispatch_stack()
        or torch._C._len_torch_function_stack()
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch._C._get_tracing_state() is not None
        or torch._C._autograd._profiler_enabled()
        or forward_ad._current_level >= 0
    )
