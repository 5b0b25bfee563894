import pytest

from porter.core.errors import PorterError
from porter.core.layout import COMMON_MPS, TEST_MPS
from porter.verdict.suite import lists
from porter.verdict.suite.context import Context
from porter.verdict.suite.runner import matcher

NEW = """\
import unittest
import torch
from .common_utils import MACOS_VERSION
from .opinfo.core import DecorateInfo

if torch.backends.mps.is_available():
    def mps_ops_modifier(ops):
        return [MACOS_VERSION > 15, *ops]
else:
    def mps_ops_modifier(ops):
        return ops
"""
OLD = """\
import something_that_is_not_here

def mps_ops_modifier(ops):
    # a comment
    if not torch.backends.mps.is_macos13_or_newer(3):
        raise ValueError
    XFAILLIST = {'atan2': [torch.int64]}

    yield from [XFAILLIST, product_version > 15, *ops]

class TestMPS(Nothing):
    FP16_LOW_PRECISION_LIST = {
        'add', 'sub',  # both
    }
"""


def test_the_new_file_runs_as_on_a_new_mac() -> None:
    assert lists.modifiers(COMMON_MPS, NEW)["mps_ops_modifier"](["op"]) == [True, "op"]


def test_the_functions_of_the_old_file_run_alone() -> None:
    found = lists.modifiers(TEST_MPS, OLD)
    listed, new, op = found["mps_ops_modifier"](["op"])
    assert (list(listed), new, op) == (["atan2"], True, "op")
    assert list(found["mps_ops_error_inputs_modifier"](["op"])) == ["op"]


def test_a_list_that_does_not_run_is_refused_at_its_line() -> None:
    with pytest.raises(PorterError) as refused:
        lists.modifiers(COMMON_MPS, "import unittest\n\nX = {\n    1: torhc.int64,\n}\n")
    assert refused.value.code == "PTR163"
    assert str(refused.value.place) == f"{COMMON_MPS}:4"


def test_the_low_precision_lists_are_read() -> None:
    assert lists.low_precision(OLD) == {"FP16": frozenset({"add", "sub"})}


def test_a_host_name_belongs_to_the_longest_functor() -> None:
    context = Context(kernels=("div",), functors=("div", "div_floor"))
    assert context.count_ported({"div_dense_float_float": 2, "div_floor_dense_float_float": 3, "divide_dense": 1}) == 2


@pytest.mark.parametrize(
    ("expression", "name", "selected"),
    [
        (None, "A.test_output_match_atan2_mps_int8", True),
        ("test_output_match_atan2", "A.test_output_match_atan2_mps_int8", True),
        ("match and not (int8 or int16)", "A.test_output_match_atan2_mps_int8", False),
        ("match and not (int8 or int16)", "A.test_output_match_atan2_mps_int32", True),
        ("consistency", "TestConsistencyMPS.test_x", True),
    ],
)
def test_the_expression_selects_as_pytest_does(expression: str | None, name: str, selected: bool) -> None:
    assert matcher(expression)(name) is selected


def test_an_invalid_expression_is_refused() -> None:
    with pytest.raises(ValueError, match="and or"):
        matcher("a and or b")


def test_gradients_follow_the_forward_list() -> None:
    text = OLD.replace("class", "def mps_ops_grad_modifier(ops):\n    return [len(ops), *ops]\n\nclass")
    found = lists.modifiers(TEST_MPS, text)
    assert found["mps_ops_modifier"](["op"])[1:] == [True, "op"]
    assert found["mps_ops_grad_modifier"](["op"])[0] == 3
    assert found["mps_ops_grad_modifier"](["op"])[2:] == [True, "op"]


def test_overloads_without_a_row_are_beside_those_under_test() -> None:
    ran = {"aten::max.unary_out": 2, "aten::max.dim_max": 3, "aten::maximum": 4}
    assert Context(bases=("max",), rows=("max", "max.dim_max")).count_beside(ran) == 2
    assert Context(bases=("max",)).count_beside(ran) == 0
