"""Numbers and lists of a call as the bytes that a kernel reads, in the widths of `torch.mps.compile_shader`."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import torch

_CASTS: Mapping[str, torch.dtype] = {
    "fp16": torch.float16, "bf16": torch.bfloat16, "int32": torch.int32, "int16": torch.int16, "int8": torch.int8,
    "uint8": torch.uint8,
}  # fmt: skip
_FLOAT, _LONG, _INT = struct.Struct("<f"), struct.Struct("<q"), struct.Struct("<i")
_TO_INT = (-(1 << 31), 1 << 31)
_TO_LONG = (-(1 << 63), 1 << 63)
# Numbers whose sizes differ by this much are rows of three, which Metal keeps in the room of four.
_THREE_OF_FOUR = 0.75


def pack_argument(index: int, value: Any, cast: str | None) -> bytes:
    """The bytes of a number or of a list of numbers. Raises RuntimeError, as torch does, for anything else."""
    if isinstance(value, list | tuple):
        return _pack_list(index, value, cast)
    if not isinstance(value, int | float):
        raise RuntimeError(f"Unsupported argument type {type(value).__name__} at index {index}")
    return pack_numbers([value], cast)


def pack_numbers(values: Sequence[int | float], cast: str | None) -> bytes:
    """64-bit integers or floats unless narrowed."""
    first = values[0]
    if isinstance(first, float) and cast is None:
        return b"".join(map(pack_float, values))
    if not isinstance(first, float):
        whole = {None: (_LONG, _TO_LONG), "int32": (_INT, _TO_INT)}.get(cast)
        if whole is not None and all(whole[1][0] <= v < whole[1][1] for v in values):
            return b"".join(map(whole[0].pack, map(int, values)))
    if cast is not None and cast not in _CASTS:
        raise RuntimeError(f"Unsupported cast instruction {cast}")
    plain = torch.float32 if isinstance(first, float) else torch.int64
    wide = torch.tensor(values, dtype=torch.float64 if plain is torch.float32 else torch.int64)
    return pack_tensor(wide.to(plain if cast is None else _CASTS[cast]))


def pack_tensor(tensor: torch.Tensor) -> bytes:
    """The bytes of a tensor, which is read from its device if it lies on one."""
    host = tensor.detach().cpu().contiguous().reshape(-1)
    return bytes(host.view(torch.uint8).numpy().tobytes()) if host.numel() else b""


def fit(data: bytes, size: int) -> bytes | None:
    """Bytes for a parameter of that size: wider numbers lose their upper bytes. None if there are too few."""
    if len(data) >= size:
        return data[:size]
    return data.ljust(size, b"\0") if len(data) == size * _THREE_OF_FOUR else None


def pack_float(value: int | float) -> bytes:
    """The bytes of a float."""
    try:
        return _FLOAT.pack(value)
    except OverflowError:  # torch rounds what float32 cannot hold to infinity
        return pack_tensor(torch.tensor([value], dtype=torch.float64).to(torch.float32))


def _pack_list(index: int, values: Sequence[Any], cast: str | None) -> bytes:
    if not values:
        raise RuntimeError("Empty list/tuple can not be an argument to metal kernel")
    kinds: Mapping[type, type] = {bool: int, int: int, float: float}
    kind = kinds.get(type(values[0]))
    if kind is None or not all(isinstance(v, (kind, int) if kind is float else kind) for v in values):
        raise RuntimeError(f"Unexpected argument types in the list at index {index}")
    return pack_numbers([kind(v) for v in values], cast)
