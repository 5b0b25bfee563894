"""Whether anything sees the operators that a call dispatches.

torch's dispatcher costs more than a small kernel. Only what watches, traces, transforms or differentiates calls needs
it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch._C import (
    _get_tracing_state,
    _len_torch_dispatch_stack,
    _len_torch_function_stack,
    is_grad_enabled,
)
from torch._C._autograd import _profiler_enabled
from torch._C._functorch import peek_interpreter_stack
from torch.autograd import forward_ad

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def is_watched(values: Sequence[object]) -> bool:
    """Whether a mode, a transform, a tracer, a profiler or a gradient needs the operator of a call with `values`."""
    if (
        _len_torch_dispatch_stack()
        or _len_torch_function_stack()
        or peek_interpreter_stack() is not None
        or _get_tracing_state() is not None
        or _profiler_enabled()
        or forward_ad._current_level >= 0
    ):
        return True
    differentiates = is_grad_enabled()
    for value in values:
        if isinstance(value, torch.Tensor) and (type(value) not in _PLAIN or (differentiates and value.requires_grad)):
            return True
    return False
