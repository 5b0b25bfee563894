"""Host kernels against ATen's own CPU kernels, float32, one thread: prints the ratio of medians of one run's CPU time.

python benchmarks/kernels.py [--headers DIR] [--elements N]

Ends with 1 where a kernel misses its limit or is not there, with an error where its results are not ATen's.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from aten_overlay.metal.build import Options, compile_kernels, host_names
from aten_overlay.metal.launch import Library
from aten_overlay.toolchain import torch_root

SOURCE = Path(__file__).with_name("kernels.metal")
BINARY = frozenset(("add", "mul", "atan2", "pow"))
ELEMENTWISE = ("add", "mul", "exp", "atan2", "tanh", "erf")
LIMITS = {**dict.fromkeys(ELEMENTWISE, 1.0), "rms_norm": 4.0, "softmax": 4.0, "matmul": 10.0}
ROWS, COLUMNS, GROUP = 512, 4096, 256
SIDE = 512  # of the matrices


def compare(*runs: Callable[[], object], rounds: int = 9) -> list[float]:
    """The median seconds of CPU time of each, in turns, after a first round."""
    times: list[list[float]] = [[] for _ in runs]
    for counted in (False, *[True] * rounds):
        for run, found in zip(runs, times, strict=True):
            start = time.thread_time()
            run()
            if counted:
                found.append(time.thread_time() - start)
    return [statistics.median(found) for found in times]


def elementwise(library: Library, name: str, elements: int) -> list[float]:
    """Seconds of ATen and of the host kernel for `elements` values."""
    x, y = torch.rand(elements) * 4 - 2, torch.rand(elements) * 4 - 2
    out, expected = torch.full((elements,), float("nan")), torch.empty(elements)
    x = x.abs() if name in ("log", "sqrt", "pow") else x
    function = getattr(torch, name)
    given = [x, y] if name in BINARY else [x]
    times = compare(
        lambda: function(*given, out=expected),
        lambda: library.run(f"k_{name}", [*given, out], [elements], threads=1),
    )
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)
    return times


def rowwise(library: Library, name: str) -> list[float]:
    """Seconds of ATen and of the host kernel for 512 rows of 4096 values."""
    x, out, n, eps = (
        torch.randn(ROWS, COLUMNS),
        torch.full((ROWS, COLUMNS), float("nan")),
        np.array([COLUMNS], np.uint32),
        np.array([1e-5], np.float32),
    )
    references: dict[str, Callable[[], torch.Tensor]] = {
        "rms_norm": lambda: torch.nn.functional.rms_norm(x, (COLUMNS,), None, 1e-5),
        "softmax": lambda: torch.softmax(x, 1),
    }
    reference = references[name]
    times = compare(reference, lambda: library.run(name, [x, out, n, eps], [ROWS * GROUP], [GROUP], threads=1))
    torch.testing.assert_close(out, reference(), rtol=0, atol=1e-5)
    return times


def matrix(library: Library, name: str) -> list[float]:
    """Seconds of ATen and of the host kernel for the product of two square matrices."""
    a, b, out = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE), torch.full((SIDE, SIDE), float("nan"))
    side, tiles = np.array([SIDE], np.uint32), SIDE // 64
    times = compare(lambda: a @ b, lambda: library.run(name, [a, b, out, side], [tiles * 128, tiles], [128], threads=1))
    torch.testing.assert_close(out, a @ b, rtol=1e-4, atol=1e-3)
    return times


def measure(library: Library, name: str, elements: int) -> list[float]:
    """Seconds of ATen and of host kernel `name`."""
    if name.startswith("k_"):
        return elementwise(library, name[2:], elements)
    return matrix(library, name) if name == "matmul" else rowwise(library, name)


def main() -> int:
    """Prints one line per kernel, with the limit where there is one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--headers", type=Path, default=torch_root() / "include")
    parser.add_argument("--elements", type=int, default=10_000_000)
    given = parser.parse_args()
    torch.set_num_threads(1)
    options = Options(include=(given.headers,))
    library = Library(compile_kernels(SOURCE, host_names(SOURCE, options), options))
    missed = set(LIMITS) - {name.removeprefix("k_") for name in library.names}
    print(f"{'kernel':10} {'ATen ms':>8} {'host ms':>8} {'ratio':>6}  limit")
    for name in library.names:
        aten, host = measure(library, name, given.elements)
        name = name.removeprefix("k_")
        limit = LIMITS.get(name)
        if limit is not None and host > limit * aten:
            missed.add(name)
        verdict = "" if limit is None else f"{limit:g} {'MISSED' if name in missed else 'ok'}"
        print(f"{name:10} {aten * 1e3:8.2f} {host * 1e3:8.2f} {host / aten:6.2f}  {verdict}")
    print(f"limits missed: {', '.join(sorted(missed)) or 'none'}")
    return int(bool(missed))


if __name__ == "__main__":
    raise SystemExit(main())
