"""A port's kernels compiled for this machine's processor, behind the rows of an operator."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options, compile_kernels, host_names
from aten_overlay.metal.launch import Library
from porter.core.errors import PorterError
from porter.core.files import read_regular
from porter.verdict.backends.shaders import Shaders, implementation
from porter.verdict.build.kernel_files import defines_kernel

GROUP = 64
_INTEGERS = {1: ctypes.c_int8, 2: ctypes.c_int16, 4: ctypes.c_int32, 8: ctypes.c_int64}


class HostShaders:
    """What `torch.mps.compile_shader` returns, for the host: `library.name(*args, threads=...)`."""

    def __init__(self, source: Path, names: Sequence[str], options: Options) -> None:
        self._library = Library(compile_kernels(source, names, options))

    def __dir__(self) -> list[str]:
        return list(self._library.names)

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("_") or name not in self._library.names:
            raise AttributeError(name)
        sizes = list(self._library.argument_sizes(name).values())

        def call(*args: Any, threads: Sequence[int], arg_casts: Mapping[int, str]) -> None:
            buffers = [_buffer(value, size) for value, size in zip(args, sizes, strict=True)]
            self._library.run(name, buffers, threads, (min(GROUP, threads[0]),), threads=1)

        return call


class Redirect(TorchDispatchMode):
    """Sends the rows of one operator to its kernels."""

    def __init__(self, rows: Mapping[str, Callable[..., torch.Tensor]]) -> None:
        super().__init__()
        self._rows = rows

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.name().removeprefix("aten::")
        return self._rows.get(name, func)(*args, **(kwargs or {}))


def compile_functor(sources: Sequence[Path], functor: str, options: Options, per_thread: int = 1) -> Shaders:
    """The kernels of a functor, all compiled at once. Raises PTR173 when no file registers any.

    Files that cannot be read are left out, but for one that defines the functor's kernels.
    """
    for source in sources:
        try:
            every = host_names(source, options)
        except OverlayError:
            if defines_kernel(read_regular(source).decode(errors="surrogateescape"), [functor]):
                raise
            continue
        names = [name for name in every if name.startswith(f"{functor}_")]
        if names:
            return Shaders(HostShaders(source, names, options), {}, per_thread)
    raise PorterError("PTR173", f"no kernel file registers a kernel for {functor}", hint="Add its REGISTER_* lines.")


def redirect(rows: Sequence[str], functor: str, found: Shaders) -> Redirect:
    """The context in which these rows run on these kernels."""
    return Redirect({row: implementation(row, functor, found) for row in rows})


def _buffer(value: Any, size: int) -> Any:
    """An argument as memory: numbers in the width that the kernel's parameter has."""
    if isinstance(value, torch.Tensor):
        return value
    values = value if isinstance(value, (list, tuple)) else [value]
    if isinstance(values[0], float):
        return (ctypes.c_float * len(values))(*values)
    kind: Any = _INTEGERS.get(size, ctypes.c_int32)  # a vector such as uint3 is a row of 32-bit numbers
    return (kind * len(values))(*values)
