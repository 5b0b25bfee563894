"""A port's kernels on an NVIDIA GPU, behind the rows of an operator whose tensors lie on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from aten_overlay.cuda.compile import PLAIN, SCHEDULED, compile_family
from aten_overlay.cuda.kernel import CudaKernel
from aten_overlay.cuda.library import CudaLibrary, load_library
from aten_overlay.cuda.schedule import ScheduledKernel, ScheduledLibrary, load_scheduled
from aten_overlay.cuda.seed import read_seed
from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options
from aten_overlay.metal.compiler import find_clang
from aten_overlay.metal.cuda.module import PtxModule
from aten_overlay.metal.cuda.target import CudaOptions
from porter.core.errors import PorterError
from porter.core.files import read_regular
from porter.verdict.backends import host_shaders
from porter.verdict.backends.beside import FAR, HOST, SCHEDULES, TORCH, Comparisons
from porter.verdict.backends.shaders import Shaders, implementation, launch

DEVICE = "cuda"
# What a failure says of itself, of torch's own code or of a library that it calls: nothing was refused.
_FAILED = (
    "CUDA error", "INTERNAL ASSERT FAILED", "report a bug to PyTorch", "CUBLAS_STATUS_", "CUDNN_STATUS_", "cuDNN error",
    "CUFFT_", "cuFFT error", "CUSOLVER_STATUS_", "cusolver error", "CUSPARSE_STATUS_", "NVRTC_ERROR", "nvrtc: error",
)  # fmt: skip


class NoResult(Exception):
    """Torch's CUDA computes nothing for a call: it has no kernel for it, or refuses its arguments."""


def compute(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> torch.Tensor:
    """The result on CUDA. Raises NoResult, PTR378 where the GPU is full, and what any other failure raises."""
    with refusing_full_memory():
        try:
            result = function(*map(_on_gpu, args), **{name: _on_gpu(value) for name, value in kwargs.items()})
        except NotImplementedError as error:
            raise NoResult(_first_line(error)) from error
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, TypeError, ValueError) as error:
            if not is_refusal(error):
                raise
            raise NoResult(_first_line(error)) from error
    if not isinstance(result, torch.Tensor):
        raise NoResult("its result is no tensor")
    return result


def is_refusal(error: Exception) -> bool:
    """Whether an error says that torch has no kernel for a call or does not take its arguments: not that one failed."""
    text = str(error)
    # Whether the device itself failed, as a faulting kernel makes it
    kind = getattr(torch, "AcceleratorError", None)
    return not (kind is not None and isinstance(error, kind)) and not any(each in text for each in _FAILED)


@contextmanager
def refusing_full_memory() -> Iterator[None]:
    """Raises PTR378 where the GPU's memory is full: nothing is known of the call then."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise PorterError(
            "PTR378", f"torch has no memory left on the GPU: {_first_line(error)}",
            hint="Use a GPU with more memory, or stop what else uses it: nothing is known of this call.",
        ) from error  # fmt: skip


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0][:200]


def _on_gpu(value: Any) -> Any:
    return value.to(DEVICE) if isinstance(value, torch.Tensor) and value.dtype != torch.float64 else value


# mypy: disable-error-code="no-untyped-call"


GROUP = 64
SCHEDULES_OF_A_CALL = 2
FAR_BYTES, MOST_ROWS = 1 << 32, 64
# Of each storage by its address: its bytes, and a copy of them elsewhere.
Storages: TypeAlias = dict[int, tuple[torch.Tensor, torch.Tensor]]


class CudaShaders:
    """What `torch.mps.compile_shader` returns, for CPU tensors: a call computes on copies, and copies back.

    The first argument is the result. What the same kernels compute on the `host` stands beside it in `comparisons`.
    What they compute on the GPU in threadgroups of other sizes and in other orders, drawn by a seed, has to be the
    same.
    """

    def __init__(
        self, library: CudaLibrary, scheduled: ScheduledLibrary, host: Any, comparisons: Comparisons, seed: int = 0
    ) -> None:
        self._library, self._scheduled, self._host, self._comparisons = library, scheduled, host, comparisons
        self._random = Random(seed)

    def __dir__(self) -> list[str]:
        return dir(self._library)

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("_") or name not in dir(self._library):
            raise AttributeError(name)
        kernel, scheduled = getattr(self._library, name), getattr(self._scheduled, name)

        def call(*args: Any, threads: Sequence[int], arg_casts: Mapping[int, str]) -> None:
            if args[0].is_cuda:
                kernel(*args, threads=threads, group_size=_group(GROUP, threads), arg_casts=arg_casts)
                return
            wanted = self._run_on_host(name, args, threads, arg_casts)
            again = [self._run_apart(scheduled, args, threads, size, arg_casts) for size in self._draw_groups(kernel)]
            storages: Storages = {}
            with refusing_full_memory():
                given = [_move(value, storages, DEVICE) for value in args]
            kernel(*given, threads=threads, group_size=_group(GROUP, threads), arg_casts=arg_casts)
            for here, there in storages.values():
                here.copy_(there)
            if wanted is not None:
                self._comparisons.add(HOST, name, args[0], wanted)
            for each in again:
                self._comparisons.require_same(SCHEDULES, name, args[0], each)

        return call

    def _draw_groups(self, kernel: CudaKernel) -> list[int]:
        """Sizes of threadgroups, ragged ones too: other threads then run together."""
        return [self._random.randint(1, kernel.max_threads_per_threadgroup) for _ in range(SCHEDULES_OF_A_CALL)]

    def _run_apart(
        self, kernel: ScheduledKernel, args: Sequence[Any], threads: Sequence[int], size: int, casts: Mapping[int, str]
    ) -> torch.Tensor:
        """The result of a run on copies of the arguments, in groups of a size and in an order of their own."""
        storages: Storages = {}
        with refusing_full_memory():
            given = [_move(value, storages, DEVICE) for value in args]
        kernel(*given, threads=threads, group_size=_group(size, threads), arg_casts=casts)
        result: torch.Tensor = given[0].cpu()
        return result

    def _run_on_host(
        self, name: str, args: Sequence[Any], threads: Sequence[int], casts: Mapping[int, str]
    ) -> torch.Tensor | None:
        """The result of the same kernel on the host, on copies of the arguments."""
        if self._host is None:
            self._comparisons.leave_out(HOST, args[0].dtype, "there is no compiler for the host's kernels here")
            return None
        storages: Storages = {}
        given = [_move(value, storages, "cpu") for value in args]
        getattr(self._host, name)(*given, threads=threads, arg_casts=casts)
        result: torch.Tensor = given[0]
        return result


def _group(size: int, threads: Sequence[int]) -> list[int]:
    return [min(size, threads[0]), *[1] * (len(threads) - 1)]


def _move(tensor: Any, storages: Storages, device: str) -> Any:
    """The same elements in a copy of a tensor's storage on a device; tensors of one storage share the copy."""
    if not isinstance(tensor, torch.Tensor):
        return tensor
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
            self._comparisons.add(TORCH, name, found, there.cpu())  # the CPU's results decide, in each test
        else:
            self._comparisons.leave_out(TORCH, found.dtype, f"its result is {there.dtype} {tuple(there.shape)}")
        return found


def _try_on_cuda(func: Any, args: Any, kwargs: Any) -> torch.Tensor | str:
    """What torch's CUDA kernel computes, or why it computes nothing."""
    try:
        return compute(func, args, kwargs)
    except NoResult as error:
        return str(error)


def load_functor(
    sources: Sequence[Path], functor: str, include: Sequence[Path], comparisons: Comparisons, per_thread: int = 1
) -> Shaders:
    """The kernels of a functor on the GPU, beside those on the host where a compiler is. Raises PTR173 without any."""
    library = load_library(compile_functor(sources, functor, include))
    seed = read_seed() or 0
    scheduled = load_scheduled(compile_functor(sources, functor, include, SCHEDULED), seed)
    host = _compile_for_host(sources, functor, include)
    return Shaders(CudaShaders(library, scheduled, host, comparisons, seed), {}, per_thread)


def _compile_for_host(sources: Sequence[Path], functor: str, include: Sequence[Path]) -> Any:
    try:
        find_clang()
    except OverlayError:
        return None
    return host_shaders.compile_functor(sources, functor, Options(include=tuple(include))).library


def compile_functor(
    sources: Sequence[Path], functor: str, include: Sequence[Path], cuda: CudaOptions = PLAIN
) -> PtxModule:
    """The kernels of a functor as PTX, from the store or compiled. Raises PTR173 when no file registers any."""
    options = Options(include=tuple(include))
    for source in sources:
        if functor.encode() in read_regular(source):
            module = compile_family(source, f"{functor}_", options, cuda)
            if module.entries:
                return module
    raise PorterError("PTR173", f"no kernel file registers a kernel for {functor}", hint="Add its REGISTER_* lines.")


def redirect(rows: Sequence[str], functor: str, found: Shaders, comparisons: Comparisons) -> Redirect:
    """The context in which these rows run on these kernels; the first call of each in a type runs far apart too."""
    done: set[tuple[str, torch.dtype]] = set()

    def launch_twice(
        functor: str, operands: Sequence[torch.Tensor], out: torch.Tensor, alpha: Any, shaders: Shaders
    ) -> None:
        far = None
        if (key := (functor, out.dtype)) not in done and can_spread(out):
            done.add(key)
            far = _launch_far(functor, operands, out, alpha, shaders, comparisons)
        launch(functor, operands, out, alpha, shaders)
        if far is not None:
            comparisons.require_agreement(FAR, functor, out, far)

    return Redirect({row: implementation(row, functor, found, launch_twice) for row in rows}, comparisons)


def _launch_far(
    functor: str, operands: Sequence[torch.Tensor], out: torch.Tensor, alpha: Any, shaders: Shaders,
    comparisons: Comparisons,
) -> torch.Tensor | None:  # fmt: skip
    """The result with rows spread over more than 2^32 bytes; None without the memory for that.

    Rows are launched one by one: a fork's host code splits what a kernel cannot index in 32 bits.
    """
    try:
        spread = [spread_out(each.expand(out.shape)) for each in operands]
        result = spread_out(out)
        for row in range(len(out)):
            launch(functor, [each[row] for each in spread], result[row], alpha, shaders)
        return result.cpu()
    except torch.OutOfMemoryError:
        comparisons.leave_out(FAR, out.dtype, "the GPU has no memory left for it")
        return None


def can_spread(tensor: torch.Tensor) -> bool:
    """Whether a tensor has some rows to lie far from each other."""
    return tensor.dim() > 0 and tensor.numel() > 0 and 1 < tensor.shape[0] <= MOST_ROWS


def spread_out(tensor: torch.Tensor, device: str = DEVICE) -> torch.Tensor:
    """The same elements with a first stride by which the last row lies past 2^32 bytes."""
    rows = tensor.shape[0]
    step = FAR_BYTES // tensor.element_size() // (rows - 1) + tensor[0].numel() + 1
    strides = (step, *torch.empty(tensor.shape[1:], device="meta").stride())
    far = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=device)
    return far.copy_(tensor)
