"""The MSL form of every MPSGraph operation computes what the operation means when the old path runs."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aten_overlay.apple.mpsgraph import semantics
from aten_overlay.metal import build
from aten_overlay.metal.launch import Library
from porter.core.checkout import EMBEDDED_FORK
from porter.mpsgraph.operations import Operation, by_op

WHOLE = {
    "int": np.array([0, 1, -1, 2, 3, -3, 7, -8, 100, 2**24 + 1, 2**31 - 1, -(2**31)], np.int32),
    "uchar": np.array([0, 1, 2, 7, 127, 128, 255], np.uint8),
    "bool": np.array([False, True]),
}
NOT_OF_BOOL = ("absolute", "division", "negative", "reLU")  # torch refuses them
VALUES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 0.75, 2.5, -2.5, 3.0, 1e-20, 80.0, float("inf"), -float("inf"), float("nan"))
TRUTH = ("logicalAND", "logicalOR", "logicalXOR", "not")
OF_COMPLEX = ("conjugate", "imaginaryPart", "realPart")
ROWS = tuple(row for op, row in by_op().items() if op not in OF_COMPLEX)
# Those that are computed of integers and truth values as they are.
EXACT = tuple(row for row in ROWS if not row.is_real)
COUNT = 8
NUMBERS = st.lists(st.floats(-100, 100, width=32) | st.sampled_from(VALUES), min_size=3 * COUNT, max_size=3 * COUNT)
HEADER = """\
#include <metal_stdlib>
#include <c10/metal/special_math.h>
#include <c10/metal/utils.h>
using namespace metal;
"""


def arity(row: Operation) -> int:
    return 1 + max(int(place) for place in re.findall(r"\{(\d)\}", row.msl))


def is_truth(row: Operation, place: int) -> bool:
    """Whether an operand is a truth value: those of logical operations, and what a selection asks."""
    return row.op in TRUTH or (row.op == "select" and place == 0)


def kernel(row: Operation, element: str) -> str:
    names = [f"a{place}" for place in range(arity(row))]
    types = ["bool" if is_truth(row, place) else element for place in range(arity(row))]
    params = "".join(
        f"constant {t}* {n} [[buffer({i + 1})]], " for i, (t, n) in enumerate(zip(types, names, strict=True))
    )
    value = row.msl.format(*(f"{name}[i]" for name in names))
    result = "bool" if row.result is None else element
    return f"kernel void {row.op}_form(device {result}* out [[buffer(0)]], {params}uint i [[thread_position_in_grid]]) {{ out[i] = {result}({value}); }}\n"


@lru_cache(maxsize=len(WHOLE) + 1)
def library(element: str) -> Library:
    rows = ROWS if element == "float" else EXACT
    text = HEADER + "".join(kernel(row, element) for row in rows)
    options = build.Options(include=(EMBEDDED_FORK,), optimization=build.QUICK)
    return Library(build.compile_kernels(text, [f"{row.op}_form" for row in rows], options))


def ran(row: Operation, element: str, operands: list[Any]) -> Any:
    """What the form computes of every row of the operands."""
    result = np.dtype(bool) if row.result is None else operands[-1].dtype
    out = np.zeros(operands[0].size, result)
    library(element).run(f"{row.op}_form", [out, *(np.ascontiguousarray(each) for each in operands)], [out.size])
    return out


def compute(row: Operation, a: list[Any]) -> Any:
    """What the old path computes; PyTorch's own category on MPSGraph sends other messages."""
    sent = by_op()[row.sends[not a[0].is_floating_point()]] if row.sends else row
    return semantics.find(sent.selector)(*a)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.op)
def test_form_and_semantics_agree(row: Operation) -> None:
    grids = np.meshgrid(*[np.array(VALUES, np.float32)] * arity(row), indexing="ij")
    operands = [grid.ravel() for grid in grids]
    if row.op == "clamp":  # its bounds are numbers, the lower one first
        ordered = (operands[1] <= operands[2]) & ~np.isnan(operands[0])
        operands = [each[ordered] for each in operands]
    given = [each != 0 if is_truth(row, place) else each for place, each in enumerate(operands)]
    out = ran(row, "float", given).astype(np.float32)
    meant = compute(row, list(map(torch.from_numpy, given))).float().numpy()
    assert np.array_equal(np.isnan(out), np.isnan(meant))
    np.testing.assert_allclose(out, meant, rtol=2e-6, atol=1e-37, equal_nan=True)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.op)
@settings(max_examples=25, deadline=None)
@given(values=NUMBERS)
def test_form_and_float64_agree(row: Operation, values: list[float]) -> None:
    """Within 8 units of float's spacing, and four times what the last bit of each operand changes."""
    operands = [np.array(values[at * COUNT : (at + 1) * COUNT], np.float32) for at in range(arity(row))]
    if row.op == "clamp":
        ordered = (operands[1] <= operands[2]) & ~np.isnan(operands[0])
        operands = [each[ordered] for each in operands]
    given_ = [each != 0 if is_truth(row, place) else each for place, each in enumerate(operands)]
    out = ran(row, "float", given_).astype(np.float64) if operands[0].size else np.zeros(0)
    wide = [each if is_truth(row, place) else each.astype(np.float64) for place, each in enumerate(given_)]
    meant = compute(row, list(map(torch.from_numpy, wide))).double()
    change = torch.zeros_like(meant)
    for moved in range(arity(row)) if row.is_real else ():
        near = [
            each * (1 + 2.0**-23) if at == moved and not is_truth(row, at) else each for at, each in enumerate(wide)
        ]
        change += (compute(row, list(map(torch.from_numpy, near))).double() - meant).abs().nan_to_num(0.0, 0.0, 0.0)
    exact = meant.float().double().numpy()
    assert np.array_equal(np.isnan(out), np.isnan(exact))
    finite = np.isfinite(exact)
    allowed = 8 * 2.0**-23 * abs(exact[finite]) + 4 * change.numpy()[finite] + 1e-37
    assert (abs(out[finite] - exact[finite]) <= allowed).all()
    assert np.array_equal(out[~finite], exact[~finite], equal_nan=True)


@pytest.mark.parametrize("element", WHOLE)
@pytest.mark.parametrize("row", EXACT, ids=lambda row: row.op)
def test_form_and_meaning_agree_on_integers_and_booleans(row: Operation, element: str) -> None:
    if element == "bool" and row.op in NOT_OF_BOOL:
        with pytest.raises(RuntimeError, match=r"(?i)bool"):
            compute(row, [torch.tensor([True])] * arity(row))
        return
    grids: list[Any] = list(np.meshgrid(*[WHOLE[element]] * arity(row), indexing="ij"))
    operands = [np.ravel(grid) for grid in grids]
    if row.op in ("division", "reciprocal"):  # MSL says nothing of a quotient that no integer is
        defined = (operands[-1] != 0) & ((operands[0].astype(int) != -(2**31)) | (operands[-1].astype(int) != -1))
        operands = [each[defined] for each in operands]
    given = [each != 0 if is_truth(row, place) else each for place, each in enumerate(operands)]
    np.testing.assert_array_equal(
        ran(row, element, given), compute(row, list(map(torch.from_numpy, given))).numpy(), strict=True
    )


def test_complex_constructors_take_real_parts() -> None:
    """Their forms are of float2, which the ports' own verdicts run."""
    assert {by_op()[op].msl for op in OF_COMPLEX} == {"c10::metal::conj({0})", "{0}.x", "{0}.y"}
