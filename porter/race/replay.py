"""Times the launches of a folder on an NVIDIA GPU: a program of its own that `porter bench` starts.

Each row has medians of CUDA events around graphs of calls. PTX comes from the folder's cache, where the machine that
recorded it has put it, or is compiled here.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from aten_overlay.cuda.compile import compile_kernels
from aten_overlay.cuda.library import CudaLibrary, compile_shader
from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options
from aten_overlay.metal.cuda.target import CudaOptions
from porter.core.errors import PorterError
from porter.core.files import read_regular
from porter.race.calls import (
    DTYPES,
    HEADERS,
    RESULT,
    TORCH,
    Call,
    Launch,
    Row,
    Timings,
    read_calls,
    write_timings,
)

COMPILE, TENSOR_CORES = "compile", "tensor-cores"
WARM_UP, CALLS, ROUNDS = 3, 8, 15


def list_kernels(calls: Sequence[Call]) -> dict[str, list[str]]:
    """The kernels that are launched, by file."""
    kernels: dict[str, list[str]] = {}
    for call in calls:
        for launch in (launch for launches in call.sides.values() for launch in launches):
            if launch.kernel not in kernels.setdefault(launch.file, []):
                kernels[launch.file].append(launch.kernel)
    return kernels


def compile_folder(folder: Path, cuda: CudaOptions) -> None:
    """Compiles what the calls of a folder launch to PTX, without a GPU."""
    for file, names in list_kernels(read_calls(folder)).items():
        compile_kernels(read_source(folder, file), names, Options(include=(folder / HEADERS,)), cuda)


def read_source(folder: Path, file: str) -> str:
    return read_regular(folder / file).decode()


class Race:
    """The libraries of a folder, and the speed of a copy in bytes a millisecond."""

    def __init__(self, folder: Path, calls: Sequence[Call], cuda: CudaOptions) -> None:
        options = Options(include=(folder / HEADERS,))
        self.libraries: dict[str, CudaLibrary] = {
            file: compile_shader(read_source(folder, file), names, options, cuda)
            for file, names in list_kernels(calls).items()
        }
        one, other = (torch.empty(1 << 29, dtype=torch.uint8, device="cuda") for _ in range(2))
        self.copy = 2 * one.numel() / measure(lambda: other.copy_(one))

    def run(self, call: Call) -> Row:
        """Times a call's sides and torch's own."""
        tensors = make_tensors(call)
        inputs = {name: value for name, value in tensors.items() if name != RESULT}
        expression = compile(call.torch, call.label, "eval")
        reference = partial(compute_unfused, partial(eval, expression, {"torch": torch, **inputs}))
        exact = reference()
        times, errors = {}, {}
        for side, launches in call.sides.items():
            tensors[RESULT].fill_(math.nan if tensors[RESULT].is_floating_point() else -1)
            prepared = [self._prepare(launch, tensors) for launch in launches]
            run = partial(run_all, prepared)
            run()
            errors[side] = difference(tensors[RESULT], exact)
            times[side] = measure(run)
        times[TORCH] = measure(reference)
        shares = {side: call.moves / time / self.copy for side, time in times.items()}
        return Row(call.operator, call.label, call.dtype, times, shares, errors)

    def _prepare(self, launch: Launch, tensors: Mapping[str, torch.Tensor]) -> Callable[[], None]:
        arguments: list[torch.Tensor | list[int] | int] = []
        casts = {}
        for i, argument in enumerate(launch.arguments):
            if isinstance(argument, str):
                arguments.append(tensors[argument])
                continue
            if "tensor" in argument:
                arguments.append(tensors[argument["tensor"]].flatten().view(torch.uint8)[argument["offset"] :])
                continue
            data = bytes.fromhex(argument["bytes"])
            parts = memoryview(data.ljust(-(-len(data) // 4) * 4, b"\0")).cast("i").tolist()
            arguments.append(parts if len(parts) > 1 else parts[0])
            casts[i] = "int32"
        kernel = getattr(self.libraries[launch.file], launch.kernel)
        grid: dict[str, Any] = {"threads": launch.threads, "group_size": launch.group}
        return partial(kernel, *arguments, **grid, arg_casts=casts, threadgroup_bytes=launch.memory)


def compute_unfused(call: Callable[[], torch.Tensor]) -> torch.Tensor:
    """What torch computes of a call, with attention as products and weights: the only one that gives the weights."""
    with sdpa_kernel(SDPBackend.MATH):
        return call()


def run_all(prepared: Sequence[Callable[[], None]]) -> None:
    for launch in prepared:
        launch()


def make_tensors(call: Call) -> dict[str, torch.Tensor]:
    """The tensors of a call, of random numbers."""
    torch.manual_seed(0)
    tensors = {}
    for name, shape in call.tensors.items():
        dtype = DTYPES[call.types.get(name, call.dtype)]
        random = torch.rand(tuple(shape), dtype=dtype if dtype.is_complex else torch.float32, device="cuda")
        tensors[name] = (random * call.ends[name]).to(dtype) if name in call.ends else random.to(dtype)
    return tensors


def difference(result: torch.Tensor, exact: torch.Tensor) -> float:
    """The norm of the error over that of the exact result."""
    exact = exact.reshape(result.shape)
    if result.is_complex():
        result, exact = torch.view_as_real(result), torch.view_as_real(exact)
    return float((result.float() - exact.float()).norm() / exact.float().norm().clamp_min(1e-30))


def measure(run: Callable[[], object]) -> float:
    """The median milliseconds of a call: of a CUDA graph of several, so that the host's time for a launch is not in it.

    A Mac's host binds arguments in microseconds; Python, which launches here, takes as long as a small kernel runs.
    """
    for _ in range(WARM_UP):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            run()
    graph.replay()
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(ROUNDS)]
    for start, end in events:
        start.record()
        graph.replay()
        end.record()
    torch.cuda.synchronize()
    return float(statistics.median(start.elapsed_time(end) for start, end in events)) / CALLS


def time_folder(folder: Path, cuda: CudaOptions) -> Timings:
    """Times each call's sides and torch's own. Raises PTR385 without a GPU, and what compiling raises."""
    torch.backends.cudnn.allow_tf32 = False  # as kernels multiply
    calls = read_calls(folder)
    race, rows, failures = Race(folder, calls, cuda), [], dict[str, str]()
    for call in calls:
        try:
            rows.append(race.run(call))
        except RuntimeError as error:
            failures[f"{call.operator} {call.label} {call.dtype}"] = str(error)
    return Timings(f"{torch.cuda.get_device_name()}, torch {torch.__version__}", race.copy, tuple(rows), failures)


def main() -> int:
    """Compiles the folder of `FOLDER compile [tensor-cores]`, or times `FOLDER OUT [tensor-cores]` into a file."""
    folder, task, *words = sys.argv[1:]
    cuda = CudaOptions(tensor_cores=TENSOR_CORES in words)
    try:
        if task == COMPILE:
            compile_folder(Path(folder), cuda)
        else:
            write_timings(time_folder(Path(folder), cuda), Path(task))
    except (PorterError, OverlayError) as error:
        print(f"porter: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
