"""Bodies without needless text, and overloads that become one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from porter.core.dtypes import Kind
from porter.metal.functor import Body, Provenance
from porter.metal.tidy import share_bodies, specialize_helper, tidy_body
from tests.porter.metal.test_lambda_body import subject

SPEC = replace(subject(), inputs=("self", "other"))  # a and b


def tidy(*lines: str, kind: Kind = Kind.FLOATING) -> tuple[str, ...]:
    return tidy_body(Body(lines, "T", Provenance("a test")), kind, SPEC).statements


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (["return static_cast<T>(float(1) + precise::exp((-float(a))));"],
         ["return static_cast<T>(1.0f + precise::exp(-static_cast<float>(a)));"]),
        (["return static_cast<T>(static_cast<float>(1e-12f) * a + static_cast<float>(-100));"],
         ["return static_cast<T>(1e-12f * a + -100.0f);"]),
        (["return static_cast<T>(float(a) * float(a) + float(b));"],
         ["const float a_ = static_cast<float>(a);", "const float b_ = static_cast<float>(b);",
          "return static_cast<T>(a_ * a_ + b_);"]),
        (["const float a_ = static_cast<float>(a);", "float low = static_cast<float>(a_);", "return low * 2;"],
         ["float low = static_cast<float>(a);", "return low * 2;"]),
        (["float a_ = 1.0f;", "a_ = a_ + 1;", "return float(a) * float(a) + a_;"],
         ["const float a_f = static_cast<float>(a);", "float a_ = 1.0f;", "a_ = a_ + 1;", "return a_f * a_f + a_;"]),
        (["return static_cast<T>(static_cast<float>(a == b));"], ["return static_cast<T>(static_cast<float>(a == b));"]),
        (["return ((a * b)) < b ? (a) : ((a * b) + 1);"], ["return a * b < b ? a : (a * b) + 1;"]),
        (["return ((1.0f - b) * b) < a ? a : ((1.0f - b) * b);"],
         ["const auto value = (1.0f - b) * b;", "return value < a ? a : value;"]),
        (["return precise::tanh(a * b + 1.0f) + (a * b + 1.0f);"],
         ["const auto value = a * b + 1.0f;", "return precise::tanh(value) + value;"]),
        (["return (a - b) - (b - a) * (a / (b / a));"], ["return (a - b) - (b - a) * (a / (b / a));"]),
        (["if (metal::isnan(a)) {", "  return b;", "}", "return a;"],
         ["if (metal::isnan(a)) {", "  return b;", "}", "return a;"]),
    ],
)  # fmt: skip
def test_floats_are_cast_once(lines: list[str], wanted: list[str]) -> None:
    assert list(tidy(*lines)) == wanted


def test_casts_of_integers_stay() -> None:
    assert tidy("return static_cast<float>(a) / b;", kind=Kind.INTEGRAL) == ("return static_cast<float>(a) / b;",)


def test_complex_numbers_are_computed_wide() -> None:
    assert tidy("return T(root(float2(-a))) + b;", kind=Kind.COMPLEX) == (
        "const float2 a_ = float2(a);",
        "const float2 b_ = float2(b);",
        "return T(root(-a_) + b_);",
    )


def test_a_helper_of_floats_is_no_template() -> None:
    text = "template <typename T>\ninline T bend(T x_, T y) {\n  T x = static_cast<T>(x_);\n  return static_cast<T>(x * T(2) + y);\n}"
    assert specialize_helper(text) == "inline float bend(float x, float y) {\n  return x * 2.0f + y;\n}"
    other = "template <typename T>\ninline T bend(T x, long n) {\n  return x;\n}"
    assert specialize_helper(other) == other


@pytest.mark.parametrize(
    ("floating", "integral", "shared"),
    [
        ("return static_cast<T>(static_cast<float>(a) - static_cast<float>(b));", "return a - b;",
         "return static_cast<T>(static_cast<opmath_t<T>>(a) - static_cast<opmath_t<T>>(b));"),
        ("return static_cast<T>(static_cast<float>(a) / 2.0f);", "return a / 2;", ""),
        ("return static_cast<T>(c10::metal::fmod(static_cast<float>(a), b));", "return c10::metal::fmod(a, b);", ""),
    ],
)  # fmt: skip
def test_what_differs_in_its_type_alone_is_one_overload(floating: str, integral: str, shared: str) -> None:
    given = {
        Kind.FLOATING: Body((floating,), "T", Provenance("a test")),
        Kind.INTEGRAL: Body((integral,), "T", Provenance("a test")),
    }
    found = share_bodies(given, SPEC)
    assert [found[kind].statements for kind in given] == ([(shared,)] * 2 if shared else [(floating,), (integral,)])
