"""Complex arguments are told by their parts, and as one where both parts are its."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porter.core.dtypes import FLOAT, FLOAT2, HALF2, DType
from porter.mpsgraph.graph import Call, Cast, Expr, Input, format_expr
from porter.recording.calls import argument_parts
from porter.recording.cases import RecordedCall, build_cases
from porter.recording.expressions import complex_constant, merge_parts

X = Input("self", FLOAT2)
VALUES = (0.37 + 0.59j, 1.7 - 0.8j, -0.8 + 0.37j, 2 + 0j)


def describe(make: Callable[[complex], complex], dtype: DType = FLOAT2) -> str:
    def seen(value: complex) -> RecordedCall:
        expr = Call("addition", (X, complex_constant(make(value), dtype)), dtype)
        return RecordedCall(dtype, {"alpha": str(value), **argument_parts("alpha", value)}, expr)

    [case] = build_cases([seen(value) for value in VALUES])[0]
    return format_expr(case.expr)


@pytest.mark.parametrize("dtype", [FLOAT2, HALF2])
@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda a: a, "alpha"),
        (lambda a: 2.0, "2.0"),
        (lambda a: 1j, "complexTensorWithRealTensor:imaginaryTensor(0.0, 1.0)"),
        (lambda a: a.real, "alpha.real()"),
        (
            lambda a: a.conjugate(),
            "complexTensorWithRealTensor:imaginaryTensor(alpha.real(), negative(alpha.imag()))",
        ),
    ],
)
def test_forms(make: Callable[[complex], complex], text: str, dtype: DType) -> None:
    assert describe(make, dtype) == f"addition(self, {text})"


@given(st.complex_numbers(allow_nan=False))
def test_real_complex_numbers_become_real(value: complex) -> None:
    expr: Expr = Cast(complex_constant(value, FLOAT2), FLOAT)
    text = format_expr(merge_parts(expr))
    assert (text == f"float({value.real})") is (value.imag == 0)
