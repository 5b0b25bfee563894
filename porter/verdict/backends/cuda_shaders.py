"""A port's kernels on an NVIDIA GPU, behind the rows of an operator whose tensors lie on the CPU."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from aten_overlay.cuda.compile import compile_family
from aten_overlay.cuda.library import CudaLibrary, load_library
from aten_overlay.metal.build import Options
from aten_overlay.metal.cuda.module import PtxModule
from porter.core.errors import PorterError
from porter.verdict.backends.shaders import Shaders, implementation
from porter.verdict.suite.compare import HALVES

DEVICE = "cuda"
GROUP = 64
# How far kernels and torch's own CUDA kernels may lie apart: two roundings of the type, and of functions that both
# compute in a few operations.
_TOLERANCES: Mapping[torch.dtype, tuple[float, float]] = {
    torch.float32: (2e-5, 2e-5), torch.complex64: (2e-5, 2e-5), torch.float16: (2e-3, 2e-3),
    torch.bfloat16: (1.6e-2, 1.6e-2),
}  # fmt: skip


class CudaShaders:
    """What `torch.mps.compile_shader` returns, for CPU tensors: a call computes on copies, and copies back."""

    def __init__(self, library: CudaLibrary) -> None:
        self._library = library

    def __dir__(self) -> list[str]:
        return dir(self._library)

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("_") or name not in dir(self._library):
            raise AttributeError(name)
        kernel = getattr(self._library, name)

        def call(*args: Any, threads: Sequence[int], arg_casts: Mapping[int, str]) -> None:
            storages: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
            given = [_move(value, storages) if isinstance(value, torch.Tensor) else value for value in args]
            group = [min(GROUP, threads[0]), *[1] * (len(threads) - 1)]
            kernel(*given, threads=threads, group_size=group, arg_casts=arg_casts)
            for here, there in storages.values():
                here.copy_(there)

        return call


def _move(tensor: torch.Tensor, storages: dict[int, tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    """The same elements in a copy of the tensor's storage on the GPU; tensors of one storage share the copy."""
    storage = tensor.untyped_storage()
    if storage.data_ptr() not in storages:
        bytes_ = torch.empty(0, dtype=torch.uint8).set_(storage)
        storages[storage.data_ptr()] = bytes_, bytes_.to(DEVICE)
    there = storages[storage.data_ptr()][1].untyped_storage()
    return torch.empty(0, dtype=tensor.dtype, device=DEVICE).set_(
        there, tensor.storage_offset(), tensor.shape, tensor.stride()
    )


class Redirect(TorchDispatchMode):
    """Sends the rows of one operator to its kernels, and compares what they compute with torch's CUDA kernels."""

    def __init__(self, rows: Mapping[str, Callable[..., torch.Tensor]]) -> None:
        super().__init__()
        self._rows = rows

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = func.name().removeprefix("aten::"), kwargs or {}
        if name not in self._rows:
            return func(*args, **kwargs)
        writes = func._schema.is_mutable
        there = None if writes else _try_on_cuda(func, args, kwargs)
        found = self._rows[name](*args, **kwargs)
        if there is not None:
            require_agreement(name, found, there, func(*args, **kwargs))
        return found


def _try_on_cuda(func: Any, args: Any, kwargs: Any) -> torch.Tensor | None:
    """What torch's CUDA kernel computes; None for what it refuses or has no kernel for."""
    try:
        result = func(*map(_to_cuda, args), **{name: _to_cuda(value) for name, value in kwargs.items()})
    except (RuntimeError, TypeError, NotImplementedError):
        return None
    return result if isinstance(result, torch.Tensor) else None


def _to_cuda(value: Any) -> Any:
    return value.to(DEVICE) if isinstance(value, torch.Tensor) and value.dtype != torch.float64 else value


def require_agreement(name: str, found: torch.Tensor, there: torch.Tensor, here: torch.Tensor) -> None:
    """Raises AssertionError where a kernel's result differs from torch's on CUDA by more than both may be wrong.

    Where torch's own results on CUDA and `here` on the CPU differ, they say nothing about the kernel.
    """
    wanted = there.cpu()
    if any(each.dtype != found.dtype or each.shape != found.shape for each in (wanted, here)):
        return  # the CPU decides what a result is
    relative, absolute = _TOLERANCES.get(found.dtype, (0.0, 0.0))
    if found.dtype in HALVES:
        found, wanted, here = found.float(), wanted.float(), here.float()
    close = torch.isclose(found, wanted, rtol=relative, atol=absolute, equal_nan=True)
    close |= ~torch.isclose(here, wanted, rtol=relative, atol=absolute, equal_nan=True)
    if not close.all():
        at = int((~close).flatten().nonzero()[0])
        ours, theirs = found.flatten()[at].item(), wanted.flatten()[at].item()
        raise AssertionError(f"{name}: the kernel gives {ours}, torch's CUDA kernel {theirs}, at element {at}")


def load_functor(sources: Sequence[Path], functor: str, include: Sequence[Path], per_thread: int = 1) -> Shaders:
    """The kernels of a functor on the GPU. Raises PTR173 when no file registers any."""
    return Shaders(CudaShaders(load_library(compile_functor(sources, functor, include))), {}, per_thread)


def compile_functor(sources: Sequence[Path], functor: str, include: Sequence[Path]) -> PtxModule:
    """The kernels of a functor as PTX, from the store or compiled. Raises PTR173 when no file registers any."""
    options = Options(include=tuple(include))
    for source in sources:
        if functor in source.read_text():
            module = compile_family(source, f"{functor}_", options)
            if module.entries:
                return module
    raise PorterError("PTR173", f"no kernel file registers a kernel for {functor}", hint="Add its REGISTER_* lines.")


def redirect(rows: Sequence[str], functor: str, found: Shaders) -> Redirect:
    """The context in which these rows run on these kernels."""
    return Redirect({row: implementation(row, functor, found) for row in rows})
