from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from porter.core.dtypes import FLOAT, HALF, LONG, DType
from porter.loops.fit import MIN_CALLS, Fit, is_close, list_fixed_sizes
from porter.loops.host_values import (
    Apply,
    Arguments,
    ArgumentValue,
    Constant,
    Element,
    HostValue,
    Length,
    Rank,
    Scalar,
    Size,
    SizeProduct,
    SizesOver,
    TensorValue,
    WrappedDim,
    describe,
    evaluate,
    round_number,
)  # fmt: skip

DIM = WrappedDim(Scalar("dim"), "self")
NORMALIZED = Apply("-", (Rank("self"), Length("normalized_shape")))


def make_calls(count: int, ranks: tuple[int, ...] = (3, 4), seed: int = 0) -> list[Arguments]:
    """Calls with different sizes, at least 2."""
    draw = random.Random(seed)
    made = []
    for i in range(count):
        rank = ranks[i % len(ranks)]
        shape = tuple(draw.sample(range(2, 14), rank))
        normalized = 1 + i % (rank - 1)
        others: dict[str, ArgumentValue] = {
            "dim": draw.randrange(-rank, rank),
            "normalized_shape": shape[rank - normalized :],
            "eps": draw.uniform(0.1, 0.9),
            "padding": tuple(draw.sample(range(1, 9), 2)),
        }
        made.append(Arguments({"self": TensorValue(shape, FLOAT)}, others))
    return made


ATOMS: tuple[HostValue, ...] = (
    Size("self", Constant(0)),
    Size("self", Constant(-1)),
    Size("self", DIM),
    SizeProduct("self"),
    SizeProduct("self", None, DIM),
    SizeProduct("self", Apply("+", (DIM, Constant(1)))),
    SizeProduct("self", None, NORMALIZED),
    SizeProduct("self", NORMALIZED),
    SizesOver("self", "dim", others=True),
    Element("padding", 0),
    Element("padding", -1),
)


def programs() -> st.SearchStrategy[HostValue]:
    """Values that host code computes: an atom, a product, a sum, with a constant."""
    atom = st.sampled_from(ATOMS)
    pair = st.builds(Apply, st.sampled_from(("+", "-", "*")), st.tuples(atom, atom))
    offset = st.builds(Apply, st.just("+"), st.tuples(st.one_of(atom, pair), st.integers(1, 2).map(Constant)))
    return st.one_of(atom, pair, offset, st.builds(Apply, st.just("/"), st.tuples(st.just(Constant(1)), atom)))


@settings(deadline=None, max_examples=60)
@given(programs(), st.integers(0, 1000))
def test_a_number_made_by_an_expression_is_foretold_in_other_calls(value: HostValue, seed: int) -> None:
    calls = make_calls(12, seed=seed)
    values = [evaluate(value, call) for call in calls]
    found = Fit(calls).find([each for each in values if each is not None])
    assert found is not None
    for call in make_calls(20, seed=seed + 1):
        expected = evaluate(value, call)
        assert expected is not None
        assert is_close(evaluate(found, call), expected), describe(found)


@pytest.mark.parametrize("atom", ATOMS, ids=describe)
def test_the_shortest_expression_is_found(atom: HostValue) -> None:
    calls = make_calls(16)
    values = [evaluate(atom, call) for call in calls]
    found = Fit(calls).find([each for each in values if each is not None])
    assert found is not None and describe(found) == {"padding[-1]": "padding[1]"}.get(describe(atom), describe(atom))
    assert [evaluate(found, call) for call in calls] == values


def test_a_number_that_is_only_alike_in_what_was_learned_is_refused() -> None:
    calls = make_calls(8, ranks=(3,))
    sizes = [call.tensors["self"].shape[1] for call in calls]
    assert Fit(calls).find(sizes) == Size("self", Constant(1))
    fit = Fit(calls)
    assert all(fit.find([*sizes[:i], sizes[i] + 17, *sizes[i + 1 :]]) is None for i in range(len(calls)))


def test_without_a_call_to_foretell_nothing_varies_by_an_expression() -> None:
    assert MIN_CALLS == 5
    calls = make_calls(MIN_CALLS, ranks=(3,))
    sizes = [call.tensors["self"].shape[0] for call in calls]
    assert Fit(calls).find(sizes) == Size("self", Constant(0))
    assert Fit(calls).find([*sizes[:2], 1000, *sizes[3:]]) is None


def test_numbers_of_single_precision_are_found() -> None:
    calls = make_calls(9)
    counts = [evaluate(SizeProduct("self"), call) for call in calls]
    found = Fit(calls).find([float(f"{1 / count:.8g}") for count in counts if count])
    assert found is not None and describe(found) == "1 / self.numel()"


def test_the_correction_of_a_variance_is_found_of_what_several_sizes_count() -> None:
    calls = make_calls(12, ranks=(3, 4))
    counts = [math.prod(call.tensors["self"].shape) // call.tensors["self"].shape[1] for call in calls]
    found = Fit(calls).find([float(f"{count / (count - 1):.7g}") for count in counts])
    assert found is not None
    assert "max(" in describe(found) and " - 1, 0)" in describe(found)
    for call in make_calls(9, seed=1, ranks=(4,)):
        count = math.prod(call.tensors["self"].shape) // call.tensors["self"].shape[1]
        made = evaluate(found, call)
        assert made is not None and is_close(made, count / (count - 1))


def test_sizes_that_no_call_varies_are_listed() -> None:
    calls = [Arguments({"self": TensorValue((i, 4), FLOAT)}, {"value": 0.5 * i, "groups": 3}) for i in range(2, 7)]
    assert [describe(each) for each in list_fixed_sizes(calls)] == ["self.size(1)", "self.size(-1)", "groups"]


def rest_without(taken: HostValue) -> HostValue:
    return Apply("max", (Apply("-", (SizeProduct("self"), taken)), Constant(0)))


def test_the_default_of_a_scalar_is_found() -> None:
    given = [1, None, 3, 5, None, 7]
    calls = [Arguments({"self": TensorValue((i + 8,), FLOAT)}, {"p": p}) for i, p in enumerate(given)]
    found = Fit(calls).find([1 / (2 if p is None else p) for p in given])
    assert found is not None and describe(found) == "1 / p.value_or(2)"


PADDING, KERNEL = Element("padding", 0), Element("padding", 1)
THREES: dict[str, HostValue] = {
    "a size and twice another": Apply("+", (Size("self", Constant(1)), Apply("*", (Constant(2), PADDING)))),
    "a product over a third": Apply("/", (Apply("*", (Size("self", Constant(0)), PADDING)), KERNEL)),
    "a correction": Apply("/", (SizeProduct("self"), rest_without(Scalar("eps")))),
    "a constant correction": Apply("/", (SizeProduct("self"), rest_without(Constant(1)))),
}


@pytest.mark.parametrize("value", THREES.values(), ids=THREES)
def test_a_value_of_three_is_found_and_foretells(value: HostValue) -> None:
    learned, tested = make_calls(12), make_calls(12, seed=1)
    numbers = [evaluate(value, call) for call in learned]
    found = Fit(learned).find([each for each in numbers if each is not None])
    assert found is not None
    for call in tested:
        expected = evaluate(value, call)
        assert expected is not None and is_close(evaluate(found, call), expected)


def test_the_step_between_scalars_is_found() -> None:
    draw = random.Random(0)
    calls = [
        Arguments(
            {"result0": TensorValue((steps,), FLOAT)}, {"start": a, "end": a + draw.uniform(1, 9), "steps": steps}
        )
        for steps in (3, 5, 4, 11, 7, 13, 2, 9)
        for a in [draw.uniform(-3, 3)]
    ]
    difference = Apply("-", (Scalar("end"), Scalar("start")))
    value = Apply("/", (difference, Apply("-", (Scalar("steps"), Constant(1)))))
    found = Fit(calls).find([each for call in calls if (each := evaluate(value, call)) is not None])
    assert found is not None
    assert all(is_close(evaluate(found, call), evaluate(value, call) or 0) for call in calls)


@pytest.mark.parametrize("dtype", [FLOAT, HALF, LONG])
def test_a_scalar_is_found_as_it_is_converted(dtype: DType) -> None:
    numbers = [(0.8226964774, -2.6), (-0.76, 5.3), (3.25, 1.7), (2.4, 9.9), (-4.1, 0.3), (6.5, -7.2)]
    calls = [Arguments({}, {"start": start, "end": end}) for start, end in numbers]
    fit = Fit(calls)
    values: list[HostValue] = [Scalar("end")]
    values += [Apply(each, (Scalar("start"), Scalar("end"))) for each in ("min", "max")]
    for value in values:
        column = [round_number(evaluate(value, call) or 0.0, dtype) for call in calls]
        assert fit.find_scalar(column, dtype) == value
    assert fit.find_scalar([start + end for start, end in numbers], dtype) is None
