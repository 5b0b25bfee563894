"""Divisions of integers by zero and floats out of range for an integer: a use of what they become is named."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options, compile_kernels, host_names
from aten_overlay.metal.launch import Library

SOURCE = Path(__file__).with_name("open.metal")
LEAST = -(2**31)


@cache
def load() -> Library:
    return Library(compile_kernels(SOURCE, host_names(SOURCE), Options(sanitize=("private", "arithmetic"))))


def run(kernel: str, a: tuple[int, int], x: float) -> np.ndarray:
    out = np.zeros(8, np.int32)
    load().run(kernel, [out, np.array(a, np.int32), np.array([x], np.float32)], [8], [8])
    return out


@pytest.mark.parametrize(
    ("kernel", "a", "x", "message", "use"),
    [
        ("quotient", (5, 0), 0, "divides 5 by 0", "out[i] = all + 1;"),
        ("quotient", (LEAST, -1), 0, f"divides {LEAST} by -1", "out[i] = all + 1;"),
        ("rest", (-1, 0), 0, "takes the remainder of 4294967295 by 0", "// rest"),
        ("rows", (7, 0), 0, "divides 7 by 0", "// rows"),
        ("rounded", (0, 0), 40000, "converts 40000 to 16 bits, which cannot hold it", "if (small > 4) out[i] = 1;"),
        ("rounded", (0, 0), np.nan, "converts nan to 16 bits, which cannot hold it", "if (small > 4) out[i] = 1;"),
        ("index", (0, 0), -3, "converts -3 to unsigned 32 bits, which cannot hold it", "// index"),
    ],
)
def test_the_operation_and_the_line_that_depends_on_it_are_named(
    kernel: str, a: tuple[int, int], x: float, message: str, use: str
) -> None:
    with pytest.raises(OverlayError) as refused:
        run(kernel, a, x)
    lines = SOURCE.read_text().split("\n")
    line = next(number for number, text in enumerate(lines, 1) if text.endswith(f"// {kernel}"))
    after = next(number for number, text in enumerate(lines, 1) if text.endswith(use))
    assert refused.value.code == "PTR299"
    assert f"{message}: Metal leaves the result open, and line {after} depends on it, at " in refused.value.what
    assert f"open.metal:{line}, in thread (0, 0, 0)" in refused.value.what


@pytest.mark.parametrize(
    ("kernel", "a", "x", "result"),
    [
        ("quotient", (7, -1), 0, -6), ("rest", (7, 4), 0, 3), ("rounded", (0, 0), 5.9, 1), ("chosen", (5, 0), 0, 0),
        ("selected", (5, 0), 0, 0), ("clamped", (0, 0), np.inf, 0), ("clamped", (0, 0), 1e30, 10**9), ("unused", (0, 0), 1e30, 3),
    ],
)  # fmt: skip
def test_what_nothing_depends_on_passes(kernel: str, a: tuple[int, int], x: float, result: int) -> None:
    assert run(kernel, a, x).tolist() == [result] * 8
