"""Element types of MPSGraph and of torch. Source: MPSDataType in Apple's documentation of Metal Performance Shaders."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from aten_overlay.apple.mpsgraph.objects import Array
from aten_overlay.errors import OverlayError

_FLOAT, _COMPLEX, _SIGNED, _OTHER = 0x10000000, 0x01000000, 0x20000000, 0x80000000

TORCH: Mapping[int, torch.dtype] = {
    _FLOAT | 32: torch.float32,
    _FLOAT | 16: torch.float16,
    _OTHER | _FLOAT | 16: torch.bfloat16,
    _FLOAT | _COMPLEX | 64: torch.complex64,
    _FLOAT | _COMPLEX | 32: torch.complex32,
    _SIGNED | 8: torch.int8,
    _SIGNED | 16: torch.int16,
    _SIGNED | 32: torch.int32,
    _SIGNED | 64: torch.int64,
    8: torch.uint8,
    16: torch.uint16,
    32: torch.uint32,
    64: torch.uint64,
    _OTHER | 8: torch.bool,
}
MPS: Mapping[torch.dtype, int] = {dtype: code for code, dtype in TORCH.items()}


def torch_type(code: int) -> torch.dtype:
    """The torch type of an MPSDataType. Raises PTR132."""
    if code not in TORCH:
        raise OverlayError("PTR132", f"MPSDataType {code:#x} has no torch type", hint="Report it with the operator.")
    return TORCH[code]


@dataclass(frozen=True)
class Unknown:
    """A result whose shape depends on values."""

    dtype: torch.dtype


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
