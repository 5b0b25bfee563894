"""Calls without tensors that may be left out, and programs that compute these too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import nan
from typing import Any

import pytest
import torch

from aten_overlay.apple.mpsgraph.objects import Ref
from aten_overlay.apple.mpsgraph.recorder import GraphRun
from porter.core.dtypes import FLOAT, HALF
from porter.loops.optional import is_explained
from porter.loops.printing import program_lines
from porter.recording.calls import OpCall
from porter.recording.programs import find_programs
from porter.recording.runs import RecordedRun
from porter.recording.varied_calls import (
    ObservedValues,
    ask_alone,
    drop_empty,
    list_optional,
    vary_given,
)
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
    seen = ObservedValues.of(given)
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
    without = call.with_arguments(dict.fromkeys(list_optional(call)))
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


def asks_for_nothing(ran: RecordedRun) -> RecordedRun:
    """The same call of a host function that runs its graph also where a mask asks for no result."""
    return replace(ran, results=(), places=())


def test_a_call_that_asks_for_no_result_tells_nothing() -> None:
    """layer_norm_backward of 2026 runs its graph for such a mask too: Normalization.mm."""
    nothing = [asks_for_nothing(each) for each in WEIGHTED]
    found = find_programs("binary_cross_entropy", [*nothing, *WEIGHTED], run=run_without)
    assert not found.left
    [program] = found.cases
    assert all("result0" in call.tensors for call in program.calls)
    assert "(has_weight ? weight[i0] : 1)" in list(program_lines(program))[-1]


def test_a_call_whose_only_result_needs_a_tensor_that_is_left_out_tells_nothing() -> None:
    def run(call: OpCall) -> Iterator[RecordedRun]:
        yield from map(asks_for_nothing, run_without(call))

    [program] = find_programs("binary_cross_entropy", WEIGHTED, run=run).cases
    assert all("result0" in call.tensors for call in program.calls)


def run_norm(call: OpCall) -> Iterator[RecordedRun]:
    """A made-up backward pass: one gradient is computed of the running variance and the weight, one of neither.

    It raises where the first is asked for and there is no running variance, and runs its graph for any mask.
    """
    tensors, asked = call.tensors(), call.arguments["output_mask"]
    if asked[0] and "running_var" not in tensors:
        return
    builder = GraphBuilder()
    refs = {name: builder.feed(tensor) for name, tensor in tensors.items()}
    made = {}
    if asked[0]:
        product = builder.send("multiplicationWithPrimaryTensor:secondaryTensor", refs["grad_out"], refs["running_var"])
        if "weight" in refs:
            product = builder.send("multiplicationWithPrimaryTensor:secondaryTensor", product, refs["weight"])
        made[product] = torch.empty(tensors["grad_out"].shape)
    if asked[2]:
        total = builder.send("reductionSumWithTensor:axis", refs["grad_out"], 0)
        flat = builder.send("reshapeTensor:withShape", total, [tensors["grad_out"].shape[1]])
        made[flat] = torch.empty(tensors["grad_out"].shape[1])
    ran = builder.run(*made)
    feeds = {ref: tensors[name].data_ptr() for name, ref in refs.items()}
    run = GraphRun(ran.graph, feeds, ran.values, {ref: result.data_ptr() for ref, result in made.items()})
    places = tuple(i for i in (0, 2) if asked[i])
    copies = {name: tensor.clone() for name, tensor in tensors.items()}
    yield RecordedRun(call, copies, (run,) if made else (), tuple(made.values()), False, places)


def call_norm(shape: tuple[int, int], asked: tuple[bool, bool, bool], *left_out: str) -> OpCall:
    tensors = {"grad_out": shape, "input": shape, "weight": shape[1:], "running_var": shape[1:]}
    given = {name: None if name in left_out else 0.5 + torch.rand(each) for name, each in tensors.items()}
    rest = dict.fromkeys(("running_mean", "save_mean", "save_invstd"))
    return OpCall(GRADIENTS, {**given, **rest, "train": False, "eps": 1e-5, "output_mask": list(asked)})


GRADIENTS = torch.ops.aten.native_batch_norm_backward.default
MATRICES = ((2, 3), (4, 5), (6, 7), (3, 8), (5, 9), (7, 4))
ALL, FIRST, LAST = (True, False, True), (True, False, False), (False, False, True)


@pytest.mark.parametrize("first", [ALL, LAST])
def test_a_tensor_that_a_result_does_not_need_is_required_for_those_that_do(first: tuple[bool, bool, bool]) -> None:
    masks = (first, *(each for each in (ALL, FIRST, LAST) if each is not first))
    left_out = ((), ("weight",), ("running_var",), ("weight", "running_var"))
    calls = [call_norm(shape, mask, *names) for mask in masks for names in left_out for shape in MATRICES]
    found = find_programs("norm_backward", [ran for each in calls for ran in run_norm(each)], run=run_norm)
    assert not found.left
    [program] = found.cases
    assert not program.when and program.required == ("running_var",)
    text = "\n".join(program_lines(program))
    assert re.search(r"if has_output: .*\(has_weight \? weight\[\w+\] : 1\)", text), text
    assert is_explained(program, "weight") and not is_explained(program, "running_var")
    assert any("running_var" not in each.tensors for each in program.calls)
