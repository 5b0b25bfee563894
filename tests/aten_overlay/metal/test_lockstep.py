"""A threadgroup that goes through a kernel as one gets what its lanes get one by one, in any order."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import QUICK, Options, compile_kernels, host_names
from aten_overlay.metal.launch import Library
from aten_overlay.metal.passes.ir import NotUnderstood, read_function, result_type
from aten_overlay.metal.passes.regions import form_regions

SOURCE = Path(__file__).with_name("lockstep.metal")
OTHERS = ("in_two_dimensions", "doubles_and_halves", "indirect")
PLAIN = tuple(n for n in host_names(SOURCE) if n not in OTHERS)
CONSTANTS = Options(constants=((2, 7),))
X = np.random.default_rng(5).integers(0, 40, 4096).astype(np.int32)


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(compile_kernels(SOURCE, host_names(SOURCE), CONSTANTS))


def _run(library: Library, name: str, threads: int, group: int, shuffle: int | None, fibers: bool) -> list[int]:
    out = np.zeros(4096, np.int32)
    library.run(name, [X, out, np.array([threads], np.uint32)], [threads], [group], shuffle=shuffle, fibers=fibers)
    return [int(v) for v in out]


@pytest.mark.parametrize(("threads", "group"), [(256, 256), (500, 128), (77, 77), (96, 1024), (5, 1)])
@pytest.mark.parametrize("name", PLAIN)
def test_lockstep_matches_one_lane_at_a_time(library: Library, name: str, threads: int, group: int) -> None:
    assert library.runs_in_lockstep(name)
    together = _run(library, name, threads, group, None, False)
    assert any(together)
    assert together == _run(library, name, threads, group, None, True)
    assert name == "strided" or together == _run(library, name, threads, group, 3, False)


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_compiled_quickly_gets_the_same_one_lane_at_a_time(library: Library, name: str) -> None:
    quick = Library(compile_kernels(SOURCE, host_names(SOURCE), replace(CONSTANTS, optimization=QUICK)))
    assert not quick.runs_in_lockstep(name)
    assert _run(quick, name, 500, 128, None, False) == _run(library, name, 500, 128, None, True)


def _loops(v: int) -> int:
    total = 0
    for k in range(v):
        if k % 7 == 3:
            continue
        j = k
        while j > 0 and j != 5:
            total += j if j & 1 else -k
            j //= 2
        if total > 60:
            break
    return total


def test_loops_give_expected_results(library: Library) -> None:
    expected = [_loops(int(v)) for v in X[:256]]
    assert _run(library, "loops", 256, 256, None, False)[:256] == expected[::-1]


def _left_out(x: list[int]) -> list[int]:
    totals, inside = [0] * len(x), set(range(len(x)))
    for k in range(6):
        taking = [i for i in inside if (x[i] + k) % 3 and not x[i] >> k & 1]
        leaving = {i for i in inside if (x[i] + k) % 3 and x[i] >> k & 1 and totals[i] > 400}
        for i in taking:
            totals[i] += sum(x[j] + k for j in taking)
        inside -= leaving
    return totals


def test_lanes_meet_at_the_end_of_each_round(library: Library) -> None:
    expected = [v for s in range(0, 256, 32) for v in _left_out(X[s : s + 32].tolist())]
    for shuffle, fibers in ((None, False), (None, True), (1, False), (2, False)):
        assert _run(library, "left_out", 256, 128, shuffle, fibers)[:256] == expected


def test_a_bitonic_sort_gives_expected_results(library: Library) -> None:
    assert _run(library, "sorted", 300, 300, None, False)[:300] == sorted(X[:300].tolist())


def test_strided_loops_give_expected_results(library: Library) -> None:
    out = np.array(_run(library, "strided", 1000, 1024, None, False)[:1000])
    lanes = [X[i] + (X[3 * i] if 3 * i < 1000 else 0) for i in range(1000)]
    sums = [sum(lanes[s : s + 32]) for s in range(0, 1000, 32)]
    assert (out - X[:1000]).tolist() == [sums[i // 32] for i in range(1000)]


def test_atomics_of_a_threadgroup_and_of_all(library: Library) -> None:
    counts = np.stack([np.bincount(X[g : g + 128], minlength=40) for g in range(0, 512, 128)])
    for fibers in (False, True):
        out = _run(library, "histogram", 512, 128, None, fibers)
        assert out[:40] == counts.sum(0).tolist()
        assert out[40:80] == counts.max(0).tolist()


@pytest.mark.parametrize("order", [{}, {"fibers": True}, {"shuffle": 5}, {"checked": True}])
def test_arrays_of_buffers_and_memory_of_the_launch(library: Library, order: dict[str, Any]) -> None:
    inputs = [np.ascontiguousarray(X[k::3][:96]) for k in range(3)]
    table, out = np.array([x.ctypes.data for x in inputs], np.uint64), np.zeros(96, np.int32)
    if order.pop("checked", False):
        library = Library(compile_kernels(SOURCE, ["indirect"], replace(CONSTANTS, checked=True)))
    library.run("indirect", [table, out], [96], [32], threadgroup_bytes=[128, 0, 0, 64], resident=inputs, **order)
    a, b, c = (x.reshape(3, 32)[:, ::-1] for x in inputs)
    assert out.reshape(3, 32).tolist() == (a + 7 * c + b).tolist()
    with pytest.raises(OverlayError, match="argument `narrow` has no threadgroup memory") as error:
        library.run("indirect", [table, out], [96], [32], threadgroup_bytes=[128])
    assert error.value.code == "PTR106"


@pytest.mark.parametrize("group", [(16, 16), (16, 4), (4, 16)])
def test_groups_of_two_dimensions(library: Library, group: tuple[int, int]) -> None:
    width, height = group
    out = np.zeros((32, 32), np.int32)
    library.run("in_two_dimensions", [X, out], [32, 32], group)
    tiles = X[:1024].reshape(32 // height, height, 32 // width, width).swapaxes(1, 2)
    turned = tiles.reshape(*tiles.shape[:2], -1)
    at = np.arange(width * height).reshape(height, width)
    index = (at % width) * height + at // width
    assert out.tolist() == turned[..., index].swapaxes(1, 2).reshape(32, 32).tolist()


def test_other_types(library: Library) -> None:
    x = np.random.default_rng(6).uniform(-2, 2, 64).astype(np.float32)
    results = []
    for fibers in (False, True):
        out = np.zeros(64, np.float32)
        library.run("doubles_and_halves", [x, out], [64], [64], fibers=fibers)
        results.append(out)
    assert np.abs(results[0] - results[1]).max() < 1e-6
    h = x.astype(np.float16).reshape(2, 32)
    terms = x.reshape(2, 32) * h.sum(1, keepdims=True) + h * h.max(1, keepdims=True) + np.arange(32) / 2
    assert np.abs(results[0].reshape(2, 32) - terms - x.reshape(2, 32)[:, 3:4]).max() < 0.1


def test_declared_threadgroup_memory_is_counted(library: Library) -> None:
    assert library.threadgroup_bytes("sorted") == 4096
    assert library.threadgroup_bytes("in_two_dimensions") == 16 * 17 * 4
    assert library.threadgroup_bytes("cases") == 0
    source = """#include <metal_stdlib>
template <typename T, int N> kernel void f(device T* x) {
  threadgroup T a[N];
  threadgroup metal::vec<T, 4> b[2];
  a[int(x[1])] = x[2];
  b[int(x[3])] = metal::vec<T, 4>(x[4]);
  x[0] = a[int(x[5])] + b[int(x[6])].y;
}
template [[host_name("f_half")]] kernel void f<half, 3>(device half*);
template [[host_name("f_int")]] kernel void f<int, 5>(device int*);
"""
    for checked in (False, True):
        counted = Library(compile_kernels(source, ["f_half", "f_int"], Options(checked=checked)))
        assert [counted.threadgroup_bytes(n) for n in ("f_half", "f_int")] == [3 * 2 + 2 * 8, 5 * 4 + 2 * 16]


def test_checked_kernels_run_one_lane_at_a_time() -> None:
    assert not Library(compile_kernels(SOURCE, ["sorted"], Options(checked=True))).runs_in_lockstep("sorted")


FUNCTION = """define void @f(ptr %p, i32 %n) {
entry:
  br label %head

head:                                             ; preds = %tail, %again, %entry
  %k = phi i32 [ 0, %entry ], [ %next, %again ], [ 7, %tail ]
  switch i32 %k, label %tail [
    i32 1, label %again
    i32 2, label %out
  ]

again:                                            ; preds = %head
  %next = add nsw i32 %k, 1
  br label %head

tail:                                             ; preds = %head
  tail call void @pm_threadgroup_barrier() #1
  %c = icmp slt i32 %k, %n
  br i1 %c, label %head, label %out

out:                                              ; preds = %tail, %head
  ret void
}
"""


def test_parallel_regions_are_ordered_by_synchronization_point() -> None:
    found = form_regions(read_function(FUNCTION))
    assert sum(u.waits for u in found) == 1
    back = [(n, e.target) for n, u in enumerate(found) for e in u.edges if e.target <= n]
    assert len(back) == 1
    latch, head = back[0]
    ends = [n for n, u in enumerate(found) if not u.edges]
    assert head == 1 and ends == [len(found) - 1] and latch == len(found) - 2


def test_a_loop_with_two_entries_is_not_understood() -> None:
    text = re.sub(r"br label %head\n\nhead", "br i1 %c, label %head, label %again\n\nhead", FUNCTION, count=1)
    with pytest.raises(NotUnderstood):
        form_regions(read_function(text))


TYPES = {
    "%a = add nuw nsw i32 %b, 1": "i32",
    "%a = fcmp fast olt <4 x float> %b, %c": "<4 x i1>",
    "%a = icmp ugt ptr %b, null": "i1",
    "%a = load <2 x half>, ptr %p, align 4": "<2 x half>",
    "%a = tail call nnan noundef float @llvm.fabs.f32(float %b)": "float",
    "%a = call noundef range(i32 0, 33) i32 @llvm.ctpop.i32(i32 %b)": "i32",
    "%a = zext nneg i32 %b to i64": "i64",
    '%a = select i1 %c, %"class.vec" %d, %"class.vec" %e': '%"class.vec"',
    "%a = getelementptr inbounds [3 x i32], ptr %p, i64 0, i64 %n": "ptr",
    "%a = extractelement <4 x float> %v, i64 0": "float",
    "%a = shufflevector <4 x float> %v, <4 x float> poison, <2 x i32> <i32 0, i32 1>": "<2 x float>",
    "%a = atomicrmw add ptr %p, i32 %v monotonic, align 4": "i32",
    "%a = cmpxchg weak ptr %p, i64 %b, i64 %c monotonic monotonic, align 8": "{ i64, i1 }",
    "%a = extractvalue { i64, i1 } %b, 1": "i1",
    "%a = phi { i32, i1 } [ %b, %c ]": "{ i32, i1 }",
}


@pytest.mark.parametrize("line", TYPES)
def test_types_of_results(line: str) -> None:
    block = read_function(f"define void @f() {{\nentry:\n  {line}, !tbaa !3\n  ret void\n}}\n").blocks[0]
    assert result_type(block.instructions[0]) == TYPES[line]
