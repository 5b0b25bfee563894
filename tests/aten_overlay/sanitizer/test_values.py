"""NaN and infinities that kernels make of finite numbers: each at its line, and those that they were given pass."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options, compile_kernels, host_names
from aten_overlay.metal.launch import Library

SOURCE = Path(__file__).with_name("values.metal")


@cache
def load() -> Library:
    return Library(compile_kernels(SOURCE, host_names(SOURCE), Options(sanitize=("nan",))))


def run(kernel: str, *x: float) -> None:
    load().run(kernel, [np.zeros(8, np.float32), np.array(x, np.float32)], [8], [8])


@pytest.mark.parametrize(
    ("kernel", "x", "message"),
    [
        ("ratio", (0, 0), "divides 0 by 0: the result is NaN"),
        ("ratio", (-2, 0), "divides -2 by 0: the result is -infinity"),
        ("product", (1e30, 1e30), "multiplies 1.00000002e+30 by 1.00000002e+30: the result is infinity"),
        ("narrowed", (70000, 0), "rounds 70000 to half: the result is infinity"),
        ("exponential", (100, 0), ": the result is infinity"),
        ("root", (-1, 0), ": the result is NaN"),
    ],
)
def test_the_first_that_is_made_is_named(kernel: str, x: tuple[float, ...], message: str) -> None:
    with pytest.raises(OverlayError) as refused:
        run(kernel, *x)
    lines = SOURCE.read_text().split("\n")
    line = next(number for number, text in enumerate(lines, 1) if text.endswith(f"// {kernel}"))
    assert refused.value.code == "PTR297"
    assert f"{message}, at " in refused.value.what and f"values.metal:{line}, in thread (0, 0, 0)" in refused.value.what


@pytest.mark.parametrize(
    ("kernel", "x"),
    [
        ("ratio", (1, 3)), ("ratio", (np.inf, 2)), ("product", (np.nan, 1)), ("narrowed", (np.inf, 0)),
        ("exponential", (-np.inf, 0)), ("exponential", (-200, 0)), ("root", (2, 0)), ("largest", (3, 2)),
    ],
)  # fmt: skip
def test_finite_results_and_what_was_not_finite_before_pass(kernel: str, x: tuple[float, ...]) -> None:
    run(kernel, *x)
