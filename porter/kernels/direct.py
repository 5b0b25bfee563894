"""Whether a call may run its kernel at once, without the operator that torch would dispatch.

The dispatcher costs more than a small kernel. Only what watches, traces, transforms or differentiates calls needs it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.autograd import forward_ad

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def runs_at_once(values: Sequence[object]) -> bool:
    """Whether the dispatcher would only pass the call on."""
    if _is_watched():
        return False
    differentiates = torch.is_grad_enabled()
    tensors = (value for value in values if isinstance(value, torch.Tensor))
    return all(type(t) in _PLAIN and not (differentiates and t.requires_grad) for t in tensors)


def _is_watched() -> bool:
    """Whether a mode, a transform, a tracer or a profiler sees calls of operators."""
    return bool(
        torch.compiler.is_compiling()
        or torch._C._len_torch_dispatch_stack()
        or torch._C._len_torch_function_stack()
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch._C._get_tracing_state() is not None
        or torch._C._autograd._profiler_enabled()
        or forward_ad._current_level >= 0
    )
