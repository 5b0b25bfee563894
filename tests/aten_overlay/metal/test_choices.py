"""`?:` between a `bfloat` and a literal."""

from __future__ import annotations

import numpy as np
import pytest

from aten_overlay.metal.build import compile_kernels
from aten_overlay.metal.choices import wrap_literals
from aten_overlay.metal.launch import Library

SOURCE = """#include <metal_stdlib>
template <typename T> T relu(T x) { return x < 0 ? 0 : x; }
kernel void chosen(device bfloat* x [[buffer(0)]], device float* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  const int whole = i > 1 ? int(i) : 7;
  device bfloat* none = i == 9 ? x : 0;
  out[i] = float(relu(x[i])) + (i & 1 ? x[i] : -1) + (none ? 100 : 0) + whole + (i > 5 ? 0.5f : 0);
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
