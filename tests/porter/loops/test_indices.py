"""Index expressions: what simplifies keeps its value in every turn of the loops."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from porter.core.dtypes import BOOL
from porter.loops.expressions import FALSE, TRUE, Expr, Loop, Op, substitute, walk
from porter.loops.indices import (
    add,
    at_least,
    at_most,
    both,
    distance,
    divide,
    equal,
    flatten,
    integer,
    less,
    loop,
    modulo,
    multiply,
    rebuild_index,
    unflatten,
)  # fmt: skip
from tests.porter.loops.turns import compute

LOOPS = (Loop("i", 3), Loop("j", 4), Loop("k", 5))
VARIABLES = tuple(loop(each.name, each.size) for each in LOOPS)
TURNS = tuple(dict(zip(LOOPS, turn, strict=True)) for turn in product(*(range(each.size) for each in LOOPS)))
Plain = tuple[object, ...]  # an operation and its operands, before anything simplifies


def plain_indices() -> st.SearchStrategy[Plain]:
    small, positive = st.integers(-7, 7), st.integers(1, 13)
    leaves = st.one_of(
        st.sampled_from(range(len(LOOPS))).map(lambda i: ("loop", i)), small.map(lambda i: ("integer", i))
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(st.just("add"), inner, inner),
            st.tuples(st.sampled_from(("multiply", "at_least", "at_most")), inner, small),
            st.tuples(st.sampled_from(("divide", "modulo")), inner, positive),
            st.tuples(st.just("distance"), inner),
        ),
        max_leaves=8,
    )


BUILDERS: dict[object, Callable[..., Expr]] = {
    "add": add, "multiply": multiply, "at_least": at_least, "at_most": at_most, "divide": divide, "modulo": modulo,
    "distance": distance,
}  # fmt: skip
MEANINGS: dict[object, Callable[..., int]] = {
    "add": lambda a, b: a + b, "multiply": lambda a, b: a * b, "at_least": max, "at_most": min,
    "divide": lambda a, b: a // b, "modulo": lambda a, b: a % b, "distance": abs,
}  # fmt: skip


def build(plain: Plain) -> Expr:
    name, *rest = plain
    if name == "loop":
        return VARIABLES[rest[0]]  # type: ignore[call-overload,no-any-return]
    if name == "integer":
        return integer(rest[0])  # type: ignore[arg-type]
    return BUILDERS[name](*(build(each) if isinstance(each, tuple) else each for each in rest))


def value(plain: Plain, turn: dict[Loop, int]) -> int:
    name, *rest = plain
    if name == "loop":
        return turn[LOOPS[rest[0]]]  # type: ignore[call-overload]
    if name == "integer":
        return rest[0]  # type: ignore[return-value]
    return MEANINGS[name](*(value(each, turn) if isinstance(each, tuple) else each for each in rest))


@settings(max_examples=400, deadline=None)
@given(plain_indices())
def test_simplified_indices_keep_their_values_and_bounds(plain: Plain) -> None:
    made = build(plain)
    for turn in TURNS:
        expected = value(plain, turn)
        assert compute(made, turn) == expected
        assert made.bounds is not None
        assert made.bounds[0] <= expected <= made.bounds[1]


@settings(max_examples=200, deadline=None)
@given(plain_indices(), plain_indices())
def test_conditions_keep_their_truth(plain: Plain, other: Plain) -> None:
    one, two = build(plain), build(other)
    for turn in TURNS:
        assert compute(less(one, two), turn) == (value(plain, turn) < value(other, turn))
        assert compute(equal(one, two), turn) == (value(plain, turn) == value(other, turn))
        joined = both((less(one, two), equal(one, one)))
        assert compute(joined, turn) == (value(plain, turn) < value(other, turn))


@settings(max_examples=200, deadline=None)
@given(plain_indices(), plain_indices())
def test_equal_indices_built_twice_are_one_object(plain: Plain, other: Plain) -> None:
    assert add(build(plain), build(other)) is add(build(other), build(plain))


@settings(max_examples=100, deadline=None)
@given(plain_indices(), st.integers(0, 4))
def test_substitution_is_evaluation_at_another_turn(plain: Plain, turn: int) -> None:
    made = substitute(build(plain), {LOOPS[2]: integer(turn)}, rebuild_index)
    assert LOOPS[2] not in made.loops
    for each in TURNS:
        assert compute(made, each) == value(plain, {**each, LOOPS[2]: turn})


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_unflatten_undoes_flatten_without_any_division(shape: list[int]) -> None:
    indices = tuple(loop(f"i{d}", size) for d, size in enumerate(shape))
    assert unflatten(flatten(indices, shape), shape) == indices


def test_flatten_of_an_unflattened_index_is_the_index() -> None:
    flat = loop("flat", 60)
    assert flatten(unflatten(flat, (3, 4, 5)), (3, 4, 5)) is flat


def test_reshaping_the_same_elements_leaves_no_division() -> None:
    indices = (loop("i", 6), loop("j", 5))
    through = unflatten(flatten(indices, (6, 5)), (2, 3, 5))
    back = unflatten(flatten(through, (2, 3, 5)), (6, 5))
    assert back == indices
    assert not [each for index in back for each in walk(index) if each.op in (Op.QUOTIENT, Op.REMAINDER)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [(less(loop("i", 4), 4), TRUE), (less(loop("i", 4), 0), FALSE), (equal(loop("i", 4), -1), FALSE)],
)
def test_conditions_that_ranges_decide_are_constants(condition: Expr, expected: Expr) -> None:
    assert condition is expected
    assert condition.dtype is BOOL
