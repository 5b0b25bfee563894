"""Mistakes that ports were once right in spite of: each fails its verdict, for its own reason."""

from __future__ import annotations

import pytest

from porter.core.layout import KERNELS
from tests.porter.verdict.test_planted_faults import reasons
from tests.porter.verdict.written_ports import planned

AS_FLOAT = "static_cast<float>(x)"
LOG1P = "c10::metal::log1p(precise::exp(-metal::abs(a_ - b_)))"
EXP2 = "precise::exp2(static_cast<float>(x))"
SMALL_WEIGHT = "metal::abs(weight) < 0.5f ?"
LOG_OF_COMPLEX = (
    "T(float2(precise::log(c10::metal::hypot(1.0f + float2(x).x, float2(x).y)),"
    " precise::atan2(float2(x).y, 1.0f + float2(x).x)))"
)


@pytest.mark.parametrize(
    ("op", "old", "new"),
    [("eq", "return a == b;\n", "return float(a) == float(b);\n"), ("lt", "a < b", "float(a) < float(b)")],
)
def test_integers_compared_through_float(op: str, old: str, new: str) -> None:
    verdict = planned(op, old, new).verdict("test_edge_values and (int32 or int64)")
    assert "(16777216, 16777217)" in reasons(verdict)
    assert {f.dtype for f in verdict.failures} == {"int32", "int64"}


@pytest.mark.parametrize(
    ("op", "old", "new"),
    [
        ("log1p", f"static_cast<T>(c10::metal::log1p({AS_FLOAT}))", f"static_cast<T>(precise::log(1.0f + {AS_FLOAT}))"),
        ("logaddexp", LOG1P, "precise::log(1.0f + precise::exp(-metal::abs(a_ - b_)))"),
        (
            "erf",
            f"static_cast<T>(c10::metal::erf({AS_FLOAT}))",
            f"static_cast<T>(c10::metal::erf({AS_FLOAT} * 1.00001f))",
        ),
    ],
)
def test_precision_below_what_the_cpu_reaches(op: str, old: str, new: str) -> None:
    told = reasons(planned(op, old, new).verdict("test_accuracy and float32"))
    assert "the bound is 8.0 ULP, from the CPU's" in told


def test_cancellation_in_a_complex_logarithm() -> None:
    wrong = planned("log1p", "T(complex_log1p(float2(x)))", LOG_OF_COMPLEX)
    assert "the bound is 8.0 ULP" in reasons(wrong.verdict("test_accuracy and complex64"))


@pytest.mark.parametrize(
    ("op", "old", "new"),
    [("exp2", "z.y * M_LN2_F", "z.y"), ("rsqrt", "float2(1, 0), root)", "float2(1, 0), float2(root.x, -root.y))")],
)
def test_a_list_does_not_excuse_a_planned_type(op: str, old: str, new: str) -> None:
    verdict = planned(op, old, new).verdict("complex64")
    assert {"test_accuracy", "test_edge_values", "test_layouts"} <= {
        f.test.partition(".")[2].partition(f"_{op}")[0] for f in verdict.failures
    }
    assert "the CPU gives" in reasons(verdict)


def test_a_nan_clamped_to_a_number() -> None:
    wrong = planned("logit", "x_ = x_ < lo ? lo : (x_ > hi ? hi : x_);", "x_ = x_ > lo ? (x_ > hi ? hi : x_) : lo;")
    assert "first at (nan)" in reasons(wrong.verdict("test_edge_values and float32"))


def test_a_number_at_which_a_kernel_branches() -> None:
    wrong = planned("logit", "eps_ < 0.0f", "eps_ <= 0.0f")
    assert "with 0.0 for 0.2: " in reasons(wrong.verdict("test_edge_values and float32"))


@pytest.mark.parametrize(
    ("op", "old", "new"),
    [
        ("ceil", f"::metal::ceil({AS_FLOAT})", f"::metal::ceil({AS_FLOAT}) + 0.0f"),
        ("remainder", "c10::metal::remainder(static_cast<float>", "0.0f + c10::metal::remainder(static_cast<float>"),
        ("neg", "return -x;", "return T(0) - x;"),
    ],
)
def test_the_sign_of_a_zero(op: str, old: str, new: str) -> None:
    assert "0.0, the CPU gives -0.0" in reasons(planned(op, old, new).verdict("test_edge_values and float32"))


def test_a_denormal_result_that_is_lost() -> None:
    wrong = planned("exp2", EXP2, f"({AS_FLOAT} < -126.0f ? 0.0f : {EXP2})")
    assert "0.0, the CPU gives 2.9387" in reasons(wrong.verdict("test_edge_values and float32"))


def test_the_other_side_of_a_branch() -> None:
    wrong = planned("lerp", SMALL_WEIGHT, "metal::abs(weight) < 5.0f ?")
    verdict = wrong.verdict("(test_edge_values or test_accuracy) and float32")
    assert "with 1.0 for" in reasons(verdict) or "with 0.5 for" in reasons(verdict)
    boundary = planned("lerp", SMALL_WEIGHT, "metal::abs(weight) <= 0.5f ?")
    assert "with 0.5 for" in reasons(boundary.verdict("test_edge_values and float32"))


def test_digits_lost_for_integers() -> None:
    old = "return c10::metal::erf(static_cast<float>(x));"
    wrong = planned("erf", old, old.replace(";", " * 1.00001f;"))
    assert "off by 168.3 ULP at (4)" in reasons(wrong.verdict("test_edge_values and int16"))


def test_a_type_without_a_cpu_kernel_computed_in_half() -> None:
    wrong = planned("exp2", "precise::exp2(z.x)", "precise::exp2(x.x)")
    assert "off by more than one ULP" in reasons(wrong.verdict("test_types_beyond_the_cpu or complex64"))


def test_a_number_at_which_a_function_that_is_called_branches() -> None:
    port = planned("erf", "c10::metal::erf(static_cast<float>(x))", "bend(static_cast<float>(x))")
    bend = "inline float bend(float x) {\n  return x == 20.5f ? 2.0f : c10::metal::erf(x);\n}\n\nstruct erf_functor {"
    bent = port.edited(f"{KERNELS}/UnaryKernel.metal", "struct erf_functor {", bend)
    assert "first at (20.5): 2.0" in reasons(bent.verdict("test_edge_values and float32"))
