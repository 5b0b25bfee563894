"""Groups of calls are told apart by the fewest conditions on their arguments."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from porter.mpsgraph.conditions import UNKNOWN
from porter.mpsgraph.graph import Value
from porter.recording.cases import find_distinguishing_conditions

Calls = list[dict[str, Value]]


def text(group: Calls, others: Calls) -> str:
    return " and ".join(map(str, find_distinguishing_conditions(group, others)))


def test_a_special_value() -> None:
    ones: Calls = [{"alpha": 1.0, "x": 5}, {"alpha": 1.0, "x": 6}]
    rest: Calls = [{"alpha": 0.5, "x": 5}, {"alpha": 2.0, "x": 7}, {"alpha": -1.0, "x": 6}]
    assert text(ones, rest) == "alpha == 1.0"
    assert text(rest, ones) == "!(alpha == 1.0)"


def test_an_optional_argument_and_a_word() -> None:
    trunc: Calls = [{"mode": "trunc"}]
    floor: Calls = [{"mode": "floor"}]
    none: Calls = [{"mode": None}]
    assert text(none, [*trunc, *floor]) == "!(mode.has_value())"
    assert text(trunc, [*none, *floor]) == 'mode == "trunc"'


def test_tensor_facts_are_not_options() -> None:
    """A number has no size to ask for."""
    some: Calls = [{"self.dim()": 1, "self.size(-1)": 5}, {"self.dim()": 2, "self.size(-1)": 3}]
    none: Calls = [{"self.dim()": 0}]
    assert text(some, none) == "!(self.dim() == 0)"


def test_the_simplest_threshold_is_chosen() -> None:
    group: Calls = [{"h": 2.0, "w": 0.5}, {"h": 1.0, "w": 0.7}]
    without: Calls = [{"h": None, "w": w} for w in (0.3, 0.3, 0.3, 0.9)]
    others: Calls = [*without, {"h": 1.0, "w": 0.0}, {"h": 1.0, "w": -0.8}]
    assert text(group, others) == "w > 0.0 and h.has_value()"


def test_two_conditions() -> None:
    both: Calls = [{"a": True, "b": True}]
    others: Calls = [{"a": True, "b": False}, {"a": False, "b": True}]
    assert text(both, others) == "a and b"


def test_a_flag_comes_before_which_tensors_are_given() -> None:
    trained: Calls = [{"saved": True, "train": True}]
    rest: Calls = [{"saved": None, "train": False}]
    assert text(trained, rest) == "train"


def test_an_undecidable_condition_is_reported() -> None:
    assert find_distinguishing_conditions([{"a": 1}], [{"a": 1}]) == (UNKNOWN,)


calls = st.lists(
    st.fixed_dictionaries(
        {"a": st.sampled_from((0.0, 1.0, 2.0)), "b": st.booleans(), "c": st.none() | st.just("word")}
    ),
    min_size=1,
    max_size=6,
)


@given(calls, calls)
def test_conditions_hold_for_the_group_and_for_no_other(group: Calls, others: Calls) -> None:
    found = find_distinguishing_conditions(group, others)
    if found == (UNKNOWN,):
        assert not {each["b"] for each in group}.isdisjoint({each["b"] for each in others})
        return
    assert not any(each in others for each in group)

    assert all(each.is_met(call) for call in group for each in found)
    assert not any(all(each.is_met(call) for each in found) for call in others)
