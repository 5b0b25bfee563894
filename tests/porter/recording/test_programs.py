"""Programs of calls whose graphs are built message by message, as host code would."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from aten_overlay.apple.mpsgraph.objects import Ref
from aten_overlay.apple.mpsgraph.recorder import GraphRun
from aten_overlay.apple.mpsgraph.types import MPS
from porter.core.dtypes import FLOAT, INT, DType
from porter.loops.host_values import Apply, Scalar, describe
from porter.loops.printing import program_lines
from porter.loops.program import Programs, SymbolicProgram, Temporary
from porter.recording import programs
from porter.recording.calls import OpCall
from porter.recording.programs import find_programs
from porter.recording.running import MORE_STEPS, Near, UnexplainedCalls
from porter.recording.runs import RecordedRun

from .graphs import GraphBuilder

Build = Callable[[GraphBuilder, dict[str, Ref], Mapping[str, Any]], Ref]
SHAPES = ((3, 5, 7), (2, 11, 3), (5, 4, 9), (4, 2, 3, 9), (5, 3, 2, 8), (6, 4, 13), (7, 9, 2), (2, 3, 4, 5))


def run_graph(overload: Any, arguments: Mapping[str, Any], build: Build) -> RecordedRun:
    """A call that runs one graph, which `build` makes from its tensors."""
    call = OpCall(overload, arguments)
    builder = GraphBuilder()
    refs = {name: builder.feed(tensor) for name, tensor in call.tensors().items()}
    made = builder.run(build(builder, refs, arguments))
    ((result, _),) = made.results.items()
    expected = call.run()
    feeds = {ref: call.tensors()[name].data_ptr() for name, ref in refs.items()}
    feeds |= {ref: -1 - ref.node for ref in made.feeds if ref not in feeds}
    run = GraphRun(made.graph, feeds, made.values, {result: expected.data_ptr()})
    return RecordedRun(
        call, {name: tensor.clone() for name, tensor in call.tensors().items()}, (run,), (expected,), False
    )


def mean(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
    """The mean over a dimension, scaled by a constant."""
    size = arguments["self"].shape[arguments["dim"][0]]
    total = builder.send("reductionSumWithTensor:axis", refs["self"], arguments["dim"][0])
    scale = builder.send("constantWithScalar:dataType", 1.0 / size, MPS[torch.float32])
    product = builder.send("multiplicationWithPrimaryTensor:secondaryTensor", total, scale)
    kept = [each for i, each in enumerate(arguments["self"].shape) if i != arguments["dim"][0]]
    return builder.send("reshapeTensor:withShape", product, kept)


def lines(program: SymbolicProgram) -> list[str]:
    return list(program_lines(program))


def call_mean(shape: tuple[int, ...], dim: int, build: Build = mean) -> RecordedRun:
    arguments = {"self": torch.rand(shape), "dim": [dim], "keepdim": False, "dtype": None}
    return run_graph(torch.ops.aten.mean.dim, arguments, build)


def total(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
    return builder.send("reductionSumWithTensor:axes", refs["self"], list(arguments["dim"]))


def call_total(shape: tuple[int, ...], dims: tuple[int, ...]) -> RecordedRun:
    arguments = {"self": torch.rand(shape), "dim": list(dims), "keepdim": False, "dtype": None}
    return run_graph(torch.ops.aten.sum.dim_IntList, arguments, total)


def test_calls_of_several_ranks_and_dimensions_have_one_program() -> None:
    calls = [call_mean(shape, dim) for shape in SHAPES for dim in range(len(shape))]
    found = find_programs("mean.dim", calls)
    assert not found.left
    [program] = found.cases
    assert not program.when and len(program.calls) == len(calls)
    assert lines(program) == [
        "outer_size = prod(self[:first(dim)])",
        "inner_size = prod(self[first(dim) + 1:])",
        "first_dim_size = self.size(first(dim))",
        "outer_stride = prod(self[first(dim):])",
        "inverse_first_dim_size = 1 / self.size(first(dim))",
        "reduction, for i0 < outer_size, i1 < inner_size:",
        "  sum0 = sum for r1_0 < first_dim_size of input[i0 * outer_stride + r1_0 * inner_size + i1]",
        "  output[i0 * inner_size + i1] = sum0 * inverse_first_dim_size",
    ]


def test_a_number_holds_in_calls_after_those_that_it_was_found_from() -> None:
    alone = [call_total((rows, columns), (1,)) for rows in range(2, 9) for columns in range(2, 9)]
    together = [call_total(shape, (1, 2)) for shape in SHAPES if len(shape) == 3]
    found = find_programs("sum.dim_IntList", [*alone, *together])
    assert len(alone) > 48 and not found.left
    [program] = found.cases
    assert "outer_stride = prod(self[first(dim):])" in lines(program)


def test_calls_of_one_element_say_nothing_of_a_case() -> None:
    def compute(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
        if not arguments["keepdim"]:
            return mean(builder, refs, arguments)
        axes = sorted(dim % arguments["self"].ndim for dim in arguments["dim"])
        return builder.send("reductionMaximumWithTensor:axes", refs["self"], axes)

    def made(shape: tuple[int, ...], keepdim: bool) -> RecordedRun:
        arguments = {"self": torch.rand(shape), "dim": [1], "keepdim": keepdim, "dtype": None}
        return run_graph(torch.ops.aten.mean.dim, arguments, compute)

    calls = [made(shape, keepdim) for keepdim in (False, True) for shape in SHAPES]
    found = find_programs("mean.dim", [*calls, made((1, 1), False), made((1, 1), True)])
    assert not found.left
    assert sorted(str(when) for program in found.cases for when in program.when) == ["!(keepdim)", "keepdim"]


def test_few_calls_have_no_program() -> None:
    found = find_programs("mean.dim", [call_mean(shape, 1) for shape in SHAPES[:4]])
    assert not found.cases and [error.code for error in found.left] == ["PTR364"]


def test_a_call_of_one_element_is_not_left() -> None:
    found = find_programs("mean.dim", [*(call_mean(shape, 1) for shape in SHAPES), call_mean((1, 1), 1)])
    assert len(found.cases) == 1 and not found.left


def scaled(builder: GraphBuilder, refs: dict[str, Ref], _: Mapping[str, Any]) -> Ref:
    return builder.send("multiplicationWithPrimaryTensor:secondaryTensor", refs["self"], refs["other"])


def test_calls_whose_first_tensor_alone_has_one_element_are_left() -> None:
    shapes = [(2, 3), (4, 5), (6, 7)]
    calls = [
        run_graph(torch.ops.aten.mul.Tensor, {"self": torch.rand(()), "other": torch.rand(shape)}, scaled)
        for shape in shapes
    ]
    found = find_programs("mul.Tensor", calls)
    assert not found.cases and [error.code for error in found.left] == ["PTR364"]


def test_calls_of_dimensions_that_no_program_computes_are_lost() -> None:
    def largest(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
        return builder.send("reductionMaximumWithTensor:axes", refs["self"], arguments["dim"])

    flat = [call_mean((size, 3), 1, largest) for size in (2, 4, 5)]
    lost = UnexplainedCalls()
    found = find_programs("mean.dim", [*(call_mean(shape, 1) for shape in SHAPES), *flat], lost=lost)
    assert len(found.cases) == 1 and not found.left
    [call] = lost.list_of("mean.dim")
    assert call.arguments.tensors["self"].shape == (2, 3)
    assert "mean.dim" in call.why


def test_a_program_that_differs_from_its_calls_is_refused() -> None:
    def shifted(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
        return builder.send(
            "additionWithPrimaryTensor:secondaryTensor", mean(builder, refs, arguments), constant(builder)
        )

    def constant(builder: GraphBuilder) -> Ref:
        return builder.send("constantWithScalar:dataType", 0.125, MPS[torch.float32])

    calls = [call_mean(shape, 1, shifted) for shape in SHAPES]
    found = find_programs("mean.dim", calls)
    assert [describe(number.value) for number in found.cases[0].numbers] and not found.left
    assert "+ 0.125" in lines(found.cases[0])[-1]


def test_a_number_of_the_elements_blocks_with_its_code() -> None:
    def scaled(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
        scale = builder.send("constantWithScalar:dataType", float(arguments["self"].sum()), MPS[torch.float32])
        return builder.send("multiplicationWithPrimaryTensor:secondaryTensor", mean(builder, refs, arguments), scale)

    found = find_programs("mean.dim", [call_mean(shape, 1, scaled) for shape in SHAPES])
    assert [error.code for error in found.left] == ["PTR363"] and not found.cases


def test_an_operand_that_is_no_argument_has_its_code() -> None:
    def turned(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
        other = builder.feed(arguments["self"].flip(0).clone())
        return mean(builder, {"self": other}, arguments)

    found = find_programs("mean.dim", [call_mean(shape, 1, turned) for shape in SHAPES])
    assert {error.code for error in found.left} == {"PTR365"}


def test_a_scalar_that_is_fed_is_a_number() -> None:
    def add(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
        fed = builder.feed(torch.tensor(arguments["other"]))
        return builder.send("additionWithPrimaryTensor:secondaryTensor", refs["self"], fed)

    calls = [
        run_graph(torch.ops.aten.add.Scalar, {"self": torch.rand(shape), "other": 0.3 + i / 7, "alpha": 1}, add)
        for i, shape in enumerate(SHAPES)
    ]
    [program] = find_programs("add.Scalar", calls).cases
    assert lines(program) == [
        "numel = self.numel()",
        "other = other",
        "map, for i0 < numel:",
        "  output[i0] = input[i0] + other",
    ]


def test_a_tensor_between_two_graphs_is_a_temporary_with_its_size() -> None:
    def chain(shape: tuple[int, ...]) -> RecordedRun:
        first = run_graph(
            torch.ops.aten.mean.dim, {"self": torch.rand(shape), "dim": [1], "keepdim": False, "dtype": None}, mean
        )
        between = torch.empty(first.results[0].shape)
        [run] = first.runs
        one = GraphRun(run.graph, run.feeds, run.values, {ref: between.data_ptr() for ref in run.results})
        builder = GraphBuilder()
        fed = builder.feed(first.results[0])
        two = builder.run(builder.send("identityWithTensor", builder.send("squareWithTensor", fed)))
        result = first.results[0].square()
        second = GraphRun(
            two.graph, {fed: between.data_ptr()}, two.values, {ref: result.data_ptr() for ref in two.results}
        )
        return RecordedRun(first.call, first.given, (one, second), (result, between), False)

    found: Programs = find_programs("mean.dim", [chain(shape) for shape in SHAPES])
    [program] = found.cases
    assert len(program.nests) == 2 and not any(isinstance(role, Temporary) for role in program.roles.values())


def test_few_calls_get_others_near_them() -> None:
    asked: list[RecordedRun] = []

    def more(ran: RecordedRun) -> list[RecordedRun]:
        asked.append(ran)
        return [call_mean(shape, 1) for shape in SHAPES]

    few = [call_mean(shape, 1) for shape in ((8, 9, 6), (6, 7, 8))]
    found = find_programs("mean.dim", few, more)
    assert asked[0] is few[0] and not found.left and len(found.cases[0].calls) >= 5


def test_calls_near_others_that_compute_something_else_are_not_of_the_case() -> None:
    def squared(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
        return builder.send("squareWithTensor", mean(builder, refs, arguments))

    few = [call_mean(SHAPES[0], 1)]
    found = find_programs("mean.dim", few, lambda _: [call_mean(shape, 1, squared) for shape in SHAPES])
    assert [error.code for error in found.left] == ["PTR364"]


def test_an_option_splits_calls_whose_numbers_differ_by_it() -> None:
    def scaled(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
        by = arguments["self"].numel() if arguments["keepdim"] else arguments["self"].shape[0]
        scale = builder.send("constantWithScalar:dataType", float(by), MPS[torch.float32])
        return builder.send("multiplicationWithPrimaryTensor:secondaryTensor", mean(builder, refs, arguments), scale)

    calls = []
    for keepdim in (False, True):
        for shape in SHAPES:
            arguments = {"self": torch.rand(shape), "dim": [1], "keepdim": keepdim, "dtype": None}
            calls.append(run_graph(torch.ops.aten.mean.dim, arguments, scaled))
    found = find_programs("mean.dim", calls)
    assert not found.left
    assert sorted(str(when) for program in found.cases for when in program.when) == ["!(keepdim)", "keepdim"]


def test_what_host_code_fills_is_a_number() -> None:
    def add(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
        fed = builder.feed(torch.full_like(arguments["self"], arguments["other"]))
        return builder.send("additionWithPrimaryTensor:secondaryTensor", refs["self"], fed)

    calls = [
        run_graph(torch.ops.aten.add.Scalar, {"self": torch.rand(shape), "other": 0.3 + i / 7, "alpha": 1}, add)
        for i, shape in enumerate(SHAPES)
    ]
    [program] = find_programs("add.Scalar", calls).cases
    assert lines(program)[-1] == "  output[i0] = input[i0] + other"


def test_a_table_that_rises_evenly_is_computed() -> None:
    def add(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
        fed = builder.send(
            "coordinateAlongAxis:withShape", len(arguments["self"].shape) - 1, list(arguments["self"].shape)
        )
        as_float = builder.send("castTensor:toType", fed, MPS[torch.float32])
        return builder.send("additionWithPrimaryTensor:secondaryTensor", refs["self"], as_float)

    calls = [run_graph(torch.ops.aten.square.default, {"self": torch.rand(shape)}, add) for shape in SHAPES]
    found = find_programs("square", calls)
    assert not found.left and len(found.cases) == 1


def test_a_bool_that_is_fed_as_a_byte_is_an_argument() -> None:
    def invert(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
        return builder.send("castTensor:toType", refs["self"], MPS[torch.bool])

    calls = []
    for shape in SHAPES:
        given = torch.rand(shape) > 0.5
        ran = run_graph(torch.ops.aten.positive.default, {"self": given.to(torch.int8)}, invert)
        held = RecordedRun(
            OpCall(ran.call.overload, {"self": given}), {"self": given}, ran.runs, (given.clone(),), False
        )
        run = ran.runs[0]
        feeds = {ref: given.data_ptr() for ref in run.feeds}
        made = {ref: held.results[0].data_ptr() for ref in run.results}
        calls.append(
            RecordedRun(held.call, held.given, (GraphRun(run.graph, feeds, run.values, made),), held.results, False)
        )
    [program] = find_programs("positive", calls).cases
    [store] = program.nests[0].nest.stores
    assert store.dtype.torch == "bool" and "bool(" in lines(program)[-1]


def test_a_result_is_cut_to_its_memory() -> None:
    def padded(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
        return builder.send("squareWithTensor", refs["self"])

    calls = []
    for shape in SHAPES:
        ran = run_graph(torch.ops.aten.square.default, {"self": torch.rand(shape)}, padded)
        (run,) = ran.runs
        cut = ran.results[0][:, :-1].clone()
        results = {ref: cut.data_ptr() for ref in run.results}
        calls.append(
            RecordedRun(ran.call, ran.given, (GraphRun(run.graph, run.feeds, run.values, results),), (cut,), False)
        )
    found = find_programs("square", calls)
    assert not found.left
    for program in found.cases:
        for call in program.calls:
            assert call.tensors["result0"].shape[1] == call.tensors["self"].shape[1] - 1


def test_equal_numbers_in_different_places_are_found_apart() -> None:
    def clamp(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
        ends = sorted((arguments["min"], arguments["max"]))
        low, high, first = (
            builder.send("constantWithScalar:dataType", each, MPS[torch.float32]) for each in (*ends, arguments["min"])
        )
        moved = builder.send("additionWithPrimaryTensor:secondaryTensor", refs["self"], first)
        return builder.send("clampWithTensor:minValueTensor:maxValueTensor", moved, low, high)

    calls = []
    for i, shape in enumerate((*SHAPES, *SHAPES)):
        arguments = {"self": torch.rand(shape), "min": 0.3 + i / 7, "max": 5.1 - i / 3}
        calls.append(run_graph(torch.ops.aten.clamp.default, arguments, clamp))
    found = find_programs("clamp", calls)
    assert len(found.cases) == 1 and not found.left
    least, greatest = (Apply(each, (Scalar("min"), Scalar("max"))) for each in ("min", "max"))
    assert {least, greatest, Scalar("min")} <= {each.value for each in found.cases[0].numbers}


@pytest.mark.parametrize(
    "view", [lambda x: x.transpose(0, 1), lambda x: x[:1].expand(4, *x.shape[1:])], ids=["turned", "expanded"]
)
def test_a_view_of_an_argument_is_the_argument(view: Callable[[torch.Tensor], torch.Tensor]) -> None:
    calls = []
    for shape in SHAPES:
        given = torch.rand((1, *shape[1:])) if view(torch.zeros(3, 2)).shape[0] == 4 else torch.rand(shape)
        builder = GraphBuilder()
        fed = builder.feed(view(given).contiguous())
        made = builder.run(builder.send("squareWithTensor", fed))
        result = view(given).square().contiguous()
        run = GraphRun(
            made.graph, {fed: given.data_ptr()}, made.values, {ref: result.data_ptr() for ref in made.results}
        )
        call = OpCall(torch.ops.aten.square.default, {"self": given})
        calls.append(RecordedRun(call, {"self": given.clone()}, (run,), (result,), False))
    found = find_programs("square", calls)
    assert not found.left
    assert all(len(program.roles) == 2 for program in found.cases)


def test_a_program_that_moves_elements_takes_calls_of_any_type() -> None:
    def band(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
        made = builder.send("bandPartWithTensor:numLower:numUpper", refs["self"], 0, -1)
        if arguments["self"].is_floating_point():
            return made
        one = builder.send("constantWithScalar:dataType", 1.0, MPS[torch.int64])
        return builder.send("multiplicationWithPrimaryTensor:secondaryTensor", made, one)

    def call(shape: tuple[int, ...], dtype: torch.dtype) -> RecordedRun:
        return run_graph(torch.ops.aten.triu.default, {"self": torch.ones(shape).to(dtype), "diagonal": 0}, band)

    calls = [call(shape, torch.float32) for shape in SHAPES]
    assert [each.code for each in find_programs("triu", [call(SHAPES[0], torch.int64)]).left] == ["PTR364"]
    found = find_programs("triu", [*calls, call(SHAPES[0], torch.int64)])
    assert not found.left
    [program] = found.cases
    assert [dtype.metal for dtype in program.dtypes] == ["float", "long"] and not program.when


@pytest.mark.parametrize(("as_sum", "count"), [(False, 1), (True, 2)], ids=["a maximum", "a sum, which is of no bools"])
def test_calls_of_bools_that_give_bools_join_the_program_that_computes_them(as_sum: bool, count: int) -> None:
    """MPSGraph gets bools as floats or integers."""
    name = "reductionSumWithTensor:axes" if as_sum else "reductionMaximumPropagateNaNWithTensor:axes"

    def compute(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
        given, axes = arguments["self"], list(arguments["dim"])
        if given.dtype is not torch.bool:
            return builder.send(name, refs["self"], axes)
        wide = builder.send("castTensor:toType", refs["self"], MPS[torch.int64 if as_sum else torch.float32])
        found = builder.send(name, wide, axes)
        return found if as_sum else builder.send("castTensor:toType", found, MPS[torch.bool])

    def call(shape: tuple[int, ...], dim: int, dtype: torch.dtype) -> RecordedRun:
        arguments = {"self": (torch.rand(shape) * 2).to(dtype), "dim": [dim], "keepdim": False}
        overload = torch.ops.aten.sum.dim_IntList if as_sum else torch.ops.aten.amax.default
        return run_graph(overload, {**arguments, "dtype": None} if as_sum else arguments, compute)

    calls = [call(shape, dim, dtype) for dtype in (torch.float32, torch.bool) for shape in SHAPES for dim in range(2)]
    found = find_programs("largest", calls)
    assert not found.left and len(found.cases) == count
    kinds = [tuple(dtype.metal for dtype in program.dtypes) for program in found.cases]
    assert kinds == ([("float", "bool")] if count == 1 else [("float",), ("bool",)])


def test_calls_that_another_program_computes_too_decide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all sizes but one are 1, a norm over what is before a dimension is one over what is behind it."""

    def case(computed: str, *calls: str, dtype: DType = FLOAT) -> Any:
        made = [SimpleNamespace(name=name, program=SimpleNamespace(dtype=dtype)) for name in calls]
        return SimpleNamespace(program=SimpleNamespace(dtypes=(dtype,), computed=computed), calls=made)

    def find_difference(program: Any, group: Any) -> str | None:
        return None if group[0].name in program.computed else "other values"

    monkeypatch.setattr(programs, "find_difference", find_difference)
    cases = [case("abc", "a", "b"), case("bcd", "c", "d"), case("abcd", "a", dtype=INT)]
    own: list[list[Any]] = [list(programs._list_own(one, cases)) for one in cases]
    assert [[each.name for each in calls] for calls in own] == [["a"], ["d"], ["a"]]


def test_each_overload_has_steps_of_its_own_for_more_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    now, left = [0], []

    def find(name: str, runs: object, more: Near, lost: UnexplainedCalls) -> Programs:
        left.append(more.until - now[0])
        now[0] += 100
        return Programs(name, ())

    calls = call_mean((3, 5, 7), 1), call_total((3, 5, 7), (1,))
    monkeypatch.setattr("porter.verdict.suite.dispatched.check_gradients", lambda: None)
    monkeypatch.setattr(programs, "spent", lambda: now[0])
    monkeypatch.setattr(programs, "run_calls", lambda *_: [(each, None) for each in calls])
    monkeypatch.setattr(programs, "_find_form_or_programs", find)
    programs.record_programs("mean")
    assert left == [MORE_STEPS, MORE_STEPS]
