"""Element types between torch and Metal."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from porter.core.dtypes import ALL, SCALAR_TYPES, Kind, ScalarType

# Metal has these, but no kernel of ATen is registered for them, so `porter.core.dtypes` gives them no Metal name.
_UNSIGNED = {"uint16": "ushort", "uint32": "uint", "uint64": "ulong"}
_METAL: Mapping[torch.dtype, str] = {
    **{getattr(torch, dtype.torch): dtype.metal for dtype in ALL},
    **{getattr(torch, name): metal for name, metal in _UNSIGNED.items()},
}
_TORCH = {metal: dtype for dtype, metal in _METAL.items()}
_SCALAR_TYPES: Mapping[torch.dtype, ScalarType] = {getattr(torch, each.torch): each for each in SCALAR_TYPES}
# MSL 6.15: what `metal::atomic` may hold.
_ATOMIC = frozenset((torch.int32, torch.uint32, torch.float32, torch.uint64))


def metal_type(dtype: torch.dtype) -> str | None:
    """Metal's name of `dtype`, or None if Metal has no such type."""
    return _METAL.get(dtype)


def torch_type(metal: str) -> torch.dtype:
    """The torch type that Metal calls `metal`. Raises KeyError for a type that torch does not have."""
    return _TORCH[metal]


def describe(dtype: torch.dtype) -> ScalarType:
    """The facts about `dtype`. Raises KeyError for a type that ATen's kernels do not handle."""
    return _SCALAR_TYPES[dtype]


def is_atomic(dtype: torch.dtype) -> bool:
    """Whether Metal has an atomic of `dtype`."""
    return dtype in _ATOMIC


def limits(dtype: torch.dtype) -> tuple[int, int] | None:
    """The least and greatest value of an integer type; None for the others."""
    if describe(dtype).kind is not Kind.INTEGRAL:
        return None
    info = torch.iinfo(dtype)
    return info.min, info.max
