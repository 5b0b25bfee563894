"""Which thread wrote an element, and from which line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aten_overlay.metal.build import Options, compile_kernels
from aten_overlay.metal.launch import Library
from aten_overlay.metal.passes.lines import mark_lines
from aten_overlay.metal.tracing import Write, watching

SOURCE = """
#include <metal_stdlib>
using namespace metal;
#line 1 "mine"
inline void put(device float* to, float v) {
  *to = v;
}
kernel void write(device float* out [[buffer(0)]], device atomic_float* sums [[buffer(1)]],
    uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {
  simdgroup_barrier(mem_flags::mem_none);
  uint i = at.y * size.x + at.x;
  if (i % 2) put(out + i, 1);
  else
    out[i] = 2;
  atomic_fetch_add_explicit(&sums[at.x],
      1, memory_order_relaxed);
}
"""
GRID, GROUP = (5, 4), (2, 2)


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(compile_kernels(SOURCE, ["write"], Options(checked=True, traced=True)))


def trace(library: Library, buffer: int, index: int) -> Write | None:
    out, sums = np.zeros(21, np.float32), np.zeros(6, np.float32)
    with watching() as watcher:
        watcher.move((out, sums)[buffer].ctypes.data + 4 * index, 4)
        library.run("write", [out, sums], GRID, GROUP, threads=1)
        assert list(out[:20]) == [2 - i % 2 for i in range(20)]
        return watcher.last_write()


@pytest.mark.parametrize(("index", "line"), [(0, 10), (4, 10), (13, 2), (19, 2)])
def test_a_store_has_the_thread_and_the_line_that_made_it(library: Library, index: int, line: int) -> None:
    assert trace(library, 0, index) == Write((index % 5, index // 5, 0), "mine", line, 1)


def test_what_the_standard_library_stores_has_the_line_that_called_it(library: Library) -> None:
    write = trace(library, 1, 3)
    assert write is not None
    assert (write.thread[0], write.file, write.line, write.count) == (3, "mine", 11, 4)


def test_what_nobody_wrote_has_no_writer(library: Library) -> None:
    assert trace(library, 0, 20) is None


def test_nothing_is_watched_after_the_block(library: Library) -> None:
    out = np.zeros(21, np.float32)
    with watching() as watcher:
        watcher.move(out.ctypes.data, 4)
    library.run("write", [out, np.zeros(6, np.float32)], GRID, GROUP, threads=1)
    assert watcher.last_write() is None


def test_a_line_is_told_before_the_store_and_debug_information_goes() -> None:
    module = """\
define void @f(ptr %a) !dbg !3 {
  store i32 1, ptr %a, align 4, !dbg !5
  ret void, !dbg !5
}
!llvm.dbg.cu = !{!0}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1)
!1 = !DIFile(filename: "mine", directory: "/tmp")
!3 = distinct !DISubprogram(name: "f", scope: !1, file: !1, line: 7)
!5 = !DILocation(line: 8, column: 3, scope: !3)
"""
    marked = mark_lines(module)
    assert "call void @pm_trace_line(ptr @pm.trace.0, i32 8)\n  store i32 1, ptr %a, align 4\n  ret void\n" in marked
    assert "!dbg" not in marked and "llvm.dbg.cu" not in marked
    assert '@pm.trace.0 = private constant [5 x i8] c"\\6D\\69\\6E\\65\\00"' in marked


def test_an_ordinary_library_knows_nothing_of_lines(tmp_path: Path) -> None:
    plain = compile_kernels(SOURCE, ["write"], Options(checked=True))
    assert b"pm_trace_line" not in plain.read_bytes()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_seed_gives_one_order_of_threadgroups_and_lanes(library: Library, seed: int) -> None:
    assert last_writer(library, seed) == last_writer(library, seed)


def test_seeds_give_several_orders_of_threadgroups_and_lanes(library: Library) -> None:
    last = [last_writer(library, seed) for seed in range(12)]
    assert len({y // GROUP[1] for _, y, _ in last}) == 2
    assert len({y % GROUP[1] for _, y, _ in last}) == 2
    assert {x for x, _, _ in last} == {3}


def last_writer(library: Library, seed: int) -> tuple[int, int, int]:
    """The last thread of four, in two threadgroups, that adds to the sum of column 3."""
    out, sums = np.zeros(21, np.float32), np.zeros(6, np.float32)
    with watching() as watcher:
        watcher.move(sums.ctypes.data + 12, 4)
        library.run("write", [out, sums], GRID, GROUP, threads=1, shuffle=seed)
        write = watcher.last_write()
    assert write is not None and sums[3] == 4
    return write.thread
