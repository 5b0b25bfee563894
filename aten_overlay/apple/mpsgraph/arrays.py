"""Arrays of the frameworks as CPU tensors over the same bytes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import torch

from aten_overlay.apple.mpsgraph.objects import Array
from aten_overlay.apple.mpsgraph.types import torch_type


def over(array: Array, host_address: Callable[[int], int]) -> torch.Tensor:
    """The memory of an array."""
    dtype = torch_type(array.data_type)
    shape, strides = list(array.shape[: array.rank]), list(array.strides[: array.rank])
    if 0 in shape:
        return torch.empty(shape, dtype=dtype)
    last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    size = (last + 1) * dtype.itemsize
    buffer = (ctypes.c_char * size).from_address(host_address(array.address))
    return torch.frombuffer(buffer, dtype=dtype).as_strided(shape, strides)
