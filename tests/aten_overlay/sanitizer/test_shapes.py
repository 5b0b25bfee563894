"""Faults in the shapes that public kernels have: each is found with its line, argument and thread, its repair is not."""

from __future__ import annotations

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
from tests.aten_overlay.sanitizer.test_findings import Slice

SOURCE = Path(__file__).parent / "shapes.metal"
SIDE, THREADS, TILE = 32, 64, 16
READ_TO_ITS_END = (
    "helper_reads", "recursive_template", "either_argument", "whole_structure", "before_the_tensor", "by_constant",
)  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """`names` are words of the message, `thread` and `group` where it is first found when lanes run in order."""

    kernel: str
    code: str
    names: str
    thread: tuple[int, int, int]
    group: tuple[int, int, int] = (0, 0, 0)
    square: bool = False


FAULTS = (
    Fault("member_written", "PTR264", "writes 4 bytes out of bounds of argument `out` (buffer 0): byte 260", (32, 0, 0)),
    Fault("helper_reads", "PTR264", "reads 4 bytes out of bounds of argument `in` (buffer 1): byte 256", (61, 0, 0)),
    Fault("recursive_template", "PTR264", "argument `in` (buffer 1): byte 260", (21, 0, 0)),
    Fault("either_argument", "PTR264", "argument `in` (buffer 1): byte 272", (17, 0, 0)),
    Fault("whole_structure", "PTR264", "reads 32 bytes out of bounds of argument `in` (buffer 1): byte 256", (8, 0, 0)),
    Fault("atomic_bin", "PTR264", "changes 4 bytes out of bounds of argument `out` (buffer 0)", (0, 0, 0)),
    Fault("cast_in_helper", "PTR265", "argument `in` (buffer 1) at byte 2, an address that is no multiple of 8", (0, 0, 0)),
    Fault("method_writes", "PTR266", "writes argument `in` (buffer 1) at byte 0", (0, 0, 0)),
    Fault("private_structures", "PTR267", "uses a private variable before it has a value", (0, 0, 0)),
    Fault("scratch_unset", "PTR262", "reads argument `out` (buffer 0) at byte 0", (0, 0, 0)),
    Fault("shared_structures", "PTR261", "writes threadgroup variable `all` at byte 260, which", (32, 0, 0)),
    Fault("shared_count", "PTR261", "changes threadgroup variable `all` at byte 0, which", (4, 0, 0)),
    Fault("count_unset", "PTR262", "reads threadgroup variable `all` at byte 0", (0, 0, 0)),
    Fault("lock_kept", "PTR268", "threadgroup variable `all` at byte 0", (5, 0, 0)),
    Fault("double_buffer", "PTR261", "writes threadgroup variable `all` at byte 4, which", (1, 0, 0)),
    Fault("transposed", "PTR261", "which thread (0, 2, 0) of threadgroup (0, 0, 0) wrote", (2, 0, 0), square=True),
    Fault("tile_halo", "PTR264", "reads 4 bytes out of bounds of variable `all` (1024 bytes)", (0, 15, 0), square=True),
    Fault("before_the_tensor", "PTR264", "argument `in` (buffer 1): byte -132", (0, 0, 0), square=True),
    Fault("one_column", "PTR261", "argument `out` (buffer 0) at byte 0, which thread (0, 0, 0)", (0, 1, 0), square=True),
    Fault("total_of_groups", "PTR261", "argument `out` (buffer 0) at byte 4", (0, 0, 0), (1, 0, 0), square=True),
    Fault("helper_waits", "PTR274", "thread (32, 0, 0) of threadgroup (0, 0, 0) does not reach", (0, 0, 0)),
    Fault("template_shuffles", "PTR273", "reads from lane 0 of a simdgroup, which is inactive", (1, 0, 0)),
    Fault("one_more_dimension", "PTR264", "argument `n` (buffer 1): byte 20, where bytes 0 to 20 are", (0, 0, 0)),
    Fault("matrix_of_tile", "PTR264", "reads 4 bytes out of bounds of variable `tile` (256 bytes)", (22, 0, 0)),
)  # fmt: skip


@cache
def library(*constants: tuple[int, int]) -> Library:
    names = [name for name in host_names(SOURCE) if bool(constants) == (name == "by_constant")]
    return Library(compile_kernels(SOURCE, names, Options(sanitize=NAMES, constants=constants)))


def run(kernel: str, fault: str, square: bool, seed: int | None = None, loaded: Library | None = None) -> None:
    count, n = (SIDE * SIDE, SIDE) if square else (4 * THREADS, THREADS)
    values = np.random.default_rng(3).normal(size=2 * count).astype(np.float32)
    out: Any = np.zeros(2 * count, np.float32)
    if fault == "scratch_unset":
        out.view(np.uint8)[:] = 0xCB
    if fault in ("member_written", "atomic_bin"):
        out = Slice(out, 0, 4 * n)
    tensor = Slice(values, 4 * count if square else 0, 4 * (count if square else n))
    buffers = [out, tensor if fault in READ_TO_ITS_END else values, np.array([n], np.uint32)]
    if fault == "one_more_dimension":
        buffers = [out, np.array([4, 2, 3, 4, 5], np.uint32)]
    grid, group = ((SIDE, SIDE), (TILE, TILE)) if square else ((THREADS,), (THREADS,))
    if fault == "matrix_of_tile":
        grid, group = (32,), (32,)
    (loaded or library()).run(kernel, buffers, grid, group, shuffle=seed)


def line_of(fault: str) -> int:
    lines = SOURCE.read_text().split("\n")
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"// {fault}"))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.kernel)
def test_it_is_found_with_line_argument_and_thread(fault: Fault) -> None:
    with pytest.raises(OverlayError) as found:
        run(fault.kernel, fault.kernel, fault.square)
    assert found.value.code == fault.code, found.value.what
    assert fault.names in found.value.what
    where = f"shapes.metal:{line_of(fault.kernel)}, in thread {fault.thread} of threadgroup {fault.group} (seed"
    assert where in found.value.what, found.value.what


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.kernel)
def test_it_is_found_in_every_order(fault: Fault, seed: int) -> None:
    with pytest.raises(OverlayError, match=rf"kernel `{fault.kernel}` .*shapes\.metal:\d+, in thread \("):
        run(fault.kernel, fault.kernel, fault.square, seed)


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.kernel)
def test_the_repair_is_silent(fault: Fault, seed: int | None) -> None:
    run(f"{fault.kernel}_repaired", fault.kernel, fault.square, seed)


def test_what_a_function_constant_decides() -> None:
    with pytest.raises(OverlayError, match=r"argument `in` \(buffer 1\): byte 256, .* in thread \(60, 0, 0\)") as found:
        run("by_constant", "by_constant", False, loaded=library((0, 4), (1, False)))
    assert f"shapes.metal:{line_of('by_constant')}, in thread" in found.value.what
    run("by_constant", "by_constant", False, loaded=library((0, 4), (1, True)))
