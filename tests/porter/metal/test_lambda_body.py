"""What a CPU lambda becomes in a functor, with the casts and the names of the file it joins."""

from __future__ import annotations

from dataclasses import replace

import pytest
from expecttest import assert_expected_inline

from porter.aten.meta import Promotion, TypeRule
from porter.aten.metal_functions import Library
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.dtypes import ALL, BFLOAT, FLOAT, FLOAT2, HALF, LONG, Kind
from porter.core.errors import Place
from porter.cpu.kernels import CpuKernel, Lambda, ScalarArgument
from porter.metal.candidates import build_functor, list_candidates
from porter.metal.functor import (
    Body,
    Functor,
    FunctorSpec,
    FunctorStyle,
    Overload,
    Provenance,
    functor_text,
    merge_overloads,
    promote_body,
    translate_lambda,
)

PLACE = Place("Kernel.cpp", 1)
LOOKS = FunctorStyle("x", ("a", "b"), True, True, "static_cast<float>")
LAMBDA = Lambda(("z",), (), "z", False, ALL, "T", False, (), (), PLACE)


def subject(*lambdas: Lambda, promotion: Promotion = Promotion.SAME) -> FunctorSpec:
    kernel = CpuKernel("bend_stub", "bend_kernel", (), ALL, lambdas, (), PLACE)
    return FunctorSpec(("bend",), ("self",), (), TypeRule(promotion), kernel, None, Library(()), LOOKS)


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("precise::atan2(z.y, z.x)", "return (precise::atan2(x.y, x.x)).x;"),
        ("T(precise::atan2(z.y, z.x), 0.0f)", "return precise::atan2(x.y, x.x);"),
        ("T(z.x, 0) + T(z.y, 0)", "return (T(x.x, 0) + T(x.y, 0)).x;"),
    ],
)
def test_a_real_result_takes_the_real_part_of_a_complex_value(body: str, line: str) -> None:
    found = translate_lambda(replace(LAMBDA, body=body), subject(), Kind.COMPLEX, "float")
    assert found.statements == (line,)


def test_complex_parts_survive_a_parameter_of_the_same_name() -> None:
    found = translate_lambda(replace(LAMBDA, body="z.x + z.y"), subject(), Kind.COMPLEX, "T")
    assert found.statements == ("return x.x + x.y;",)


def test_a_cast_is_not_cast_again() -> None:
    found = translate_lambda(replace(LAMBDA, body="T(z) / 2", opmath=True), subject(), Kind.FLOATING, "T")
    assert found.statements == ("return static_cast<T>(static_cast<float>(x) / 2);",)


def test_numbers_of_the_element_type_are_floats_as_written() -> None:
    found = translate_lambda(replace(LAMBDA, body="T(1) + T(0.5f) * z", opmath=True), subject(), Kind.FLOATING, "T")
    assert found.statements == ("return static_cast<T>(1.0f + 0.5f * static_cast<float>(x));",)


@pytest.mark.parametrize(
    ("number", "expected"),
    [("0.5f", "0.5f"), ("1e-12f", "float(T(1e-12f))"), ("1e5f", "float(T(1e5f))"), ("0.0f", "0.0f")],
)
def test_a_number_that_a_half_cannot_hold_is_rounded_as_the_lambda_rounds_it(number: str, expected: str) -> None:
    body = translate_lambda(replace(LAMBDA, body=f"z / T({number})", opmath=True), subject(), Kind.FLOATING, "T")
    assert body.statements == (f"return static_cast<T>(static_cast<float>(x) / {expected});",)


@pytest.mark.parametrize(
    ("text", "rounded"), [("y / (z * T(2))", ["return a / (b * T(2));"]), ("precise::log(y) / z", [])]
)
def test_a_candidate_rounds_halves_after_each_operation_as_the_cpu_does(text: str, rounded: list[str]) -> None:
    spec = replace(subject(replace(LAMBDA, params=("y", "z"), body=text, opmath=True)), inputs=("self", "other"))
    in_float, *others = list_candidates(spec, Kind.FLOATING)
    assert "float(a)" in in_float.statements[0] or "<float>(a)" in in_float.statements[0]
    assert [line for body in others if body.rounds for line in body.statements] == rounded


def test_code_of_helpers_alone_is_computed_in_float() -> None:
    found = translate_lambda(replace(LAMBDA, body="side(z)", helpers=("...",)), subject(), Kind.FLOATING, "T")
    assert found.statements == ("return static_cast<T>(side(static_cast<float>(x)));",)


@pytest.mark.parametrize("statement", ["return side(x);", "return static_cast<T>(side(static_cast<float>(x)));"])
def test_integers_become_float_before_computing(statement: str) -> None:
    found = promote_body(Body((statement,), "T", Provenance("a test")), subject())
    assert (found.statements, found.result) == (("return side(static_cast<float>(x));",), "float")


def test_integers_follow_the_candidate_of_floats() -> None:
    given = subject(replace(LAMBDA, body="side(z)"), promotion=Promotion.FLOAT)
    [origin, other] = build_functor(given, {}).origins
    assert origin.kinds == (Kind.FLOATING, Kind.INTEGRAL, Kind.BOOL)
    assert other.kinds == (Kind.COMPLEX,)


def test_an_identical_candidate_is_dropped() -> None:
    assert len(list_candidates(subject(LAMBDA), Kind.FLOATING)) == 1


def test_bool_joins_an_overload_that_does_the_same() -> None:
    one, other = Body(("return x;",), "T", Provenance("a test")), Body(("return x;",), "bool", Provenance("a test"))
    [both] = merge_overloads([(Kind.INTEGRAL, one), (Kind.BOOL, other)])
    assert both.kinds == (Kind.INTEGRAL, Kind.BOOL)
    assert len(merge_overloads([(Kind.COMPLEX, one), (Kind.FLOATING, replace(other))])) == 2


def test_complex_elements_take_the_lambda_of_their_type() -> None:
    plain, conjugate = replace(LAMBDA, body="z", dtypes=()), replace(LAMBDA, body="conj(z)", dtypes=(FLOAT2,))
    [body] = list_candidates(subject(plain, conjugate), Kind.COMPLEX)
    assert body.statements == ("return conj(x);",)


def test_a_long_body_is_called_for_integers() -> None:
    long = Body(("const float y = static_cast<float>(x);", "return static_cast<T>(y * y);"), "T", Provenance("a test"))
    assert promote_body(long, subject()).statements == ("return operator()(static_cast<float>(x));",)
    spec = replace(subject(), scalars=("eps",))
    assert promote_body(long, spec).statements == ("return operator()(static_cast<float>(x), eps);",)


def test_halves_are_served_wherever_the_cpu_has_float() -> None:
    spec = subject()
    of_float = replace(spec, cpu=replace(spec.cpu, dtypes=(FLOAT,)))
    of_longs = replace(spec, cpu=replace(spec.cpu, dtypes=(LONG,)))
    assert (of_float.served, of_longs.served) == ((FLOAT, HALF, BFLOAT), (LONG,))


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("(precise::exp(z * (z + 1)) - 1.0f) * z", "(expm1(X * (X + 1))) * X"),
        ("precise::exp(z) - 1.5f", ""),
        ("precise::exp(z) + 1.0f", ""),
    ],
)
def test_another_candidate_keeps_the_digits_of_exp_minus_one(body: str, line: str) -> None:
    spec = replace(subject(replace(LAMBDA, body=body)), library=Library.read(Checkout(EMBEDDED_FORK, "test")))
    bodies = [each.statements for each in list_candidates(spec, Kind.FLOATING)]
    x = "static_cast<float>(x)"
    functions = ("c10::metal::expm1f", "real_expm1") if line else ()
    wanted = [(f"return static_cast<T>({line.replace('X', x).replace('expm1', each)});",) for each in functions]
    assert bodies[1:] == wanted


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("z <= 0 ? -z : z > 3 ? T(3) : z", "x <= 0 ? -x : x > 3 ? 3.0f : x"),
        ("z == 0 ? -z : z", ""),
        ("z < -z ? -z : z", ""),
        ("z << 1", ""),
    ],
)
def test_a_later_candidate_has_limits_on_their_other_sides(body: str, line: str) -> None:
    """hardswish_backward of PyTorch 2.7 is grad / 2 less at -3, that of 2.8 is zero there."""
    first, *others = list_candidates(subject(replace(LAMBDA, body=body)), Kind.FLOATING)
    turned = [" ".join(each.statements) for each in others]
    signs = {" <= ": " < ", " > ": " >= "}
    wanted = " ".join(first.statements)
    for sign, other in signs.items():
        wanted = wanted.replace(sign, other)
    assert turned == ([wanted] if line else [])
    assert all(each.origin.changes[-1] == "with limits on their other sides" for each in others)


def test_the_end_of_a_loop_is_no_limit() -> None:
    body = "return z < 3 ? z : 3;"
    looped = replace(LAMBDA, body="for (int i = 0; i < 3; i++) { z = z * z; } " + body)
    assert len(list_candidates(subject(replace(looped, body=looped.body)), Kind.FLOATING)) == 1


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("blend(z, k)", ("return static_cast<T>(blend(static_cast<A>(x), weight));",)),
        ("T(z.x, k.y)", ("return static_cast<T>(A(static_cast<A>(x).x, weight.y));",)),
    ],
)
def test_a_complex_scalar_of_the_element_type_is_not_rounded_to_half(body: str, lines: tuple[str, ...]) -> None:
    spec = replace(subject(), scalars=("weight",))
    found = translate_lambda(
        replace(LAMBDA, body=body, scalars=(ScalarArgument("k", "T", "weight"),)), spec, Kind.COMPLEX, "T"
    )
    assert found.statements == lines
    kept = replace(LAMBDA, body="mul(z, k)", scalars=(ScalarArgument("k", "c10::metal::opmath_t<T>", "weight"),))
    assert translate_lambda(kept, spec, Kind.COMPLEX, "T").statements == ("return mul(x, weight);",)


def test_a_scalar_of_a_lambda_for_bools_is_the_number_itself() -> None:
    spec = replace(subject(), scalars=("weight",))
    bools = replace(LAMBDA, body="z && k", result="bool", scalars=(ScalarArgument("k", "bool", "weight"),))
    assert translate_lambda(bools, spec, Kind.BOOL, "bool").statements == ("return x && weight;",)


def test_the_overload_of_bool_beside_others_takes_no_other_type() -> None:
    """An overload for any type would be as good as those of numbers."""
    overloads = (
        Overload((Kind.FLOATING,), Body(("return params.slope * a;",), "T", Provenance("a test"))),
        Overload((Kind.BOOL,), Body(("return params.slope && a;",), "bool", Provenance("a test"))),
    )
    functor = Functor("bend", ("a",), (("A", "params"),), overloads, ())
    assert_expected_inline(
        functor_text(functor, LOOKS),
        """\
struct bend_functor {
  template <typename T, typename A>
  inline T operator()(const T a, const A params) {
    return params.slope * a;
  }
  template <typename A>
  inline bool operator()(const bool a, const A params) {
    return params.slope && a;
  }
};
""",
    )
