"""Programs for calls that leave tensors out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from porter.core.dtypes import FLOAT
from porter.core.errors import PorterError
from porter.loops.expressions import Op, intern
from porter.loops.host_values import Arguments, Constant, Given, Named, Size, SizeProduct, TensorValue
from porter.loops.optional import (
    allow_left_out,
    allow_unasked,
    drop_unread,
    find_flag_of,
    is_explained,
    join_flags,
    list_left_out,
    list_read,
    list_readers,
)
from porter.loops.printing import program_lines
from porter.loops.program import Temporary, instantiate
from tests.porter.plan.recorded import fork, left_out


def call(*names: str) -> Arguments:
    whole = left_out.whole().example
    return replace(whole, tensors={name: each for name, each in whole.tensors.items() if name not in names})


def test_what_is_read_has_a_number_and_what_is_written_a_guard() -> None:
    program = left_out.centered().cases[0]
    [nest] = program.nests
    assert [each.name for each in program.numbers] == ["width", "has_weight", "has_total", "has_output1"]
    assert [each.guard.name if each.guard else None for each in nest.nest.stores] == [None, "has_output1", "has_total"]
    assert "(has_weight ? weight[i0] : 1)" in "\n".join(program_lines(program))
    assert "  if has_output1: output1[i0] = sum0" in program_lines(program)


def test_a_call_without_tensors_runs_neither_their_stores_nor_their_loads() -> None:
    program = left_out.centered().cases[0]
    [nest] = instantiate([each.nest for each in program.nests], call("weight", "total"))
    assert [store.buffer for store in nest.stores] == [fork.OUTPUT, left_out.SUMS]
    assert left_out.WEIGHT not in nest.reads()
    [whole] = instantiate([each.nest for each in program.nests], call())
    assert left_out.WEIGHT in whole.reads() and len(whole.stores) == 3


def test_tensors_that_a_call_leaves_out() -> None:
    program = left_out.whole()
    assert list_left_out(program, call("weight", "result1")) == ["weight", "result1"]
    assert list_left_out(program, call("self")) is None  # the element type is its own
    assert list_left_out(program, call()) is None
    other = {**call("weight").tensors, "bias": TensorValue((6,), program.dtypes[0])}
    assert list_left_out(program, Arguments(other, {})) is None
    nest = replace(program.nests[0], rows=Size("weight", Constant(0)))
    assert list_left_out(replace(program, nests=(nest,)), call("weight")) is None  # the launch needs its size


def test_only_what_others_depend_on_is_read() -> None:
    program = left_out.whole()
    assert list_read(program, left_out.LEFT_OUT) == ["weight"]
    assert list_read(allow_left_out(program, ["weight"], {"weight": 0}), left_out.LEFT_OUT) == []


def test_a_number_stands_for_a_tensor_once_a_call_asks_for_what_is_computed_from_it() -> None:
    program = left_out.whole()
    assert list_readers(program, "weight") == {"result0"} and list_readers(program, "total") == set()
    assert list_readers(program, "self") == {"result0", "result1", "total"}
    assert not is_explained(program, "weight")
    assert not is_explained(replace(program, calls=(call("weight", "result0"),)), "weight")
    assert is_explained(replace(program, calls=(call("weight"),)), "weight")
    assert is_explained(replace(program, calls=(call("total"),)), "total"), "only its own elements are computed from it"


def test_elements_of_memory_between_kernels_are_computed_from_what_it_is_computed_from() -> None:
    program = left_out.whole()
    between = {**program.roles, fork.OUTPUT: Temporary(Constant(42), program.dtypes[0])}
    [symbolic] = program.nests
    first, sums, total = symbolic.nest.stores
    read = replace(sums, value=intern(Op.LOAD, (sums.place,), FLOAT, fork.OUTPUT))
    nest = replace(symbolic, nest=replace(symbolic.nest, stores=(first, read, total)))
    assert list_readers(replace(program, roles=between, nests=(nest,)), "weight") == {"result1"}


def test_another_number_may_stand_for_a_tensor_later() -> None:
    program = left_out.whole()
    twice = allow_left_out(allow_left_out(program, ["weight"], {"weight": 0}), ["weight"], {"weight": 1})
    assert list(program_lines(twice)) == list(program_lines(allow_left_out(program, ["weight"], {"weight": 1})))


def test_tensors_that_are_left_out_together_have_one_flag() -> None:
    program = left_out.centered().cases[0]
    calls = (call(), call("weight", "total"), call("result1"))
    joined = join_flags(replace(program, calls=calls))
    assert [each.name for each in joined.numbers] == ["width", "has_weight", "has_output1"]
    assert joined.nests[0].nest.stores[2].guard == find_flag_of(joined, "total") == find_flag_of(joined, "weight")
    assert join_flags(program) == program
    assert find_flag_of(joined, "self") is None


def test_memory_that_nothing_reads_is_not_written() -> None:
    program = left_out.whole()
    unread = replace(program, roles={**program.roles, left_out.SUMS: Temporary(Constant(6), program.dtypes[0])})
    kept = drop_unread(unread)
    assert [store.buffer for store in kept.nests[0].nest.stores] == [fork.OUTPUT, left_out.TOTAL]
    assert left_out.SUMS not in kept.roles
    assert drop_unread(program) == program


def test_a_flag_is_whether_a_call_has_the_tensor() -> None:
    flag = next(each for each in left_out.centered().cases[0].numbers if each.name == "has_weight")
    assert flag.value == Given("weight")


def test_a_result_that_every_recorded_call_asks_for_has_a_flag_of_its_own() -> None:
    program = allow_unasked(left_out.whole(), ["result0", "result1"], "mask")
    guards = [store.guard and store.guard.name for store in program.nests[0].nest.stores]
    assert guards == ["has_output", "has_output1", None]
    assert [find_flag_of(program, f"result{i}") for i in range(2)] == [
        each for each in program.numbers if isinstance(each.value, Given)
    ]
    assert [(tuple(each.tensors), each.others["mask"]) for each in program.calls[-2:]] == [
        (("self", "weight", "total", "result1"), (False, True)),
        (("self", "weight", "total", "result0"), (True, False)),
    ]


def test_a_result_that_is_always_there_or_that_some_calls_leave_out_stays() -> None:
    program = left_out.whole()
    assert allow_unasked(program, [], "mask") == program
    known = left_out.centered().cases[0]
    assert allow_unasked(known, ["result1"], "mask") == known


def test_rows_are_counted_by_an_argument_where_the_result_may_be_left_out() -> None:
    program = left_out.whole()
    nest = replace(program.nests[0], rows=SizeProduct("result0"))
    counted = allow_unasked(replace(program, nests=(nest,)), ["result0"], "mask")
    assert counted.nests[0].rows == SizeProduct("self")


def test_a_result_whose_sizes_kernels_take_is_refused() -> None:
    program = left_out.whole()
    number = Named("width", Size("result0", Constant(1)), 7)
    with pytest.raises(PorterError, match="all recorded calls of centered ask for result 0") as refused:
        allow_unasked(replace(program, numbers=(*program.numbers, number)), ["result0"], "mask")
    assert refused.value.code == "PTR361"
