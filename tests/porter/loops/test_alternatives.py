"""Programs with other sizes for their numbers, where calls of another rank join."""

from __future__ import annotations

from dataclasses import replace

from porter.core.dtypes import FLOAT
from porter.loops.building import build_program, list_alternatives
from porter.loops.host_values import Arguments, TensorValue, describe
from tests.porter.loops.test_numbers import make_call

MADE = [make_call((rows, columns), 1) for rows, columns in ((3, 5), (2, 11), (4, 7), (5, 3), (6, 13), (7, 9))]
CALLS = [replace(each, arguments=Arguments(each.arguments.tensors, {})) for each in MADE]
FLAT = Arguments({"self": TensorValue((8,), FLOAT), "result0": TensorValue((), FLOAT)}, {})


def test_the_sizes_of_a_matrix_may_be_those_of_a_vector() -> None:
    program, values = build_program("mean", CALLS)
    assert "self.size(1)" in [describe(each) for each in values if each]
    found = [{describe(each) for each in made if each} for _, made in list_alternatives(program, values, CALLS, [FLAT])]
    assert found and all("self.size(1)" not in each for each in found)
    assert any("self.size(-1)" in each for each in found)


def test_no_choice_is_the_program_itself() -> None:
    program, values = build_program("mean", CALLS)
    own = [call.arguments for call in CALLS]
    assert all(list(made) != list(values) for _, made in list_alternatives(program, values, CALLS, own))
