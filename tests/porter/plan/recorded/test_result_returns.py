"""Host code that returns for one result goes on where others have still to be written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from porter.core.dtypes import FLOAT
from porter.loops.host_values import Arguments, TensorValue
from porter.loops.program import Programs
from porter.metal.codegen.host_values import Names
from porter.plan.recorded.returns import find_mask, keep_unwritten, may_lack
from tests.porter.plan.recorded.hosts import LAUNCH, read, write
from tests.porter.plan.recorded.left_out import centered

VARIABLES = {"self": "input", "mask": "mask", "result0": "slope", "result1": "weights", "result2": "biases"}
MASKED = Names(VARIABLES, {"self": "Tensor", "mask": "bool[3]"})
PLAIN = Names({"self": "input", "result0": "values", "result1": "places"}, {"self": "Tensor"})
DECLARED = "Tensor slope;\nTensor weights;\nTensor biases;\nif (mask[0]) {\n  slope = at::empty_like(input);\n}\n"
RETURNED = "return std::make_tuple(slope, weights, biases);"
NOTHING = "weights.numel() == 0 && biases.numel() == 0"


def programs(*shapes: tuple[int, ...], key: str = "self") -> Programs:
    """A program whose only call has results of some shapes."""
    [case, *_] = centered().cases
    results = {f"result{i}": TensorValue(shape, FLOAT) for i, shape in enumerate(shapes)}
    call = Arguments({"self": TensorValue((6, 7), FLOAT), **results}, {})
    return Programs("made up", (replace(case, key=key, calls=(call,), nests=()),))


def widen(body: str, names: Names = MASKED, *shapes: tuple[int, ...]) -> str:
    return write(keep_unwritten(read(body), names, programs(*(shapes or ((6, 7), (7,), (7,))))), body)


@pytest.mark.parametrize(
    "test",
    [
        "slope.numel() == 0",
        "!slope.defined()",
        "!mask[0]",
        "slope.sizes().empty()",
        "is_empty",
        "!asks_first",
    ],
)
def test_a_return_for_one_result_asks_the_others_too(test: str) -> None:
    flags = "const bool is_empty = slope.numel() == 0;\nconst bool asks_first = mask[0];\n"
    body = f"{DECLARED}{flags}if (TEST) {{\n  {RETURNED}\n}}\n{LAUNCH}\n{RETURNED}"
    widened = f"{test} && (({NOTHING}) || input.numel() == 0)"
    assert widen(body.replace("TEST", test)) == body.replace("TEST", widened)


def test_each_of_several_reasons_is_widened_alone() -> None:
    body = f"{DECLARED}if (TEST) {{\n  {RETURNED}\n}}\n{LAUNCH}"
    widened = f"input.numel() == 0 || (slope.numel() == 0 && (({NOTHING}) || input.numel() == 0))"
    assert widen(body.replace("TEST", "input.numel() == 0 || slope.numel() == 0")) == body.replace("TEST", widened)


def test_a_launch_under_a_condition_on_one_result_is_reached_for_the_others() -> None:
    body = f"{DECLARED}if (TEST) {{\n{LAUNCH}\n}}\n{RETURNED}"
    others = "weights.numel() > 0 || biases.numel() > 0"
    for test in ("slope.defined()", "mask[0]", "slope.numel() > 0"):
        assert widen(body.replace("TEST", test)) == body.replace("TEST", f"{test} || {others}")


def test_what_writes_the_others_is_for_a_result_that_is_there() -> None:
    body = f"{DECLARED}if (TEST) {{\n  weights.zero_();\n  biases.zero_();\n  {RETURNED}\n}}\n{LAUNCH}"
    demanded = "(slope.defined() && slope.numel() == 0)"
    assert widen(body.replace("TEST", "slope.numel() == 0")) == body.replace("TEST", demanded)


@pytest.mark.parametrize(
    "body",
    [
        f"if (input.numel() == 0) {{\n  {RETURNED}\n}}\n{LAUNCH}",  # no result is asked
        f"if ({'slope.numel() == 0 && ' + NOTHING}) {{\n  {RETURNED}\n}}\n{LAUNCH}",  # all are
        f"if (slope.numel() == 0) {{\n  return fill_others(slope, weights, biases);\n}}\n{LAUNCH}",  # what writes them
        f"if (slope.numel() == 0) {{\n  check(slope);\n}}\n{LAUNCH}",  # nothing is returned
        f"{LAUNCH}\nif (slope.numel() == 0) {{\n  {RETURNED}\n}}",  # all is written by then
        f"if (slope.numel() == 0) {{\n  return slope;\n}}\nTensor weights = at::empty({{7}});\n{LAUNCH}",  # not yet there
        f"if (mask[0]) {{\n{LAUNCH}\n}} else {{\n  biases.zero_();\n}}",  # it has a way of its own for the others
    ],
)
def test_other_statements_stay(body: str) -> None:
    assert widen(body) == body


def test_results_of_as_many_elements_are_one() -> None:
    body = f"if (values.numel() == 0) {{\n  return {{values, places}};\n}}\n{LAUNCH}"
    assert widen(body, PLAIN, (6, 1), (6,)) == body
    widened = "values.numel() == 0 && (places.numel() == 0 || input.numel() == 0)"
    assert widen(body, PLAIN, (6, 7), (6,)) == body.replace("values.numel() == 0", widened)


def test_without_a_tensor_that_all_cases_read_only_results_are_asked() -> None:
    body = f"if (values.numel() == 0) {{\n  return {{values, places}};\n}}\n{LAUNCH}"
    made = write(keep_unwritten(read(body), PLAIN, programs((6, 7), (6,), key="other")), body)
    assert made == body.replace("values.numel() == 0", "values.numel() == 0 && places.numel() == 0")


@pytest.mark.parametrize(
    ("types", "mask"),
    [
        ({"mask": "bool[3]"}, "mask"),
        ({"mask": "bool[2]"}, ""),
        ({"mask": "bool"}, ""),
        ({"mask": "bool[3]", "other": "bool[3]"}, ""),
    ],
)
def test_a_mask_has_a_flag_for_each_result(types: dict[str, str], mask: str) -> None:
    assert find_mask(Names(VARIABLES, types)) == mask


@pytest.mark.parametrize(
    ("declared", "lacks"),
    [
        ("Tensor slope;", True),
        ("Tensor slope = Tensor();", True),
        ("Tensor slope = mask[0] ? at::empty_like(input) : Tensor();", True),
        ("", True),  # a parameter
        ("Tensor slope = at::empty_like(input);", False),
        ("auto slope = at::zeros({7});", False),
    ],
)
def test_a_result_that_is_not_allocated_in_any_case_may_be_lacking(declared: str, lacks: Any) -> None:
    assert may_lack(declared, "slope") == lacks
