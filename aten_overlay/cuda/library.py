"""`compile_shader` for CUDA tensors: a library of kernels of a Metal source, compiled to PTX when it is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from aten_overlay.cuda.compile import PLAIN, compile_kernels
from aten_overlay.cuda.driver import Driver, find_driver
from aten_overlay.cuda.kernel import CudaKernel, Indices
from aten_overlay.cuda.modules import Modules
from aten_overlay.cuda.torch_side import Torch, TorchSide
from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import DEFAULT, Options
from aten_overlay.metal.cuda.module import PtxModule
from aten_overlay.metal.cuda.target import CudaOptions

# Compiles the kernel of a name with the references at some indices passed as addresses.
Compile: TypeAlias = Callable[[str, Indices], PtxModule]


class CudaLibrary:
    """Compiled kernels, each an attribute. Raises RuntimeError for a name that is none of them, as torch does."""

    def __init__(
        self,
        module: PtxModule,
        compile_variant: Compile,
        driver: Driver | None = None,
        side: TorchSide | None = None,
        restrict: bool = True,
    ) -> None:
        self._module, self._compile = module, compile_variant
        self._driver, self._side = driver or find_driver(), side or _torch()
        self._modules = Modules(module.text, self._driver)
        self._restrict = restrict
        self._kernels: dict[tuple[str, Indices], CudaKernel] = {}

    def __dir__(self) -> list[str]:
        return list(self._module.entries)

    def __getattr__(self, name: str) -> CudaKernel:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._module.entries:
            raise RuntimeError(f"Failed to create function state object for: {name}")
        found = self._find_kernel(name, ())
        self.__dict__[name] = found  # which is asked for again without this function
        return found

    def _find_kernel(self, name: str, by_address: Indices) -> CudaKernel:
        if (name, by_address) not in self._kernels:
            module, modules = self._module, self._modules
            if by_address:
                module = self._compile(name, by_address)
                modules = Modules(module.text, self._driver)
            self._kernels[name, by_address] = CudaKernel(
                module.entries[name], modules, self._driver, self._side, self._find_kernel, self._restrict
            )
        return self._kernels[name, by_address]


def compile_shader(
    source: str | Path,
    names: Sequence[str] | None = None,
    options: Options = DEFAULT,
    cuda: CudaOptions = PLAIN,
    restrict: bool = True,
) -> CudaLibrary:
    """The kernels of a Metal source on CUDA tensors: all, or those named.

    Without `restrict`, every launch is right for buffers that overlap too. Raises PTR385 (no GPU), PTR391 (neither a
    compiler nor PTX that was made elsewhere), and what compiling raises.
    """

    def compile_variant(name: str, by_address: Indices) -> PtxModule:
        passing = (*cuda.passing, *((index, 0) for index in by_address))
        return compile_kernels(source, [name], options, replace(cuda, passing=passing))

    return CudaLibrary(compile_kernels(source, names, options, cuda), compile_variant, restrict=restrict)


def load_library(module: PtxModule) -> CudaLibrary:
    """Kernels that are compiled already, whose references take numbers alone. Raises PTR385."""

    def refuse(name: str, by_address: Indices) -> PtxModule:
        what = f"kernel `{name}` takes argument {by_address[0]} by its value, and gets a tensor"
        raise OverlayError("PTR393", what, hint="Pass a number.")

    return CudaLibrary(module, refuse)


@lru_cache(maxsize=1)
def _torch() -> Torch:
    return Torch()
