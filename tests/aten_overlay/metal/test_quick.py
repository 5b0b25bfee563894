"""Kernels that are compiled soon rather than fast."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import QUICK, Options, compile_kernels, preprocess, read_unit
from aten_overlay.metal.launch import Library
from aten_overlay.metal.source.generate import generate
from aten_overlay.metal.source.targets import host

HOW = Options(optimization=QUICK)

# Arrays of two blocks share their place only where the compiler looks for that.
IN_TURN = """#include <metal_stdlib>
using namespace metal;
kernel void in_turn(device uint* out [[buffer(0)]], constant uint& n [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  uint sum = 0;
  {
    uint first[COUNT];
    for (uint k = 0; k < n; ++k) first[k * 7 % n] = k + i;
    for (uint k = 0; k < n; ++k) sum = sum * 3 + first[k];
  }
  {
    uint second[COUNT];
    for (uint k = 0; k < n; ++k) second[k * 5 % n] = sum ^ k;
    for (uint k = 0; k < n; ++k) sum = sum * 3 + second[k];
  }
  out[i] = sum;
}
"""

SAME = """#include <metal_stdlib>
template <typename T> kernel void twice(device T* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] *= 2; }
template [[host_name("twice_float")]] kernel void twice<float>(device float*, uint);
template [[host_name("twice_int")]] kernel void twice<int>(device int*, uint);
kernel void once(device int* x [[buffer(1)]], uint i [[thread_position_in_grid]]) { x[i] = 1; }
"""


def test_a_frame_that_only_plain_code_makes_too_large_compiles() -> None:
    source = IN_TURN.replace("COUNT", "7000")
    expected = np.zeros(3, np.uint32)
    quick = _run(Library(compile_kernels(source, ["in_turn"], HOW)))
    assert quick.tolist() == _run(Library(compile_kernels(source, ["in_turn"]))).tolist() != expected.tolist()


def test_a_frame_that_is_too_large_does_not() -> None:
    with pytest.raises(OverlayError, match="48 KiB"):
        compile_kernels(IN_TURN.replace("COUNT", "14000"), ["in_turn"], HOW)


def test_instances_of_a_template_are_described_once() -> None:
    unit = read_unit(preprocess(SAME, HOW))
    code = generate(unit, ["twice_float", "twice_int", "once"], {}, host("0"))
    prologue = [line.split(" { ")[0] for line in code.split("\n") if "pm_spec_" in line and "pm_make" not in line]
    assert prologue == ["struct pm_spec_0", "using pm_spec_1 = pm_spec_0;", "struct pm_spec_2"]
    library = Library(compile_kernels(SAME, ["twice_float", "twice_int", "once"], HOW))
    numbers, whole, ones = np.array([1.5, -2], np.float32), np.array([3, -4], np.int32), np.zeros(2, np.int32)
    library.run("twice_float", [numbers], [2])
    library.run("twice_int", [whole], [2])
    library.run("once", [None, ones], [2])
    assert (numbers.tolist(), whole.tolist(), ones.tolist()) == ([3, -4], [6, -8], [1, 1])


def test_what_is_compiled_soon_is_checked_too() -> None:
    library = Library(compile_kernels(SAME, ["twice_float"], replace(HOW, checked=True)))
    with pytest.raises(OverlayError, match="out of bounds"):
        library.run("twice_float", [np.zeros(2, np.float32)], [3])


def _run(library: Library) -> np.ndarray:
    out = np.zeros(3, np.uint32)
    library.run("in_turn", [out, np.array([6007], np.uint32)], [3])
    return out
