"""A number of a graph is told as a function of the arguments, from runs with different ones."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porter.core.dtypes import BFLOAT, FLOAT, HALF, INT, UCHAR, DType
from porter.mpsgraph.graph import Constant, Literal, UnknownValue, Value, format_expr
from porter.recording.cases import recover_expression

CALLS: list[dict[str, Value]] = [
    {"eps": eps, "scale": scale, "self.dim()": 2} for eps, scale in ((0.1, 2.0), (0.25, 3.0), (0.37, 5.0), (0.59, 0.7))
]


def single(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def describe(make: Callable[[Mapping[str, Value]], float], dtype: DType = FLOAT) -> str:
    return format_expr(recover_expression([Constant(make(call), dtype) for call in CALLS], CALLS))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda c: c["eps"], "eps"),
        (lambda c: single(c["eps"]), "eps"),
        (lambda c: -c["scale"], "negative(scale)"),
        (lambda c: 1 / c["eps"], "reciprocal(eps)"),
        (lambda c: 1 - c["eps"], "subtraction(1.0, eps)"),
        (lambda c: c["eps"] - 1, "subtraction(eps, 1.0)"),
        (lambda c: c["scale"] ** 2, "multiplication(scale, scale)"),
        (lambda c: math.log(c["scale"]), "logarithm(scale)"),
        (lambda c: c["scale"] / c["eps"], "division(scale, eps)"),
        (lambda c: -c["eps"] * c["scale"], "multiplication(negative(eps), scale)"),
        (lambda c: 0.75, "0.75"),
    ],
)
def test_forms(make: Callable[[Mapping[str, Value]], float], text: str) -> None:
    assert describe(make) == text


def test_values_no_form_explains_are_not_guessed() -> None:
    leaf = recover_expression([Constant(math.sin(call["eps"]), FLOAT) for call in CALLS], CALLS)  # type: ignore[arg-type]
    assert isinstance(leaf, UnknownValue)
    assert len(leaf.values) == len(CALLS)


def test_two_values_are_not_enough_for_a_form() -> None:
    calls = CALLS[:2]
    leaf = recover_expression([Constant(1 - float(call["eps"]), FLOAT) for call in calls], calls)  # type: ignore[arg-type]
    assert isinstance(leaf, UnknownValue)


def test_integer_types_truncate_and_wrap() -> None:
    calls: list[dict[str, Value]] = [{"alpha": 2.0}, {"alpha": 3.7}, {"alpha": -1.0}]
    assert format_expr(recover_expression([Constant(v, INT) for v in (2, 3, -1)], calls)) == "alpha"
    assert format_expr(recover_expression([Constant(v, UCHAR) for v in (2, 3, 255)], calls)) == "alpha"


@given(st.lists(st.floats(0.01, 100), min_size=3, max_size=6, unique=True), st.sampled_from((FLOAT, HALF, BFLOAT)))
def test_a_scalar_is_found_again_in_any_precision(values: list[float], dtype: DType) -> None:
    bits = {FLOAT: 24, HALF: 11, BFLOAT: 8}[dtype]
    rounded = [math.ldexp(round(math.ldexp(m, bits)), e - bits) for m, e in map(math.frexp, values)]
    calls: list[dict[str, Value]] = [{"x": value} for value in values]
    leaf = recover_expression([Constant(value, dtype) for value in rounded], calls)
    assert format_expr(leaf) in ("x", str(rounded[0]))


@pytest.mark.parametrize(
    ("values", "name", "given_", "rank"),
    [
        (((0,), (1,), (0,)), "dim", (0, 1, -2), 2),
        ((0, 1, 1), "dim", (0, 1, -1), 2),
        (((0, 2), (1, 2), (0, 1)), "dim", ((0, 2), (1, -1), (0, 1)), 3),
        ((True, False, True), "keepdim", (True, False, True), 2),
        (((2, 3), (1,), (4,)), "self.sizes()", ((2, 3), (), (4,)), 2),
    ],
)
def test_non_numeric_arguments(values: tuple[Value, ...], name: str, given_: tuple[Value, ...], rank: int) -> None:
    calls = [{name: value, "self.dim()": rank} for value in given_]
    assert recover_expression([Literal(value, FLOAT) for value in values], calls) == Literal(name, FLOAT)


def test_every_axis() -> None:
    calls: list[dict[str, Value]] = [{"self.dim()": rank} for rank in (1, 3, 2)]
    leaves = [Literal(axes, FLOAT) for axes in ((0,), (0, 1, 2), (1, 0))]
    assert recover_expression(leaves, calls) == Literal("every axis", FLOAT)
