"""Metal kernels on an NVIDIA GPU against torch's CUDA: medians of CUDA events, and the fraction of a copy's speed.

python benchmarks/gpu.py [--only NAME...] [--out FOLDER] [--compile]

`--compile` only compiles the kernels to PTX, into the cache: a machine that has a GPU but no clang finds them in a copy
of it. Ends with an error where a result is not torch's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.nn.functional as F

from aten_overlay.cuda.compile import PLAIN, compile_kernels
from aten_overlay.cuda.library import compile_shader
from aten_overlay.metal.cuda.target import CudaOptions
from porter.kernels import MetalKernel
from porter.kernels.cuda import compiling_ahead

SOURCE = Path(__file__).with_name("gpu.metal")
FAST = CudaOptions(fast=True, lines=True)
OF_128 = replace(PLAIN, threads=128)  # more registers a thread than threadgroups of 1024 leave
WARM_UP, ROUNDS = 5, 21
ROWS, COLUMNS, GROUP = 16384, 4096, 256
Run = Callable[[], object]
R = TypeVar("R", bound=Run)


@torch.library.custom_op("gpu_benchmark::silu", mutates_args=())
def silu_operator(x: torch.Tensor) -> torch.Tensor:
    """An operator as torch makes one of a Python function, which launches one kernel."""
    return F.silu(x)


TWICE = MetalKernel("twice", ["x"], ["out"], "uint i = thread_position_in_grid.x; out[i] = 2 * x[i];")
TWICE_OF_256: Any = {"grid": (256, 1, 1), "output_shapes": [(256,)], "output_dtypes": [torch.float32]}


@dataclass(frozen=True)
class Row:
    """Milliseconds of a kernel and of what it is compared with, the bytes that it has to move, and its error."""

    name: str
    kernel: float
    other: float
    against: str
    moved: int = 0
    error: float = 0.0

    @property
    def ratio(self) -> float:
        """How many times as fast as the other the kernel is."""
        return self.other / self.kernel


class Bench:
    """The device's copy bandwidth, the kernels, and what was measured so far."""

    def __init__(self) -> None:
        self.kernels = compile_shader(SOURCE)
        self.fast = compile_shader(SOURCE, cuda=FAST)
        self.rows: list[Row] = []
        one, other = (torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(2))
        self.copy = 2 * one.numel() / measure(lambda: other.copy_(one))

    def add(
        self, name: str, kernel: Run, other: Run, against: str = "torch", moved: int = 0, error: float = 0.0
    ) -> None:
        """Times a kernel and another way."""
        row = Row(name, measure(kernel), measure(other), against, moved, error)
        self.rows.append(row)
        print(self.describe(row), flush=True)

    def describe(self, row: Row) -> str:
        fraction = f"{row.moved / row.kernel / self.copy:6.0%}" if row.moved else " " * 6
        return (
            f"{row.name:36}{row.kernel:9.4f}{row.other:9.4f}{row.ratio:8.2f}{fraction}  {row.error:8.1e}  {row.against}"
        )


def measure(run: Run) -> float:
    """The median milliseconds of a call, by events around each."""
    for _ in range(WARM_UP):
        run()
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(ROUNDS)]
    for start, end in events:
        start.record()
        run()
        end.record()
    torch.cuda.synchronize()
    times = [start.elapsed_time(end) for start, end in events]
    return float(statistics.median(times))


def choose(ways: Mapping[str, R]) -> R:
    """The fastest of several ways, whose times are printed."""
    times = {way: measure(run) for way, run in ways.items()}
    print("; ".join(f"{way}: {time:.4f}" for way, time in times.items()), flush=True)
    return ways[min(times, key=lambda way: times[way])]


def difference(found: torch.Tensor, expected: torch.Tensor, most: float) -> float:
    """The norm of the error over that of the expected values. Raises SystemExit if it is more than allowed."""
    error = float((found.double() - expected.double()).norm() / expected.double().norm())
    if not error <= most:  # which NaN is not
        raise SystemExit(f"the error is {error}, more than {most}")
    return error


def elementwise(bench: Bench) -> None:
    types = ((torch.float32, "float", 1e-6), (torch.float16, "half", 1e-3), (torch.bfloat16, "bfloat", 1e-2))
    for dtype, name, most in types:
        _silu(bench, dtype, name, most)
    for dtype, name, most in types[:2]:
        _multiply_add(bench, dtype, name, most)


def _silu(bench: Bench, dtype: torch.dtype, name: str, most: float) -> None:
    x = torch.randn(1 << 27, device="cuda").to(dtype)
    y = torch.full_like(x, float("nan"))
    for label, kernels in (("", bench.kernels), (" fast", bench.fast)):
        kernel = getattr(kernels, f"silu_{name}")
        kernel(x, y)
        error = difference(y, F.silu(x), most)
        bench.add(f"silu {name}{label}", partial(kernel, x, y), partial(F.silu, x), moved=2 * x.nbytes, error=error)


def _multiply_add(bench: Bench, dtype: torch.dtype, name: str, most: float) -> None:
    x, y = (torch.randn(1 << 27, device="cuda").to(dtype) for _ in range(2))
    z = torch.full_like(x, float("nan"))
    kernel = getattr(bench.kernels, f"multiply_add_{name}")
    kernel(x, y, z, 1.5)
    error = difference(z, torch.add(y, x, alpha=1.5), most)
    torchs = partial(torch.add, y, x, alpha=1.5, out=z)
    bench.add(f"multiply-add {name}", partial(kernel, x, y, z, 1.5), torchs, moved=3 * x.nbytes, error=error)


def row_wise(bench: Bench) -> None:
    x, y = torch.randn(ROWS, COLUMNS, device="cuda"), torch.empty(ROWS, COLUMNS, device="cuda")
    w, b = torch.randn(COLUMNS, device="cuda"), torch.randn(COLUMNS, device="cuda")
    grid: Any = {"threads": ROWS * GROUP, "group_size": GROUP}
    k = bench.kernels
    cases: Mapping[str, tuple[Run, Callable[[], torch.Tensor]]] = {
        "RMSNorm": (lambda: k.rms_norm_rows(x, w, y, 1e-5, **grid), lambda: F.rms_norm(x, (COLUMNS,), w, 1e-5)),
        "LayerNorm": (lambda: k.layer_norm_rows(x, w, b, y, 1e-5, **grid), lambda: F.layer_norm(x, (COLUMNS,), w, b)),
        "softmax": (lambda: k.softmax_rows(x, y, **grid), lambda: torch.softmax(x, 1)),
    }
    for name, (kernel, reference) in cases.items():
        y.fill_(float("nan"))
        kernel()
        error = difference(y, reference(), 1e-5)
        bench.add(f"{name} {ROWS}x{COLUMNS} float", kernel, reference, moved=2 * x.nbytes, error=error)


def atomics(bench: Bench) -> None:
    n = 1 << 28
    x = torch.randint(0, 256, (n,), dtype=torch.uint8, device="cuda")
    bins = torch.zeros(256, dtype=torch.int32, device="cuda")
    narrow = {2: "int32"}

    def count() -> None:
        bench.kernels.histogram(x, bins, n, threads=132 * 2048, group_size=1024, arg_casts=narrow)

    count()
    difference(bins, torch.bincount(x, minlength=256), 0)
    bench.add("histogram uint8 2^28", count, lambda: torch.bincount(x, minlength=256), moved=n)
    index = torch.randint(0, 1 << 16, (1 << 20,), device="cuda")
    rows = torch.randn(1 << 20, 64, device="cuda")
    out, expected = torch.zeros(1 << 16, 64, device="cuda"), torch.zeros(1 << 16, 64, device="cuda")
    bench.kernels.index_add(index, rows, out, threads=rows.numel(), group_size=256)
    error = difference(out, expected.index_add_(0, index, rows), 1e-5)
    bench.add("index_add float 2^20 rows of 64",
              lambda: bench.kernels.index_add(index, rows, out, threads=rows.numel(), group_size=256),
              lambda: expected.index_add_(0, index, rows), moved=rows.nbytes, error=error)  # fmt: skip
    at = torch.randint(0, 1 << 20, (1 << 26,), device="cuda")
    values = torch.randint(-(1 << 30), 1 << 30, (1 << 26,), dtype=torch.int32, device="cuda")
    most, wanted = (torch.full((1 << 20,), -(1 << 31), dtype=torch.int32, device="cuda") for _ in range(2))
    bench.kernels.scatter_max(at, values, most, threads=at.numel(), group_size=256)
    difference(most, wanted.scatter_reduce_(0, at, values, "amax"), 0)
    bench.add("scatter max int 2^26",
              lambda: bench.kernels.scatter_max(at, values, most, threads=at.numel(), group_size=256),
              lambda: wanted.scatter_reduce_(0, at, values, "amax"))  # fmt: skip


def matmul(bench: Bench) -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    n = 4096
    a, b = torch.randn(n, n, device="cuda"), torch.randn(n, n, device="cuda")
    c, d = torch.full((n, n), float("nan"), device="cuda"), torch.empty(n, n, device="cuda")

    kernel = compile_shader(SOURCE, ["matmul_float"], cuda=OF_128).matmul_float

    def run() -> None:
        kernel(a, b, c, [n, n, n], threads=[n // 64 * 128, n // 128], group_size=[128, 1],
                                   arg_casts={3: "int32"})  # fmt: skip

    run()
    rounding = n**0.5 * torch.finfo(torch.float32).eps  # of a sum of n products, one after the other
    error = difference(c, a.double() @ b.double(), rounding)
    bench.add(f"matmul float {n}, exact", run, lambda: torch.matmul(a, b, out=d), "cuBLAS float32", error=error)


def composed(x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
    """Bilinear samples in operators of torch, as the example that the fused kernel was written for has them."""
    height, width = x.shape[1:3]
    px, py = ((grid[..., 0] + 1) * width - 1) / 2, ((grid[..., 1] + 1) * height - 1) / 2
    across, down = px - torch.floor(px), py - torch.floor(py)
    left, top = torch.floor(px).int(), torch.floor(py).int()
    image = torch.arange(x.shape[0], device=x.device)[:, None, None]
    total = torch.zeros((), device=x.device)
    for dy in (0, 1):
        for dx in (0, 1):
            column, row = left + dx, top + dy
            inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
            pixel = x[image, row.clamp(0, height - 1), column.clamp(0, width - 1)] * inside[..., None]
            weight = (across if dx else 1 - across) * (down if dy else 1 - down)
            total = total + weight[..., None] * pixel
    return total


def grid_sample(bench: Bench) -> None:
    batch, side, channels, points = 8, 1024, 64, 256
    x = torch.randn(batch, side, side, channels, device="cuda")
    grid = torch.rand(batch, points, points, 2, device="cuda") * 2 - 1
    out = torch.full((batch, points, points, channels), float("nan"), device="cuda")
    samples = batch * points * points
    shape: Any = {"threads": [channels // 4, samples], "arg_casts": {3: "int32"}}
    numbers = [side, side, channels // 4, points * points]

    def run(group: int) -> None:
        bench.kernels.grid_sample(x, grid, out, numbers, group_size=[16, group], **shape)

    def by_bands(bands: int, chunk: int, group: int) -> None:
        kernel = getattr(bench.kernels, f"grid_sample_bands_{bands}_{chunk}")
        kernel(x, grid, out, numbers, threads=samples // chunk * bands * 32, group_size=group, arg_casts={3: "int32"})

    ways = {f"{group} samples": partial(run, group) for group in (4, 8)}
    ways |= {
        f"{bands} bands, {group} threads": partial(by_bands, bands, chunk, group)
        for bands, chunk in ((4, 16), (8, 32)) for group in (32, 64, 128)
    }  # fmt: skip
    forward = choose(ways)
    forward()
    error = difference(out, composed(x, grid), 1e-5)
    moved = 5 * out.nbytes
    bench.add("grid_sample forward", forward, lambda: composed(x, grid), "composed", moved, error)
    compiled = torch.compile(composed)
    bench.add("grid_sample forward", forward, lambda: compiled(x, grid), "torch.compile", moved, error)
    last = x.permute(0, 3, 1, 2)
    bench.add("grid_sample forward", forward, lambda: F.grid_sample(last, grid, align_corners=False), "F.grid_sample",
              moved, error)  # fmt: skip
    _backward(bench, x, grid, compiled)


def _backward(bench: Bench, x: torch.Tensor, grid: torch.Tensor, compiled: Callable[..., Any]) -> None:
    batch, side, _, channels = x.shape
    points, samples = grid.shape[1], grid.shape[0] * grid.shape[1] * grid.shape[2]
    cotangent = torch.randn(batch, points, points, channels, device="cuda")
    x_grad, grid_grad = torch.zeros_like(x), torch.zeros_like(grid)
    how: Any = {"threads": [32, samples], "group_size": [32, 8], "arg_casts": {5: "int32"}}

    def kernel() -> None:
        bench.kernels.grid_sample_backward(x, grid, cotangent, x_grad, grid_grad,
                                           [side, side, channels, points * points], **how)  # fmt: skip

    def with_zeros() -> torch.Tensor:
        x_grad.zero_()
        kernel()
        return grid_grad

    following = torch.empty(samples, dtype=torch.int32, device="cuda")
    narrow: Any = {"arg_casts": {3: "int32", 7: "int32"}}

    def by_strips(buffer: torch.Tensor, long: int, group: int) -> torch.Tensor:
        # one buffer: gradients that lie whole megabytes after the grid itself are 0.5% slower
        grid_sum, heads = buffer[: grid.numel()].view(torch.float32).view_as(grid), buffer[grid.numel() :]
        heads.zero_()
        make_list = getattr(bench.kernels, f"grid_sample_list_{long}")
        make_list(grid, heads, following, [side, side, points * points], grid_sum,
                  threads=samples, group_size=256, **narrow)  # fmt: skip
        strips = getattr(bench.kernels, f"grid_sample_backward_strips_{long}_{group}")
        strips(x, grid, cotangent, heads, following, x_grad, grid_sum, [side, side],
               threads=batch * side * side // long * 32, group_size=group, **narrow)  # fmt: skip
        return grid_sum

    lists = {long: batch * (side + 1) * (side // long + 1) for long in (8, 16)}
    buffers = {long: torch.empty(grid.numel() + n, dtype=torch.int32, device="cuda") for long, n in lists.items()}
    best = choose({
        f"strips of {long}, {group} threads": partial(by_strips, buffers[long], long, group)
        for long, group in ((8, 64), (8, 128), (16, 32), (16, 64), (16, 128))
    })  # fmt: skip

    leaves = x.detach().requires_grad_(), grid.detach().clone().requires_grad_()
    for name, function in (("composed", composed), ("torch.compile", compiled)):
        result = function(*leaves)
        pull = partial(torch.autograd.grad, result, leaves, cotangent, retain_graph=True)
        wanted = pull()
        errors = []
        for way in (with_zeros, best):
            x_grad.fill_(float("nan"))
            found = way()
            errors.append(max(difference(x_grad, wanted[0], 1e-4), difference(found, wanted[1], 1e-3)))
        error = max(errors)
        del wanted
        bench.add("grid_sample backward, by strips", best, pull, name, error=error)
        bench.add("grid_sample backward, with zeros", with_zeros, pull, name, error=error)
        bench.add("grid_sample backward, kernel alone", kernel, pull, name, error=error)
        del result, pull
        torch.cuda.empty_cache()


def overhead(bench: Bench) -> None:
    """Microseconds of a call without waiting: the kernel's, torch's, and that of the kernel as a torch operator."""
    x, y, z = (torch.zeros(256, device="cuda") for _ in range(3))
    k = bench.kernels
    runs: Mapping[str, Run] = {
        "a launch, silu": lambda: k.silu_float(x, y),
        "a launch, multiply-add": lambda: k.multiply_add_float(x, z, y, 1.5),
        "torch's silu": lambda: F.silu(x),
        "torch's add, out=": lambda: torch.add(x, x, alpha=1.5, out=y),
        "a MetalKernel": lambda: TWICE(inputs=[x], **TWICE_OF_256),
        "a custom operator of torch": lambda: silu_operator(x),
    }
    for name, run in runs.items():
        times = []
        for _ in range(5):
            run()
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(1000):
                run()
            times.append((time.perf_counter() - start) * 1e3)
            torch.cuda.synchronize()
        bench.rows.append(Row(f"{name} (us)", statistics.median(times), float("nan"), ""))
        print(f"{name:36}{bench.rows[-1].kernel:9.2f} us", flush=True)


SECTIONS: Mapping[str, Callable[[Bench], None]] = {
    "grid_sample": grid_sample,  # first: gigabytes that lie where others were freed are 0.6% slower
    "elementwise": elementwise, "row_wise": row_wise, "atomics": atomics, "matmul": matmul, "overhead": overhead,
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--compile", action="store_true")
    chosen = parser.parse_args()
    if chosen.compile:
        for options in (PLAIN, FAST):
            print(len(compile_kernels(SOURCE, cuda=options).entries), "kernels compiled")
        compile_kernels(SOURCE, ["matmul_float"], cuda=OF_128)
        with compiling_ahead():
            TWICE(inputs=[torch.zeros(256)], **TWICE_OF_256)
        return 0
    bench, failed = Bench(), []
    for name in chosen.only:
        try:
            SECTIONS[name](bench)
        except (RuntimeError, SystemExit) as error:
            failed.append(name)
            print(f"FAILED {name}: {error}", flush=True)
        torch.cuda.empty_cache()
    where = f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    print(f"\n{where}, copy {bench.copy / 1e6:.0f} GB/s, medians of {ROUNDS}")
    print(f"{'':36}{'kernel':>9}{'other':>9}{'ratio':>8}{'copy':>6}  {'error':>8}  against  (milliseconds)")
    print("\n".join(map(bench.describe, bench.rows)))
    if chosen.out:
        rows = [{**asdict(row), "ratio": row.ratio} for row in bench.rows]
        (chosen.out / "gpu.json").write_text(json.dumps({"copy": bench.copy, "rows": rows}, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
