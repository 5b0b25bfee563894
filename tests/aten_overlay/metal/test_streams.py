"""Buffers that threads use one after the other: which are found, and that asking ahead for them changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from aten_overlay.metal.build import compile_kernels
from aten_overlay.metal.launch import Library
from aten_overlay.metal.source.declarations import find_definition, kernel_arguments, parse
from aten_overlay.metal.source.lexer import read
from aten_overlay.metal.source.table import find_streams

ARGUMENTS = "device const float* x, device const int* at, device float* out, constant uint& n"


def _find(position: str, body: str) -> set[str]:
    source = read(f"kernel void f({ARGUMENTS}, {position} [[thread_position_in_grid]]) {{ {body} }}")
    unit = parse(source)
    kernel = find_definition(unit, unit.instances[0])
    return set(find_streams(source, kernel.declaration, kernel_arguments(unit, kernel)))


@pytest.mark.parametrize(
    ("position", "body", "streams"),
    [
        ("uint i", "out[i] = x[i];", {"out", "x"}),
        ("uint i", "out[i] = x[at[i]];", {"out", "at"}),
        ("uint i", "out[i + n] = x[2 * i];", set()),
        ("uint i", "uint k = i; out[k] = x[k % n];", {"out"}),
        ("uint3 i", "uint k = i.x; out[k] = x[i.x] + x[i.y];", {"out", "x"}),
        ("uint2 i", "out[i.x + n * i.y] = x[i.y];", set()),
    ],
)
def test_buffers_subscripted_by_the_position_are_found(position: str, body: str, streams: set[str]) -> None:
    assert _find(position, body) == streams


def test_a_kernel_without_a_position_has_none() -> None:
    source = read("kernel void f(device float* out) { out[0] = 1; }")
    unit = parse(source)
    kernel = find_definition(unit, unit.instances[0])
    assert not find_streams(source, kernel.declaration, kernel_arguments(unit, kernel))


SOURCE = """#include <metal_stdlib>
using namespace metal;
kernel void twice(device const float* x, device float* out, uint i [[thread_position_in_grid]]) { out[i] = 2 * x[i]; }
kernel void rows(device const char* x, device long* out, uint2 i [[thread_position_in_grid]],
                 uint2 n [[threads_per_grid]]) {
  out[i.x] = x[i.x];
  out[i.y * n.x + i.x] = x[i.y * n.x + i.x] + 1;
}
"""


@pytest.mark.parametrize("count", [1, 63, 64, 65, 8191, 8192, 70001])
def test_every_thread_runs_once_however_memory_is_asked_for(count: int) -> None:
    library = Library(compile_kernels(SOURCE, ["twice"]))
    x = np.arange(count, dtype=np.float32)
    out = np.full(count + 1, -1, np.float32)
    library.run("twice", [x, out], [count])
    assert np.array_equal(out[:count], 2 * x)
    assert out[count] == -1


def test_rows_begin_anew() -> None:
    library = Library(compile_kernels(SOURCE, ["rows"]))
    x = (np.arange(3 * 100) % 100).astype(np.int8)
    out = np.zeros(x.size, np.int64)
    library.run("rows", [x, out], [100, 3], threads=1)
    assert np.array_equal(out[100:], x[100:].astype(np.int64) + 1)
