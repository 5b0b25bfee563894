"""Schemas and expressions of new operators, as they are read and written."""

from __future__ import annotations

import ast
import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from porter.core.errors import PorterError
from porter.plan.new_operator.elementwise import ExpressionWish, read_expression, read_operator
from porter.plan.new_operator.expression import (
    FUNCTIONS,
    derive,
    parse_expression,
    write_cpp,
    write_formula,
    write_python,
)
from porter.plan.new_operator.operator import parse_schema, write_arguments

SCHEMA = "my_op(Tensor self, Tensor other, int n=2, *, float alpha=1, bool up=True) -> Tensor"
NAMES = ("self", "other", "alpha")


def test_a_schema_is_written_as_it_was_read() -> None:
    schema = parse_schema(SCHEMA)
    assert str(schema) == SCHEMA
    assert [each.name for each in schema.tensors] == ["self", "other"]
    assert [each.cpp for each in schema.numbers] == ["int64_t", "double", "bool"]
    assert schema.file == "MyOp"
    out = "Tensor self, Tensor other, int n=2, *, float alpha=1, bool up=True, Tensor(a!) out"
    assert write_arguments(schema, out="Tensor(a!) out") == out


@pytest.mark.parametrize(
    ("schema", "code"),
    [
        ("my_op(self)", "PTR314"),
        ("my_op(Tensor self", "PTR314"),
        ("my_op(Tensor self, *, *, float a) -> Tensor", "PTR314"),
        ("My-op(Tensor self) -> Tensor", "PTR314"),
        ("my_op(Tensor self) -> (Tensor, Tensor)", "PTR315"),
        ("my_op(Tensor self, int[] dims) -> Tensor", "PTR315"),
        ("my_op(float a, Tensor self) -> Tensor", "PTR315"),
        ("my_op() -> Tensor", "PTR315"),
        ("my_op(Tensor a, Tensor b, Tensor c, Tensor d) -> Tensor", "PTR315"),
        ("my_op(Tensor self, Tensor self) -> Tensor", "PTR315"),
        ("my_op(Tensor self, Tensor out) -> Tensor", "PTR315"),
        ("my_op(Tensor input) -> Tensor", "PTR315"),
        ("my_op_(Tensor self) -> Tensor", "PTR367"),
        ("my_op(Tensor self, *, int a=" + "9" * 5000 + ") -> Tensor", "PTR399"),
        ("class(Tensor self) -> Tensor", "PTR367"),
        ("my_op(Tensor self, *, float lambda=1) -> Tensor", "PTR367"),
        ("my_op(Tensor self, *, float int=1) -> Tensor", "PTR367"),
        ("my_op(Tensor self, Tensor exp) -> Tensor", "PTR367"),
        ("my_op(Tensor self, *, float pi=1) -> Tensor", "PTR367"),
        ("my_op(Tensor self, *, float a=1e400) -> Tensor", "PTR399"),
        ("my_op(Tensor self, *, float a=one) -> Tensor", "PTR399"),
        ("my_op(Tensor self, *, bool up=1) -> Tensor", "PTR399"),
        ("my_op(Tensor self, *, int n=1.5) -> Tensor", "PTR399"),
        ("my_op(Tensor self, *, int n=9223372036854775808) -> Tensor", "PTR399"),
        ("my_op(Tensor self, float a=1, float b) -> Tensor", "PTR399"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(schema: str, code: str) -> None:
    with pytest.raises(PorterError) as raised:
        parse_schema(schema)
    assert raised.value.code == code


@pytest.mark.parametrize(
    ("expression", "code", "what"),
    [
        ("self +", "PTR316", "cannot be parsed"),
        ("self ** " * 500 + "self", "PTR316", "nests deeper"),
        ("-" * 300 + "self", "PTR316", "nests deeper"),
        ("self + " + "9" * 5000, "PTR316", "cannot be parsed"),
        ("self if other else 1", "PTR316", "cannot hold"),
        ("self[0]", "PTR316", "cannot hold self[0]"),
        ("exp(self, other)", "PTR316", "exp takes 1 arguments, not 2"),
        ("'a'", "PTR316", "cannot hold 'a'"),
        ("self * aplha", "PTR317", "uses aplha"),
        ("self.exp()", "PTR316", "cannot hold"),
        ("__import__('os')", "PTR317", "uses __import__"),
        ("gelu(self)", "PTR317", "uses gelu"),
        ("sign(self)", "PTR317", "uses sign"),
    ],
)
def test_an_expression_that_cannot_be_used_is_refused(expression: str, code: str, what: str) -> None:
    with pytest.raises(PorterError) as raised:
        parse_expression(expression, NAMES)
    assert raised.value.code == code
    assert what in raised.value.what


def test_a_tensor_that_the_expression_does_not_use_is_refused() -> None:
    with pytest.raises(PorterError, match="does not use other"):
        read_operator(ExpressionWish("my_op(Tensor self, Tensor other) -> Tensor", "self * 2"))


def expressions() -> st.SearchStrategy[str]:
    leaves = st.sampled_from(["self", "other", "alpha", "2", "0.5", "pi"])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner),
            st.builds("{} {} ({})".format, leaves, st.sampled_from("+-*"), inner),
            st.builds("{}({})".format, st.sampled_from(["exp", "tanh", "sin", "abs", "atan"]), inner),
            st.builds("-{}".format, leaves),
            st.builds("{} ** 2".format, leaves),
        ),
        max_leaves=5,
    )


PYTHON: dict[str, Any] = {name: getattr(math, name) for name in ("exp", "tanh", "sin", "atan")}


@given(expressions(), st.floats(-1.5, 1.5), st.floats(-1.5, 1.5))
def test_cpp_and_python_of_an_expression_compute_what_it_says(text: str, x: float, y: float) -> None:
    tree = parse_expression(text, NAMES)
    values = {"self": x, "other": y, "alpha": 0.75}
    expected = eval(text, {**PYTHON, "abs": abs, "pi": math.pi}, values)
    if not math.isfinite(expected) or abs(expected) > 1e6:
        return
    cpp = write_cpp(tree, "double", cast=False).replace("std::", "").replace("c10::pi<double>", "pi")
    assert eval(cpp, {**PYTHON, "abs": abs, "pow": pow, "pi": math.pi}, values) == pytest.approx(expected, rel=1e-12)
    tensors = {"self": torch.tensor(x, dtype=torch.double), "other": torch.tensor(y, dtype=torch.double), "alpha": 0.75}
    got = eval(write_python(tree, ("self", "other")), {"torch": torch, "math": math}, tensors)
    assert float(got) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "expression",
    ["self * exp(alpha)", "tanh(log1p(exp(alpha * self))) * other", "self / sqrt(1 + other ** 2)", "self ** 3 - other ** 2",
     "atan2(self, other)", "hypot(self, other) + erf(self)", "pow(self, other) * log2(other)", "exp2(self) / other",
     "self / (1 + abs(other))"],
)  # fmt: skip
def test_a_derivative_is_that_of_autograd(expression: str) -> None:
    tree = parse_expression(expression, NAMES)
    formulas = derive(tree, ("self", "other"), NAMES)
    assert formulas
    given_ = {name: torch.rand(5, dtype=torch.double).add_(0.5).requires_grad_() for name in ("self", "other")}
    names = {**given_, "alpha": 0.75}
    value = eval(write_python(tree, ("self", "other")), {"torch": torch, "math": math}, names)
    used = [given_[name] for name in formulas]
    expected = torch.autograd.grad(value.sum(), used)
    for formula, wanted in zip(formulas.values(), expected, strict=True):
        text = (
            formula.replace("std::", "math.")
            .replace("c10::pi<double>", "math.pi")
            .replace("at::scalar_tensor", "float")
        )
        text = text.replace("at::pow", "torch.pow")
        got = eval(text, {"torch": torch, "math": math, "grad": torch.ones(5, dtype=torch.double)}, names)
        torch.testing.assert_close(got.expand(5), wanted)


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"atan2", "hypot", "pow"}))
def test_a_function_has_the_derivative_of_autograd_or_none(name: str) -> None:
    formulas = derive(parse_expression(f"{name}(self)", NAMES), ("self",), NAMES)
    if formulas is None:
        assert name in ("lgamma", "ceil", "floor", "trunc")
        return
    low = 1.25 if name == "acosh" else 0.25
    x = torch.linspace(low, low + 0.5, 5, dtype=torch.double).requires_grad_()
    (expected,) = torch.autograd.grad(getattr(torch, name)(x).sum(), x)
    text = (
        formulas["self"].replace("std::", "math.").replace("c10::pi<double>", "math.pi").replace("at::pow", "torch.pow")
    )
    got = eval(text, {"torch": torch, "math": math, "grad": torch.ones(5, dtype=torch.double), "self": x})
    torch.testing.assert_close(got, expected)


def test_numbers_of_a_formula_are_not_divided_as_integers() -> None:
    assert write_formula(ast.parse("self ** (3 / 2)", mode="eval").body, ("self",)) == "self.pow(3.0 / 2.0)"


FUNCTOR = """struct my_op_functor {
  template <typename T, typename A>
  inline T operator()(const T x, const A alpha) {
    return static_cast<T>(precise::exp(float(x)) * float(alpha) + 1.5f);
  }
};
"""


def test_a_functor_of_one_return_is_an_expression() -> None:
    schema = parse_schema("my_op(Tensor self, float a=1) -> Tensor")
    text = read_expression(schema, FUNCTOR)
    assert ast.unparse(parse_expression(text, ("self", "a"))) == "exp(self) * a + 1.5"


@pytest.mark.parametrize(
    ("functor", "what"),
    [
        ("struct other_functor {};", "does not define struct my_op_functor"),
        (FUNCTOR.replace(", const A alpha", ""), "takes 1 values, and the schema has 2"),
        (FUNCTOR.replace("return", "T y = x; return"), "is more than `return`"),
        (FUNCTOR.replace("float(alpha)", "scale"), "is more than `return`"),
    ],
)
def test_a_functor_that_does_not_fit_is_refused(functor: str, what: str) -> None:
    with pytest.raises(PorterError) as raised:
        read_expression(parse_schema("my_op(Tensor self, float a=1) -> Tensor"), functor)
    assert raised.value.code == "PTR319"
    assert what in raised.value.what


@pytest.mark.parametrize("operation", ["self ** ", "self * ", "self + "])
def test_an_expression_as_deep_as_any_is_derived(operation: str) -> None:
    assert read_operator(ExpressionWish("my_op(Tensor self) -> Tensor", operation * 57 + "self"))
