"""`?:` between a `bfloat` and an integer."""

from __future__ import annotations

import numpy as np
import pytest

from aten_overlay.errors import OverlayError, Place
from aten_overlay.metal.build import compile_kernels
from aten_overlay.metal.launch import Library
from aten_overlay.metal.source.choices import convert_sides, wrap_literals

SOURCE = """#include <metal_stdlib>
template <typename T> T relu(T x) { return x < 0 ? 0 : x; }
kernel void chosen(device bfloat* x [[buffer(0)]], device float* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  const int whole = i > 1 ? int(i) : 7;
  device bfloat* none = i == 9 ? x : 0;
  out[i] = float(relu(x[i])) + (i & 1 ? x[i] : -1) + (none ? 100 : 0) + whole + (i > 5 ? 0.5f : 0);
}
"""

OF_ANY = """#include <metal_stdlib>
struct row { bfloat at[2]; };
template <typename T> T pick(T x, int n, bool own) { return own ? x : n; }
kernel void picked(device bfloat* x [[buffer(0)]], device float* out [[buffer(1)]], device bfloat* y [[buffer(2)]],
                   uint i [[thread_position_in_grid]]) {
  row here{{x[i], 2}};
  const ushort n = ushort(i);
  out[i] = i < 2 ? n : x[i];
  out[i] += float(i & 1 ? here.at[1] : i > 1 ? n * 2 : here.at[0]) + pick(x[i], -9, i == 3) + pick(0.5f, 8, i == 0);
  y[i] = i == 1 ? i : x[i];
}
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("c ? x : 0;", "c ? x : pm::literal{0};"),
        ("c ? (-1) : (x)", "c ? (pm::literal{-1}) : (x)"),
        ("c ? 1 : 0;", "c ? 1 : 0;"),
        ("a ? b ? x : 0 : y[c ? 0 : 1];", "a ? b ? x : pm::literal{0} : y[c ? 0 : 1];"),
        ("a ? x : b ? y : 2;", "a ? x : b ? y : pm::literal{2};"),
        ("c ? x : 0.0f;", "c ? x : 0.0f;"),
        ("c ? n::x : n + 1;", "c ? n::x : n + 1;"),
    ],
)
def test_a_literal_beside_something_else_is_wrapped(code: str, expected: str) -> None:
    assert wrap_literals(f"int f() {{ {code} }}") == f"int f() {{ {expected} }}"


def test_a_literal_takes_the_type_of_the_other_side() -> None:
    values = np.array([-2.5, 1.5, -0.5, 3.25], np.float32)
    x, out = (values.view(np.uint32) >> 16).astype(np.uint16), np.full(4, np.nan, np.float32)
    Library(compile_kernels(SOURCE, ["chosen"])).run("chosen", [x, out], [4])
    places = np.arange(4)
    expected = np.maximum(values, 0) + np.where(places & 1, values, -1) + np.where(places > 1, places, 7)
    assert out.tolist() == expected.tolist()


def test_the_last_choice_of_a_line_is_converted_first() -> None:
    code = "int f() {\n a ? x : b ? y[0] : n + 1; c ? 1 : z;\n}"
    once = convert_sides(f'# 1 "a.metal"\n{code}', Place("a.metal", 2))
    assert (
        once.split("\n")[2] == " a ? x : b ? y[0] : n + 1; c ? pm::beside<decltype(z)>(1) : pm::beside<decltype(1)>(z);"
    )
    twice = convert_sides(once, Place("a.metal", 2)).split("\n")[2]
    assert twice.startswith(" a ? x : b ? pm::beside<decltype(n + 1)>(y[0]) : pm::beside<decltype(y[0])>(n + 1); ")
    assert convert_sides(once, Place("a.metal", 1)) == once


def test_an_integer_takes_the_type_of_the_other_side() -> None:
    values = np.array([-2.5, 1.5, -0.5, 3.25], np.float32)
    x, out = (values.view(np.uint32) >> 16).astype(np.uint16), np.zeros(4, np.float32)
    y = np.zeros(4, np.uint16)
    Library(compile_kernels(OF_ANY, ["picked"])).run("picked", [x, out, y], [4])
    expected = [0 - 2.5 - 9 + 0.5, 1 + 2 - 9 + 8, -0.5 + 4 - 9 + 8, 3.25 + 2 + 3.25 + 8]
    assert out.tolist() == expected
    assert (y.astype(np.uint32) << 16).view(np.float32).tolist() == [-2.5, 1, -0.5, 3.25]


def test_a_choice_of_two_classes_is_still_wrong() -> None:
    source = OF_ANY.replace("y[i] = i == 1 ? i : x[i];", "struct a {} p; struct b {} q; i ? p : q;")
    with pytest.raises(OverlayError, match="incompatible operand types"):
        compile_kernels(source, ["picked"])
