"""Calls without tensors that may be left out, and programs that compute these too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import nan
from typing import Any

import torch

from aten_overlay.apple.mpsgraph.objects import Ref
from porter.core.dtypes import FLOAT, HALF
from porter.loops.program_printing import program_lines
from porter.recording.calls import OpCall
from porter.recording.left_out import ask_alone, drop_empty, leave_out_tensors, list_optional, vary_given
from porter.recording.programs import find_programs
from porter.recording.record import RecordedRun
from porter.recording.seen_values import SeenValues
from tests.porter.recording.graphs import GraphBuilder
from tests.porter.recording.test_programs import SHAPES, run_graph

NORM = torch.ops.aten.native_batch_norm.default
SLOPES = torch.ops.aten.native_layer_norm_backward.default


def describe(call: OpCall) -> str:
    given = ["-" if call.arguments[name] is None else name[0] for name in ("weight", "bias")]
    return "".join((*given, *("." if each is False else "x" for each in call.arguments.get("output_mask", ()))))


def test_each_tensor_and_each_pair_is_left_out() -> None:
    vector, rest = torch.rand(3), {"training": True, "momentum": 0.1, "eps": 1e-5}
    call = OpCall(NORM, {"input": torch.rand(2, 3), "weight": vector, "bias": vector, **rest})
    assert [describe(each) for each in vary_given(call)] == ["-b", "w-", "--"]
    assert list(vary_given(OpCall(NORM, {"input": torch.rand(2, 3), "weight": None, "bias": None, **rest}))) == []


def test_results_of_a_mask_are_left_out() -> None:
    call = OpCall(SLOPES, {"weight": torch.rand(3), "bias": None, "output_mask": [True, False, True]})
    assert sorted({describe(each) for each in vary_given(call)}) == [
        "--...", "--..x", "--x..", "--x.x", "w-...", "w-..x", "w-x..",
    ]  # fmt: skip


def test_tensors_of_no_elements_are_as_if_left_out() -> None:
    call = OpCall(NORM, {"input": torch.rand(2, 3), "weight": torch.rand(0), "bias": torch.rand(3)})
    assert [describe(each) for each in drop_empty(call)] == ["-b"]
    assert not list(drop_empty(next(drop_empty(call))))


def weigh(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
    """What is given, times its weight if it has one."""
    names = "self", "target"
    made = builder.send("additionWithPrimaryTensor:secondaryTensor", *(refs[name] for name in names))
    if "weight" in refs:
        made = builder.send("multiplicationWithPrimaryTensor:secondaryTensor", made, refs["weight"])
    return made


def run_weighted(shape: tuple[int, ...], weighted: bool, target: float = 1.0) -> RecordedRun:
    weight = torch.rand(shape) if weighted else None
    others = {"weight": weight, "pos_weight": None, "reduction": 0}
    arguments = {"self": torch.rand(shape), "target": target * torch.rand(shape), **others}
    return run_graph(torch.ops.aten.binary_cross_entropy_with_logits.default, arguments, weigh)


def test_calls_with_and_without_a_tensor_have_one_program() -> None:
    found = find_programs(
        "binary_cross_entropy", [run_weighted(shape, weighted) for shape in SHAPES for weighted in (True, False)]
    )
    assert not found.left
    [program] = found.cases
    assert not program.when and len(program.calls) == 2 * len(SHAPES)
    assert list(program_lines(program))[-1] == (
        "  output[i0] = (input[i0] + target[i0]) * (has_weight ? weight[i0] : 1)"
    )


def test_a_result_that_a_call_does_not_ask_for_keeps_its_place() -> None:
    ran = RecordedRun(OpCall(NORM, {}), {}, (), (torch.rand(1), torch.rand(2)), False, (0, 2))
    assert {i: len(each) for i, each in ran.made.items()} == {0: 1, 2: 2}


def test_a_flag_is_not_changed_where_tensors_are_missing_that_it_may_need() -> None:
    rest = {"input": torch.rand(2, 3), "weight": None, "bias": None, "momentum": 0.1, "eps": 1e-5}
    stats = {"running_mean": torch.zeros(3), "running_var": torch.ones(3)}
    vectors = {"weight": torch.rand(3), "bias": torch.rand(3)}
    given = [OpCall(NORM, {**rest, **vectors, **stats, "training": flag}) for flag in (True, False)]
    seen = SeenValues.of(given)
    assert seen.change(given[0]) == {"training": False}
    lacking = OpCall(NORM, {**rest, "running_mean": None, "running_var": None, "training": True})
    assert seen.change(lacking) == {}
    empty = {"running_mean": torch.zeros(0), "running_var": torch.ones(0)}
    assert seen.change(OpCall(NORM, {**rest, **vectors, **empty, "training": True})) == {}


WEIGHTED = [run_weighted(shape, True) for shape in SHAPES]


def run_without(call: OpCall) -> list[RecordedRun]:
    return [run_graph(call.overload, call.arguments, weigh)]


def test_calls_of_a_case_are_tried_without_what_all_give() -> None:
    [program] = find_programs("binary_cross_entropy", WEIGHTED, run=run_without).cases
    assert not program.required and len(program.calls) > len(WEIGHTED)
    assert "(has_weight ? weight[i0] : 1)" in list(program_lines(program))[-1]


def test_a_call_of_numbers_is_tried_rather_than_one_of_nan() -> None:
    """Of NaN alone, no number stands for the weight: any seems to."""
    calls = [run_weighted((9, 9), True, nan), *WEIGHTED]
    [program] = find_programs("binary_cross_entropy", calls, run=run_without).cases
    assert "(has_weight ? weight[i0] : 1)" in list(program_lines(program))[-1]


def test_calls_of_nan_without_a_tensor_join_the_case_that_is_found_to_compute_them() -> None:
    """Which number stands for the weight follows from no call of NaN, but from one that is tried of the other case."""
    calls = [*WEIGHTED, *(run_weighted(shape, False, nan) for shape in SHAPES)]
    [program] = find_programs("binary_cross_entropy", calls, run=run_without).cases
    assert not program.when and "(has_weight ? weight[i0] : 1)" in list(program_lines(program))[-1]


def test_a_tensor_without_which_calls_raise_is_required() -> None:
    [program] = find_programs("binary_cross_entropy", WEIGHTED, run=lambda call: []).cases
    assert program.required == ("weight",) and len(program.calls) == len(WEIGHTED)


def test_a_tensor_is_not_required_where_something_else_is_computed_without_it() -> None:
    def negate(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
        return builder.send("negativeWithTensor", refs["self"])

    def run(call: OpCall) -> list[RecordedRun]:
        return [run_graph(call.overload, call.arguments, negate)]

    [program] = find_programs("binary_cross_entropy", WEIGHTED, run=run).cases
    assert not program.required and len(program.calls) == len(WEIGHTED)


def test_a_call_is_made_for_each_result_alone() -> None:
    call = OpCall(SLOPES, {"weight": torch.rand(3), "bias": None, "output_mask": [True, False, True]})
    without = leave_out_tensors(call, list_optional(call))
    assert [describe(each) for each in ask_alone(without)] == ["--x..", "--.x.", "--..x"]
    assert not list(ask_alone(OpCall(NORM, {"weight": torch.rand(3), "bias": None})))


def test_a_tensor_that_calls_of_one_type_never_give_is_given_to_them_as_to_others() -> None:
    def half(ran: RecordedRun) -> RecordedRun:
        tensors = {name: value.half() for name, value in ran.call.tensors().items()}
        return run_graph(ran.call.overload, {**ran.call.arguments, **tensors}, weigh)

    def run(call: OpCall) -> Iterator[RecordedRun]:
        yield run_graph(call.overload, call.arguments, weigh)

    calls = [run_weighted(shape, False) for shape in SHAPES]
    calls += [half(run_weighted(shape, weighted)) for shape in SHAPES for weighted in (True, False)]
    found = find_programs("binary_cross_entropy", calls, run=run)
    weighted = {call.tensors["self"].dtype for call in found.calls if "weight" in call.tensors}
    assert weighted == {FLOAT, HALF}
    assert all("has_weight" in "".join(program_lines(each)) for each in found.cases)
