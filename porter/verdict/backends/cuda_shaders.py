"""A port's kernels on an NVIDIA GPU, behind the rows of an operator whose tensors lie on the CPU."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from aten_overlay.cuda.compile import compile_family
from aten_overlay.cuda.library import CudaLibrary, load_library
from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options
from aten_overlay.metal.compiler import find_clang
from aten_overlay.metal.cuda.module import PtxModule
from porter.core.errors import PorterError
from porter.verdict.backends import host_shaders
from porter.verdict.backends.beside import HOST, TORCH, Comparisons
from porter.verdict.backends.cuda_torch import DEVICE, NoResult, compute, refusing_full_memory
from porter.verdict.backends.shaders import Shaders, implementation
from porter.verdict.suite.compare import find_disagreement, widen

GROUP = 64


class CudaShaders:
    """What `torch.mps.compile_shader` returns, for CPU tensors: a call computes on copies, and copies back.

    With the same kernels on the `host`, each call's results there stand beside the GPU's in `comparisons`.
    """

    def __init__(self, library: CudaLibrary, host: Any, comparisons: Comparisons) -> None:
        self._library, self._host, self._comparisons = library, host, comparisons

    def __dir__(self) -> list[str]:
        return dir(self._library)

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("_") or name not in dir(self._library):
            raise AttributeError(name)
        kernel = getattr(self._library, name)

        def call(*args: Any, threads: Sequence[int], arg_casts: Mapping[int, str]) -> None:
            storages: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
            with refusing_full_memory():
                given = [_move(value, storages, DEVICE) if isinstance(value, torch.Tensor) else value for value in args]
            wanted = self._run_on_host(name, args, threads, arg_casts)
            group = [min(GROUP, threads[0]), *[1] * (len(threads) - 1)]
            kernel(*given, threads=threads, group_size=group, arg_casts=arg_casts)
            for here, there in storages.values():
                here.copy_(there)
            for mine, theirs in zip(args, wanted, strict=False):
                if isinstance(mine, torch.Tensor):
                    self._comparisons.add(HOST, name, mine, theirs)
                    break  # the result is the first

        return call

    def _run_on_host(
        self, name: str, args: Sequence[Any], threads: Sequence[int], casts: Mapping[int, str]
    ) -> list[Any]:
        """The arguments after a run on the host, on copies of their own."""
        if self._host is None:
            result = next(value for value in args if isinstance(value, torch.Tensor))
            self._comparisons.leave_out(HOST, result.dtype, "there is no compiler for the host's kernels here")
            return []
        storages: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        given = [_move(value, storages, "cpu") if isinstance(value, torch.Tensor) else value for value in args]
        getattr(self._host, name)(*given, threads=threads, arg_casts=casts)
        return given


def _move(tensor: torch.Tensor, storages: dict[int, tuple[torch.Tensor, torch.Tensor]], device: str) -> torch.Tensor:
    """The same elements in a copy of the tensor's storage on a device; tensors of one storage share the copy."""
    storage = tensor.untyped_storage()
    if storage.data_ptr() not in storages:
        bytes_ = torch.empty(0, dtype=torch.uint8).set_(storage)
        storages[storage.data_ptr()] = bytes_, bytes_.to(device, copy=True)
    there = storages[storage.data_ptr()][1].untyped_storage()
    return torch.empty(0, dtype=tensor.dtype, device=device).set_(
        there, tensor.storage_offset(), tensor.shape, tensor.stride()
    )


class Redirect(TorchDispatchMode):
    """Sends the rows of one operator to its kernels, and puts what they compute beside torch's CUDA kernels."""

    def __init__(self, rows: Mapping[str, Callable[..., torch.Tensor]], comparisons: Comparisons) -> None:
        super().__init__()
        self._rows, self._comparisons = rows, comparisons

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = func.name().removeprefix("aten::"), kwargs or {}
        if name not in self._rows:
            return func(*args, **kwargs)
        if func._schema.is_mutable:
            return self._rows[name](*args, **kwargs)
        there = _try_on_cuda(func, args, kwargs)
        found = self._rows[name](*args, **kwargs)
        if isinstance(there, str):
            self._comparisons.leave_out(TORCH, found.dtype, there)
        elif (found.dtype, found.shape) == (there.dtype, there.shape):
            wrong = self._comparisons.add(TORCH, name, found, there.cpu())
            if wrong:
                require_the_cpu(f"{name} {wrong} by torch's CUDA", found, Sample(func, args, kwargs))
        else:
            self._comparisons.leave_out(TORCH, found.dtype, f"its result is {there.dtype} {tuple(there.shape)}")
        return found


def _try_on_cuda(func: Any, args: Any, kwargs: Any) -> torch.Tensor | str:
    """What torch's CUDA kernel computes, or why it computes nothing."""
    try:
        return compute(func, args, kwargs)
    except NoResult as error:
        return str(error)


@dataclass(frozen=True)
class Sample:
    """A call of an operator on the CPU."""

    func: Any
    args: Sequence[Any]
    kwargs: Mapping[str, Any]

    def compute(self, change: Callable[[Any], Any] = lambda value: value) -> torch.Tensor | None:
        """The CPU's result for changed arguments; None for what it refuses."""
        try:
            result = self.func(*map(change, self.args), **{name: change(each) for name, each in self.kwargs.items()})
        except (RuntimeError, TypeError):
            return None
        return result if isinstance(result, torch.Tensor) else None


def require_the_cpu(what: str, found: torch.Tensor, sample: Sample) -> None:
    """Raises AssertionError where a result that is not torch's on CUDA is not the CPU's either.

    The CPU's is the truth, within the bounds that it is for the host's kernels. A type that the CPU does not compute
    has that of the suite, which compares with a wider one.
    """
    here = sample.compute()
    if here is None:
        return
    operands = [each for each in sample.args if isinstance(each, torch.Tensor)]
    shaped = [each.expand(found.shape) for each in operands]
    why = find_disagreement(found, here, sample.compute(widen), shaped, atol=None, rtol=None)
    if why:
        raise AssertionError(f"{what}; {why}")


def load_functor(
    sources: Sequence[Path], functor: str, include: Sequence[Path], comparisons: Comparisons, per_thread: int = 1
) -> Shaders:
    """The kernels of a functor on the GPU, beside those on the host where a compiler is. Raises PTR173 without any."""
    library = load_library(compile_functor(sources, functor, include))
    host = _compile_for_host(sources, functor, include)
    return Shaders(CudaShaders(library, host, comparisons), {}, per_thread)


def _compile_for_host(sources: Sequence[Path], functor: str, include: Sequence[Path]) -> Any:
    try:
        find_clang()
    except OverlayError:
        return None
    return host_shaders.compile_functor(sources, functor, Options(include=tuple(include))).library


def compile_functor(sources: Sequence[Path], functor: str, include: Sequence[Path]) -> PtxModule:
    """The kernels of a functor as PTX, from the store or compiled. Raises PTR173 when no file registers any."""
    options = Options(include=tuple(include))
    for source in sources:
        if functor in source.read_text():
            module = compile_family(source, f"{functor}_", options)
            if module.entries:
                return module
    raise PorterError("PTR173", f"no kernel file registers a kernel for {functor}", hint="Add its REGISTER_* lines.")


def redirect(rows: Sequence[str], functor: str, found: Shaders, comparisons: Comparisons) -> Redirect:
    """The context in which these rows run on these kernels."""
    return Redirect({row: implementation(row, functor, found) for row in rows}, comparisons)
