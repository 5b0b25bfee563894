"""`compile_shader`: whole Metal kernels, called with tensors of the mps device or of a CUDA device."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch

from aten_overlay.errors import OverlayError
from porter.kernels import cuda
from porter.kernels.launch import PLAIN, compiled


class Shaders:
    """The kernels of a source, compiled for a device when one is first called with its tensors."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Shader:
        if name.startswith("_"):
            raise AttributeError(name)
        return Shader(self._source, name)


class Shader:
    """One kernel. `shader(x, y, threads=...)` has the arguments of `torch.mps.compile_shader`'s kernels."""

    def __init__(self, source: str, name: str) -> None:
        self._source, self._name = source, name

    @cached_property
    def _on_mps(self) -> Any:
        return getattr(compiled(self._source, PLAIN), self._name)

    @cached_property
    def _on_cuda(self) -> Any:
        return getattr(cuda.compiled(self._source), self._name)

    def __call__(self, *args: Any, **how: Any) -> None:
        """Launches the kernel where its first tensor lies. Raises PTR219, PTR380-PTR393, and what torch raises."""
        if not any(isinstance(argument, torch.Tensor) and argument.is_cuda for argument in args):
            self._on_mps(*args, **how)
            return
        try:
            self._on_cuda(*args, **how)
        except OverlayError as error:
            raise cuda.convert(error) from error


def compile_shader(source: str) -> Shaders:
    """The kernels of a Metal source, each an attribute. It is compiled when a kernel is called."""
    return Shaders(source)
