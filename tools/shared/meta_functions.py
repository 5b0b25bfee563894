"""Compares what operators return on the device with what the meta functions promise of it: shapes, strides, types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves, tree_map_only

# Operators whose meta functions know no device, where the host code of MPS returns something else.
_EMPTY = "batch_norm_mps_out leaves the statistics empty that it does not compute"
_ROWS = "for mps the meta function in C++ takes rows, and of a fake tensor it sees the device meta"
EXCUSED = {
    **dict.fromkeys(("native_batch_norm", "_native_batch_norm_legit"), _EMPTY),
    **dict.fromkeys(("linalg.lu_factor", "linalg.lu_factor_ex", "linalg.solve", "linalg.solve_ex", "lu"), _ROWS),
}
Layout = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]


@dataclass(frozen=True)
class Difference:
    """What a call returned, and what its meta function promises, a shape, strides and a type for each tensor."""

    name: str
    returned: tuple[Layout, ...]
    promised: tuple[Layout, ...]


def compare(name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Difference | None:
    """The difference of a call, if there is one. Raises what the function raises, on the device or on fake tensors."""
    returned = _list_layouts(function(*args, **kwargs))
    with FakeTensorMode() as mode:
        fake_args, fake_kwargs = tree_map_only(torch.Tensor, mode.from_tensor, (args, kwargs))
        promised = _list_layouts(function(*fake_args, **fake_kwargs))
    return Difference(name, returned, promised) if returned != promised else None


def compare_samples(op: Any, most: int) -> Iterator[Difference | None]:
    """Compares at most so many samples of an OpInfo, as they are and with channels last; None for equal ones.

    Samples that raise on either side are left out.
    """
    try:
        samples = list(op.sample_inputs("mps", torch.float32, requires_grad=False))[:most]
    except (TypeError, RuntimeError, NotImplementedError):  # a sample of a type that the device has not
        return
    for sample in samples:
        inputs = [sample.input]
        if isinstance(sample.input, torch.Tensor) and sample.input.dim() == 4:
            inputs.append(sample.input.contiguous(memory_format=torch.channels_last))
        for value in inputs:
            try:
                yield compare(op.name, op, value, *sample.args, **sample.kwargs)
            except Exception:  # data-dependent operators raise of their own on fake tensors
                continue


def _list_layouts(value: Any) -> tuple[Layout, ...]:
    tensors = [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided]
    return tuple(_describe(tensor) for tensor in tensors)


def _describe(tensor: torch.Tensor) -> Layout:
    """Strides of a dimension of one element, and of an empty tensor, say nothing."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    strides = tuple(stride if size > 1 else 1 for size, stride in pairs) if tensor.numel() else ()
    return tuple(tensor.shape), strides, tensor.dtype
