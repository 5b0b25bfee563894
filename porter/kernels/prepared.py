"""What was prepared for a kernel's calls: a call like an earlier one is checked, generated and compiled once."""

from __future__ import annotations

from collections.abc import Hashable

import torch

from porter.kernels import references
from porter.kernels.call import Call, Value, is_large
from porter.kernels.kernel import Kernel
from porter.kernels.launch import Prepared, current_mode, prepare
from porter.kernels.references import Reference

_MOST = 512  # of a kernel
Preparations = dict[Hashable, Prepared]


def find_prepared(kept: Preparations, kernel: Kernel, reference: Reference | None, call: Call) -> Prepared:
    """What launches a call. Raises PTR208-PTR220 and PTR222 for one that cannot run."""
    likeness = _describe(call, reference is not None)
    found = kept.get(likeness)
    if found is None:
        if reference is not None:
            references.check_declared(kernel, reference, call)
        found = prepare(kernel, call)
        if len(kept) >= _MOST:
            kept.clear()
        kept[likeness] = found
    return found


def _describe(call: Call, has_reference: bool) -> Hashable:
    """All that checks, source and function depend on. What a reference gives may depend on the value of a number."""
    inputs = tuple(_describe_one(value, has_reference) for value in call.inputs)
    rest = (call.outputs, call.grid, call.threadgroup, call.template, type(call.init_value), call.init_value)
    return current_mode(), inputs, rest


def _describe_one(value: Value, by_value: bool) -> Hashable:
    if isinstance(value, torch.Tensor):
        return value.dtype, value.shape, value.device, value.layout, value.is_contiguous()
    return type(value), value if by_value or is_large(value) else None
