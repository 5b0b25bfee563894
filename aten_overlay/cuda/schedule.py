"""Kernels in orders made of a seed: of threadgroups, and of the simdgroups of each by how long they wait.

They are compiled for it (`SCHEDULED`). A barrier that threads missed, which had returned, is an error: on this hardware
it waits for the others alone, and no tool of NVIDIA's sees it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from math import gcd, prod
from pathlib import Path
from random import Random
from typing import Any

from torch import Tensor

from aten_overlay.cuda.compile import SCHEDULED
from aten_overlay.cuda.driver import Driver, find_driver
from aten_overlay.cuda.grid import Grid, read_grid
from aten_overlay.cuda.kernel import CudaKernel
from aten_overlay.cuda.library import CudaLibrary, compile_shader, load_library
from aten_overlay.errors import OverlayError, Place
from aten_overlay.metal.cuda.module import PtxModule

_NAME, _FORMAT = "pm_schedule", "<16I96s"  # the variable of a module, and its fields (pm/cuda/schedule.h)


class ScheduledLibrary:
    """The kernels of a library that was compiled to be scheduled. Each call has an order of its own, made of `seed`."""

    def __init__(self, library: CudaLibrary, driver: Driver, seed: int) -> None:
        self._library, self._driver, self._random = library, driver, Random(seed)

    def __dir__(self) -> list[str]:
        return dir(self._library)

    def __getattr__(self, name: str) -> ScheduledKernel:
        if name.startswith("_"):
            raise AttributeError(name)
        return ScheduledKernel(name, getattr(self._library, name), self._driver, self._random)


class ScheduledKernel:
    """A kernel of such a library, called as a `CudaKernel` is; a call waits until it has run."""

    thread_execution_width = CudaKernel.thread_execution_width

    def __init__(self, name: str, kernel: CudaKernel, driver: Driver, random: Random) -> None:
        self._name, self._kernel, self._driver, self._random = name, kernel, driver, random
        self.max_threads_per_threadgroup = kernel.max_threads_per_threadgroup
        self.static_thread_group_memory_length = kernel.static_thread_group_memory_length

    def __call__(
        self,
        *args: Any,
        threads: int | Sequence[int] | None = None,
        group_size: int | Sequence[int] | None = None,
        arg_casts: str | Mapping[int, str] | None = None,
        threadgroup_bytes: Sequence[int] = (),
    ) -> None:
        """Runs the kernel. Raises PTR397 where threads missed a barrier, and what a CudaKernel raises."""
        if threads is None:
            threads = next((each.numel() for each in args if isinstance(each, Tensor)), 0)
        grid = read_grid(threads, group_size)
        if grid.is_empty:
            return
        modules, device = self._kernel.load(args)
        address = modules.find_variable(_NAME, device)
        self._driver.synchronize()
        self._driver.write(address, write_schedule(grid, self._random))
        self._kernel(
            *args, threads=threads, group_size=group_size, arg_casts=arg_casts, threadgroup_bytes=threadgroup_bytes
        )
        self._driver.synchronize()
        self._require_all(address)

    def _require_all(self, address: int) -> None:
        """Raises PTR397 for a barrier that threads missed."""
        *_, noted, line, reached, expected, file = struct.unpack(
            _FORMAT, self._driver.read(address, struct.calcsize(_FORMAT))
        )
        if not noted:
            return
        name = file.split(b"\0")[0].decode(errors="replace")
        what = f"kernel `{self._name}`: {reached} of {expected} threads of a threadgroup reach a barrier"
        hint = "The others have returned, or are elsewhere. Let all threads reach it: mask their work instead."
        raise OverlayError("PTR397", what, Place(name, line), hint)


def write_schedule(grid: Grid, random: Random) -> bytes:
    """The variable's bytes for a launch: its sizes, and an order of its threadgroups."""
    counts = tuple(-(-n // m) for n, m in zip(grid.threads, grid.group, strict=True))
    total = prod(counts)
    seed, multiplier, offset = random.getrandbits(32), 1, 0
    if total < 1 << 32:
        multiplier = next(m for m in iter(lambda: random.randrange(1, 1 << 31), None) if gcd(m, total) == 1)
        offset = random.randrange(min(total, 1 << 31))
    return struct.pack(_FORMAT, *grid.threads, *grid.group, *counts, seed, multiplier, offset, 0, 0, 0, 0, b"")


def load_scheduled(module: PtxModule, seed: int) -> ScheduledLibrary:
    """Kernels that were compiled to be scheduled, whose references take numbers alone. Raises PTR385."""
    return ScheduledLibrary(load_library(module), find_driver(), seed)


def compile_scheduled(source: str | Path, seed: int) -> ScheduledLibrary:
    """The kernels of a source, scheduled. Raises what `compile_shader` raises."""
    return ScheduledLibrary(compile_shader(source, cuda=SCHEDULED), find_driver(), seed)
