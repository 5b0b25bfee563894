"""Faults that have to be found, each at its line, and their repairs, which have to pass."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options, compile_kernels, host_names
from aten_overlay.metal.launch import Library
from aten_overlay.metal.sanitizer.checks import NAMES

HERE = Path(__file__).parent
GRID, GROUP = 256, 128
RACES = (
    "no_barrier", "tile_reused", "other_memory", "no_memory", "lockstep", "device_memory", "other_group", "lost_update",
    "half_atomic", "many_writers", "bytes", "plain_start",
)  # fmt: skip


@dataclass(frozen=True)
class Slice:
    """A tensor that is a part of an array: `extent` bytes from byte `start` on."""

    array: np.ndarray
    start: int
    extent: int

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data) + self.start

    def untyped_storage(self) -> Slice:
        return Slice(self.array, 0, 0)

    def nbytes(self) -> int:
        return int(self.array.nbytes)


@cache
def library(file: str) -> Library:
    """All kernels of a file, watched for everything."""
    source = HERE / file
    return Library(compile_kernels(source, host_names(source), Options(sanitize=NAMES)))


def values(count: int = 2 * GRID) -> np.ndarray:
    return np.random.default_rng(3).normal(size=count).astype(np.float32)


def run(file: str, name: str, buffers: list[Any], grid: int = GRID, seed: int | None = None) -> None:
    shared = [4 * GROUP] if library(file).threadgroup_arguments(name) else []
    library(file).run(name, buffers, [grid], [min(grid, GROUP)], threadgroup_bytes=shared, shuffle=seed)


def line_of(file: str, name: str) -> int:
    lines = (HERE / file).read_text().split("\n")
    return next(n for n, line in enumerate(lines, 1) if line.rstrip("\\ ").endswith(f"// {name}"))


def finding(file: str, name: str, buffers: list[Any], **how: Any) -> OverlayError:
    """The error of a kernel with a fault; it names the kernel, its line and the thread, and the repair has none."""
    with pytest.raises(OverlayError) as caught:
        run(file, name, buffers, **how)
    assert f"kernel `{name}`" in caught.value.what
    assert f"{file}:{line_of(file, name)}" in caught.value.what, caught.value.what
    assert re.search(r"thread \(\d+, 0, 0\) of threadgroup \(\d+, 0, 0\)", caught.value.what)
    run(file, f"{name}_repaired", buffers, **how)
    return caught.value


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
@pytest.mark.parametrize("name", RACES)
def test_a_race_is_found_whatever_the_order(name: str, seed: int | None) -> None:
    found = finding(
        "races.metal", name, [np.zeros(2 * GRID, np.uint32), values(), np.zeros(GRID, np.uint32)], seed=seed
    )
    assert found.code == "PTR261"
    assert len(re.findall(r"races.metal:\d+", found.what)) == 2, "both accesses have a line"
    assert seed is None or f"(seed {seed})" in found.what


def memory(name: str, out: np.ndarray | Slice, *more: Any, grid: int = GRID) -> OverlayError:
    return finding("memory.metal", name, [out, *(more or [values()])], grid=grid)


def test_the_next_allocation_is_out_of_bounds_though_the_buffer_holds_it() -> None:
    found = memory("next_allocation", np.zeros(GRID, np.float32), Slice(values(), 0, 800), np.array([200], np.uint32))
    assert found.code == "PTR264"
    assert (
        "`in` (buffer 1): byte 800, where bytes 0 to 800 are the tensor; it hits memory of something else" in found.what
    )


def test_an_index_that_nobody_checked() -> None:
    index = np.array([0, 3, 9, 1], np.int32)
    found = memory("unchecked_index", np.zeros(8, np.float32), values(), np.array([8], np.uint32), index)
    assert found.code == "PTR264"
    assert "writes 4 bytes out of bounds of argument `out` (buffer 0): byte 36" in found.what


def test_an_argument_s_bytes_are_not_another_s() -> None:
    both = values()
    parts = (Slice(both, 0, 64), Slice(both, 64, 800))
    found = memory("unchecked_index", parts[0], parts[1], np.array([16], np.uint32), np.array([0, 3, 99, 1], np.int32))
    assert found.code == "PTR264" and "`out` (buffer 0): byte 396" in found.what


def test_a_vector_at_an_odd_place() -> None:
    found = memory("vectors", Slice(values(), 4, 64), values(), np.array([16], np.uint32))
    assert found.code == "PTR265"
    assert "`out` (buffer 0) at byte 0, an address that is no multiple of 16" in found.what


def test_three_numbers_in_twelve_bytes() -> None:
    buffers = [np.zeros(4, np.uint32), np.array([1, 2, 3], np.uint32)]
    with pytest.raises(OverlayError, match="kernel `three`: argument `shape` takes 16 bytes; 12 are bound") as caught:
        run("memory.metal", "three", buffers, grid=1)
    assert caught.value.code == "PTR106"
    run("memory.metal", "three_repaired", buffers, grid=1)


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("input_written", "PTR266", "writes argument `in` (buffer 1) at byte 0, which is bound for reading"),
        ("table", "PTR264", "reads 4 bytes out of bounds of variable `weights` (16 bytes)"),
        ("own_array", "PTR264", "writes 4 bytes out of bounds of variable `last` (16 bytes)"),
        ("halo", "PTR264", "out of bounds of variable `tile` (512 bytes)"),
        (
            "no_start",
            "PTR262",
            "reads threadgroup variable `sums` at byte 16, which no thread of its threadgroup had written: is a barrier missing?",
        ),
    ],
)
def test_memory_that_a_kernel_may_not_touch(name: str, code: str, message: str) -> None:
    found = memory(name, np.zeros(GRID, np.float32))
    assert found.code == code and message in found.what


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_a_start_that_an_atomic_access_may_come_before(seed: int | None) -> None:
    found = finding("memory.metal", "atomic_start", [np.zeros(GRID, np.float32), values()], seed=seed)
    assert found.code == "PTR262" and "`count` at byte 0" in found.what


def test_memory_as_it_was_allocated_is_not_to_be_read() -> None:
    fresh = np.full(4 * GRID, 0xCB, np.uint8)
    found = memory("no_zero", fresh)
    assert (
        found.code == "PTR262"
        and "`out` (buffer 0) at byte 0, which nothing wrote since it was allocated" in found.what
    )


@pytest.mark.parametrize("kernel", ["endless", "exchanging"])
def test_a_loop_that_never_ends_on_nan(kernel: str) -> None:
    found = memory(kernel, np.full(1, np.nan, np.float32), grid=32)
    assert found.code == "PTR268"
    assert "`out` (buffer 0) at byte 0" in found.what


def test_a_loop_that_reads_one_place_for_ever() -> None:
    found = memory("waiting", np.zeros(40, np.float32), grid=32)
    assert found.code == "PTR268"
    assert "`out` (buffer 0) at byte 0" in found.what


def test_a_pointer_that_may_come_of_several_places_stays_in_its_tensor() -> None:
    out, count = np.zeros(GRID, np.float32), np.array([3], np.uint32)
    found = memory("picked_pointer", out, Slice(values(), 64, 4 * 48), count, grid=64)
    assert found.code == "PTR264" and "reads 4 bytes out of bounds of every argument" in found.what


PRIVATE = (
    "sums", "some_ways", "branch", "one_component", "member", "passed_on", "array", "copied", "kept_apart",
    "left_unwritten", "read_at", "written_at", "updated_at", "own_at",
)  # fmt: skip


@pytest.mark.parametrize("name", PRIVATE)
def test_a_private_variable_without_a_value(name: str) -> None:
    found = finding("private.metal", name, [np.zeros(GRID, np.float32), values()])
    assert found.code == "PTR267"


@pytest.mark.parametrize("name", ["guarded", "pieces"])
def test_a_private_variable_that_has_a_value_wherever_it_is_used(name: str) -> None:
    run("private.metal", name, [np.zeros(2 * GRID, np.float32), values()])


def test_only_what_is_asked_for_is_watched() -> None:
    source = HERE / "races.metal"
    alone = Library(compile_kernels(source, ["other_memory"], Options(sanitize=("bounds",))))
    alone.run("other_memory", [np.zeros(GRID, np.float32), values()], [GRID], [GROUP], threadgroup_bytes=[4 * GROUP])


def test_two_launches_are_ordered() -> None:
    out, x, scratch = np.zeros(GRID, np.float32), values(), np.zeros(GRID, np.float32)
    run("races.metal", "other_group_repaired", [out, x, scratch])
    run("races.metal", "other_group_repaired", [scratch, x, out])


@pytest.mark.parametrize("options", [Options(sanitize=NAMES), Options(checked=True)], ids=["watched", "checked"])
def test_a_launch_may_reach_any_number_of_buffers(options: Options) -> None:
    parts = [np.full(4, k, np.float32) for k in range(1000)]
    table = np.array([part.ctypes.data for part in parts], np.uint64)
    kernel = Library(compile_kernels(HERE / "memory.metal", ["through_table"], options))

    def read(reach: int) -> np.ndarray:
        out = np.zeros(1000, np.float32)
        kernel.run("through_table", [out, table, np.array([reach], np.uint32)], [1000], [100], resident=parts)
        return out

    np.testing.assert_array_equal(read(3), np.arange(1000))
    with pytest.raises(OverlayError, match="out of bounds"):
        read(1 << 28)
