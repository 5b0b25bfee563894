"""Values are simplified without a change of meaning, and printed as C++ that means the same."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from porter.loops.host_algebra import FALSE, TRUE, apply, is_never_negative, negate, select
from porter.loops.host_values import (
    Apply,
    Constant,
    HostValue,
    Listed,
    Method,
    Node,
    Rank,
    SameSizes,
    Scalar,
    Select,
    Size,
    Sizes,
)
from porter.metal.codegen.host_values import Printer

Values = Mapping[str, int]
X = "x"
FUNCTIONS: Mapping[str, Callable[..., int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "min": min, "max": max, "neg": operator.neg, "ceil_div": lambda a, b: -(-a // b),
}  # fmt: skip
COMPARISONS: Mapping[str, Callable[..., bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def evaluate(node: Node, values: Values) -> int:
    match node:
        case Constant(value):
            return int(value)
        case Scalar(name):
            return values[name]
        case Size(_, Constant(dim)):
            return values[f"size{dim}"]
        case Select(condition, yes, no):
            return evaluate(yes if evaluate(condition, values) else no, values)
        case Apply("not", (inner,)):
            return int(not evaluate(inner, values))
        case Apply("and", (condition, other)):
            return int(bool(evaluate(condition, values)) and bool(evaluate(other, values)))
        case Apply("or", (condition, other)):
            return int(bool(evaluate(condition, values)) or bool(evaluate(other, values)))
        case Apply(function, arguments):
            return int({**FUNCTIONS, **COMPARISONS}[function](*(evaluate(each, values) for each in arguments)))
    raise AssertionError(node)


def plain(function: str, *arguments: HostValue) -> HostValue:
    return Apply(function, arguments)


numbers = st.recursive(
    st.one_of(
        st.integers(-3, 40).map(Constant),
        st.sampled_from([Size(X, Constant(0)), Size(X, Constant(-1)), Scalar("n", type="int")]),
    ),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "//", "%", "min", "max"]), inner, inner).map(lambda t: plain(*t)),
        inner.map(lambda each: plain("neg", each)),
    ),
    max_leaves=8,
)
conditions = st.recursive(
    st.one_of(st.just(TRUE), st.just(FALSE), st.builds(plain, st.sampled_from([*COMPARISONS]), numbers, numbers)),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["and", "or"]), inner, inner).map(lambda t: plain(*t)),
        inner.map(lambda each: plain("not", each)),
    ),
    max_leaves=5,
)  # fmt: skip
values = st.fixed_dictionaries({"size0": st.integers(0, 50), "size-1": st.integers(0, 50), "n": st.integers(-9, 9)})


def rebuilt(node: HostValue) -> HostValue:
    return apply(node.function, *map(rebuilt, node.arguments)) if isinstance(node, Apply) else node


def known(node: Node, given_values: Values) -> int:
    try:
        return evaluate(node, given_values)
    except ZeroDivisionError:
        assume(False)
        raise


@given(numbers, values)
def test_a_number_keeps_its_value_when_it_is_simplified(number: HostValue, given_values: Values) -> None:
    expected = known(number, given_values)
    try:
        simplified = rebuilt(number)
    except ZeroDivisionError:
        assume(False)
        raise
    assert evaluate(simplified, given_values) == expected
    assert expected >= 0 or not is_never_negative(simplified)


@given(conditions, values)
def test_a_condition_and_its_negation_are_never_alike(condition: HostValue, given_values: Values) -> None:
    expected = known(condition, given_values)
    assert known(negate(condition), given_values) == 1 - expected


@given(conditions, conditions, st.tuples(numbers, numbers), values)
def test_a_choice_gives_what_was_chosen(
    first: HostValue, second: HostValue, ways: tuple[HostValue, HostValue], given_values: Values
) -> None:
    one, other = ways
    for yes, no in ((one, other), (select(second, one, other), other), (one, select(second, one, other))):
        expected = known(yes if known(first, given_values) else no, given_values)
        assert evaluate(select(first, yes, no), given_values) == expected


@given(conditions, conditions, conditions, values)
def test_a_choice_of_conditions_is_one(a: HostValue, b: HostValue, c: HostValue, given_values: Values) -> None:
    expected = known(b if known(a, given_values) else c, given_values)
    assert known(select(a, b, c), given_values) == expected


@given(numbers, values)
def test_what_is_printed_means_the_same(number: HostValue, given_values: Values) -> None:
    """Read as Python, for which C++'s division of numbers of 0 or more is `//`."""
    expected = known(number, given_values)
    text = Printer().print(number)
    for cpp, python in (
        ("std::min<int64_t>", "min"), ("std::max<int64_t>", "max"), ("c10::div_floor_integer<int64_t>", "floordiv"),
        (" / ", " // "),
    ):  # fmt: skip
        text = text.replace(cpp, python)
    for dim in (0, -1):
        text = text.replace(f"x.size({dim})", str(given_values[f"size{dim}"]))
    names = {"n": given_values["n"], "min": min, "max": max, "floordiv": operator.floordiv}
    assert eval(text, names) == expected


COLUMNS = Size(X, Constant(-1))
ROWS = Select(apply("==", Rank(X), Constant(2)), X, Method(X, "contiguous"))


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (apply("neg", apply("//", apply("neg", COLUMNS), Constant(4))), "at::ceil_div<int64_t>(x.size(-1), 4)"),
        (apply("/", Constant(1), apply("sqrt", COLUMNS)), "static_cast<double>(1) / std::sqrt(static_cast<double>(x.size(-1)))"),
        (apply("*", apply("+", COLUMNS, Constant(1)), COLUMNS), "(x.size(-1) + 1) * x.size(-1)"),
        (apply("-", COLUMNS, apply("-", COLUMNS, Constant(1))), "x.size(-1) - (x.size(-1) - 1)"),
        (Size(ROWS, Constant(0)), "(x.dim() == 2 ? x : x.contiguous()).size(0)"),
        (Sizes(X, 0, -1), "x.sizes().slice(0, x.dim() - 1)"),
        (Sizes(X, -2), "x.sizes().slice(x.dim() - 2)"),
        (Sizes(X, 1, 3), "x.sizes().slice(1, 2)"),
        (SameSizes(Sizes(X), Listed((COLUMNS, Constant(2)))), "x.sizes() == IntArrayRef({x.size(-1), 2})"),
        (Constant(math.inf), "std::numeric_limits<double>::infinity()"),
        (Constant(-2), "-2"),
        (plain("or", plain("and", TRUE, FALSE), TRUE), "(true && false) || true"),
    ],
)  # fmt: skip
def test_cpp(node: Node, text: str) -> None:
    assert Printer().print(node) == text


def test_names_are_declared_when_they_are_used_and_in_their_order() -> None:
    group = apply("min", COLUMNS, Constant(32))
    printer = Printer(held={COLUMNS: "columns", group: "group", ROWS: "rows", Constant(7): "unused"})
    assert printer.print(apply("*", Size(ROWS, Constant(0)), group)) == "rows.size(0) * group"
    assert printer.declarations == (
        "const Tensor rows = x.dim() == 2 ? x : x.contiguous();",
        "const int64_t columns = x.size(-1);",
        "const int64_t group = std::min<int64_t>(columns, 32);",
    )
