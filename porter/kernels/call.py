"""What one call of a kernel gives: operands, grid, outputs and template, checked and in one form."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import torch

from porter.core.dtypes import ALL, SCALAR_TYPES, Kind, ScalarType
from porter.core.setting import setting
from porter.kernels.kernel import AddressSpace, Kernel, Operand, TemplateArgument

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


Number: TypeAlias = bool | int | float
Value: TypeAlias = torch.Tensor | Number
TemplateValue: TypeAlias = torch.dtype | bool | int
# The device of tensors that kernels run on, unless they lie on a CUDA device.
DEVICE, CUDA = "mps", "cuda"
# Tensors of fewer elements lie in Metal's constant address space, as MLX passes them.
SMALL = 8
_BITS = 32  # of a number that is passed as an int
_NUMBERS: Mapping[type, torch.dtype] = {bool: torch.bool, int: torch.int32, float: torch.float32}


@dataclass(frozen=True)
class Output:
    """The shape and the element type of one output."""

    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True)
class Call:
    """One call: `inputs` and `outputs` in the order of the kernel's names, three dimensions of threads."""

    inputs: tuple[Value, ...]
    outputs: tuple[Output, ...]
    grid: tuple[int, int, int]
    threadgroup: tuple[int, int, int]
    template: tuple[TemplateArgument, ...] = ()
    init_value: Number | None = None
    in_host: bool = False  # inputs lie in the host's memory, and the stand-in device reads them there

    @property
    def group(self) -> tuple[int, int, int]:
        """Threads of a threadgroup: never more than the grid has."""
        x, y, z = (min(group, grid) for group, grid in zip(self.threadgroup, self.grid, strict=True))
        return x, y, z


def operand(name: str, value: Value, in_device: bool = False) -> Operand:
    """How input `name` is passed: numbers and small tensors as constants, unless tensors are always `in_device`."""
    if not isinstance(value, torch.Tensor):
        return Operand(name, _name(_NUMBERS[type(value)]), 0, AddressSpace.CONSTANT)
    small = value.numel() < SMALL and not in_device
    space = AddressSpace.CONSTANT if small else AddressSpace.DEVICE
    return Operand(name, _name(value.dtype), value.dim(), space)


def output_operand(name: str, output: Output) -> Operand:
    """How output `name` is passed."""
    return Operand(name, _name(output.dtype), len(output.shape))


def template_arguments(template: Mapping[str, TemplateValue]) -> tuple[TemplateArgument, ...]:
    """Template parameters and values in Metal's words."""
    return tuple(_template_argument(name, value) for name, value in template.items())


def _template_argument(name: str, value: TemplateValue) -> TemplateArgument:
    if isinstance(value, torch.dtype):
        return TemplateArgument("typename", name, _name(value))
    if isinstance(value, bool):
        return TemplateArgument("bool", name, str(value).lower())
    return TemplateArgument("int", name, str(value))


def _name(dtype: torch.dtype) -> str:
    """Metal's name of a type that has been checked to have one."""
    name = metal_type(dtype)
    assert name is not None, dtype
    return name


def device_of(inputs: Sequence[object]) -> str:
    """Where a call runs: on the CUDA device of a tensor that lies on one; on the CPU if a tensor with dimensions lies
    there and none on the mps device. Numbers alone run on the mps device, or a CUDA device where there is no other.
    """
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    kinds = {t.device.type for t in tensors}
    if not kinds - {"cpu"} and all(t.dim() == 0 for t in tensors) and _has_cuda_alone():
        return f"{CUDA}:{torch.cuda.current_device()}"
    if CUDA in kinds and DEVICE not in kinds:
        return next(str(t.device) for t in tensors if t.device.type == CUDA)
    return "cpu" if DEVICE not in kinds and any(t.dim() > 0 and t.device.type == "cpu" for t in tensors) else DEVICE


@lru_cache(maxsize=1)
def _has_cuda_alone() -> bool:
    return torch.cuda.is_available() and not torch.backends.mps.is_available()


def is_cuda(device: str) -> bool:
    """Whether `device_of` named a CUDA device."""
    return device.startswith(CUDA)


def number_type(value: Number) -> torch.dtype:
    """The element type that a number is passed as."""
    return _NUMBERS[type(value)]


def is_large(number: Number) -> bool:
    """Whether a number may be more than the argument of a kernel holds: 32 bits of an integer, or a float32."""
    if isinstance(number, int):
        return number.bit_length() >= _BITS
    return math.isfinite(number) and abs(number) > torch.finfo(torch.float32).max


def three(sizes: Sequence[int]) -> tuple[int, int, int]:
    """One to three sizes as three."""
    x, y, z = (*sizes, *[1] * (3 - len(sizes)))
    return x, y, z


# Gets a kernel and the arguments of its call by name, as `MetalKernel` takes them; gives its outputs in their order.
Interceptor: TypeAlias = Callable[[Kernel, Mapping[str, Any]], list[Any]]
_interceptor: ContextVar[Interceptor | None] = ContextVar("interceptor", default=None)


def intercepting(interceptor: Interceptor) -> AbstractContextManager[None]:
    """Calls `interceptor` for every call of a kernel in a block."""
    return setting(_interceptor, interceptor)


def find_interceptor() -> Interceptor | None:
    """Who takes the calls of kernels; None where they run, as in code that torch.compile traces."""
    return None if torch.compiler.is_compiling() else _interceptor.get()


def is_intercepted() -> bool:
    """Whether somebody takes the calls of kernels, in code that nothing traces."""
    return _interceptor.get() is not None
