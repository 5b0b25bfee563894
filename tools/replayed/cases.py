"""Arguments of kernels that are called by themselves: tensors where they take pointers, bytes for values."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch

TYPES: Mapping[str, torch.dtype] = {
    "float": torch.float32, "half": torch.float16, "bfloat": torch.bfloat16, "bool": torch.bool, "char": torch.int8,
    "uchar": torch.uint8, "short": torch.int16, "int": torch.int32, "long": torch.int64, "int32_t": torch.int32,
    "int64_t": torch.int64, "64bit": torch.int64, "32bit": torch.int32, "16bit": torch.int16, "8bit": torch.int8,
}  # fmt: skip
VECTORS: Mapping[str, torch.dtype] = {"float2": torch.float32, "half2": torch.float16}
COUNT = 10007  # elements: a prime, so that no threadgroup ends where they do


@dataclass(frozen=True)
class Table:
    """A structure of addresses: in each place that of a tensor, or none (-1)."""

    tensors: tuple[torch.Tensor, ...]
    places: tuple[int, ...]

    def pack(self, tensors: Sequence[torch.Tensor]) -> bytes:
        """The structure's bytes with the addresses of `tensors` in the place of its own."""
        return pack(f"{len(self.places)}Q", *(tensors[at].data_ptr() if at >= 0 else 0 for at in self.places))


Argument: TypeAlias = torch.Tensor | bytes | Table


@dataclass(frozen=True)
class Case:
    """The arguments in the order of the buffers, and the grid. Argument `output` is what torch's function of `inputs`
    computes, if there is one. `shared` are the bytes of threadgroup argument 0."""

    args: tuple[Argument, ...]
    grid: tuple[int, ...]
    group: tuple[int, ...]
    inputs: tuple[torch.Tensor, ...] = ()
    output: int = 0
    shared: int = 0


def make_values(name: str, dtype: torch.dtype, *shape: int, low: float = -3, high: float = 3) -> torch.Tensor:
    """Values of a type, the same for one name."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    if dtype.is_floating_point or dtype.is_complex:
        wide = torch.complex64 if dtype.is_complex else torch.float32
        return (torch.rand(shape, generator=generator, dtype=wide) * (high - low) + low).to(dtype)
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    bottom = max(int(low), 0 if dtype is torch.uint8 else int(low))
    return torch.randint(bottom, max(int(high), bottom + 1) + 1, shape, generator=generator).to(dtype)


def make_output(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Memory that is not what a kernel writes, unless by chance."""
    return torch.full(shape, 77, dtype=torch.int32).to(dtype)


def pack(format_: str, *values: float) -> bytes:
    """Values as a kernel reads them."""
    return struct.pack(f"<{format_}", *values)


def pack_strides(tensor: torch.Tensor) -> bytes:
    """Strides as 64-bit numbers."""
    return pack(f"{tensor.dim()}q", *tensor.stride())


def pack_sizes(tensor: torch.Tensor) -> bytes:
    """Sizes as 64-bit numbers."""
    return pack(f"{tensor.dim()}q", *tensor.shape)


def make_offsets(count: int, *sizes: int) -> torch.Tensor:
    """A row of three byte offsets an element, for elements of these sizes, in the room of four."""
    at = torch.arange(count, dtype=torch.int32)
    return torch.stack([at * sizes[0], at * sizes[1], at * sizes[2], at * 0], 1).contiguous()


def result_of(name: str) -> tuple[torch.dtype, torch.dtype]:
    """Input and output type of a kernel that is named by both, in any order: integers give floats."""
    first, second = (TYPES[part] for part in name.split("_"))
    return (second, first) if first.is_floating_point and not second.is_floating_point else (first, second)
