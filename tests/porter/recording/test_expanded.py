"""Calls whose graphs expand their arguments first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from aten_overlay.apple.mpsgraph.objects import Ref
from porter.loops.printing import program_lines
from porter.recording.concrete import expand_arguments
from porter.recording.evaluation import check_program
from porter.recording.joining import observe
from porter.recording.programs import find_programs
from porter.recording.runs import RecordedRun

from .graphs import GraphBuilder
from .test_programs import run_graph

SIZES = ((4, 3, 5), (6, 2, 7), (3, 8, 2), (5, 9, 4), (2, 6, 11), (7, 4, 3))


def squares(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
    """An operand expanded to the other's shape, beside what reads it as it is."""
    wide = builder.send("broadcastTensor:toShape", refs["self"], list(arguments["other"].shape))
    twice = builder.send("multiplicationWithPrimaryTensor:secondaryTensor", wide, refs["self"])
    return builder.send("multiplicationWithPrimaryTensor:secondaryTensor", twice, refs["other"])


def run_mul(build: Any, own: tuple[int, ...] = (1, 3)) -> RecordedRun:
    return run_graph(torch.ops.aten.mul.Tensor, {"self": torch.rand(own), "other": torch.rand(4, 3)}, build)


def test_a_program_computes_calls_that_expand_an_argument() -> None:
    def build(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
        wide = builder.send("broadcastTensor:toShape", refs["self"], list(arguments["other"].shape))
        return builder.send("multiplicationWithPrimaryTensor:secondaryTensor", wide, refs["other"])

    def run(own: tuple[int, ...], other: tuple[int, ...]) -> RecordedRun:
        return run_graph(torch.ops.aten.mul.Tensor, {"self": torch.rand(own), "other": torch.rand(other)}, build)

    found = find_programs("mul.Tensor", [run(size[:2], size[:2]) for size in SIZES])
    [program] = found.cases
    assert all(call.tensors["self"].own == call.tensors["self"].shape for call in program.calls)
    assert all(call.tensors["other"].own is None for call in program.calls)
    smaller = run((1, 5), (4, 5))
    observed = observe(smaller)
    assert observed.ran.before is smaller and observed.ran.own_shapes == {"self": (1, 5)}
    assert observed.program.arguments.tensors["self"].shape == (4, 5)
    assert not check_program(program, observed.ran)
    assert check_program(program, smaller)  # by its own sizes it would read beyond the argument
    assert list(program_lines(program))[-1] == "  output[i0] = input[i0] * other[i0]"


def test_an_argument_that_is_read_as_it_is_too_stays() -> None:
    run = run_mul(squares)
    assert expand_arguments(run) is run


def test_a_shape_that_is_not_the_results_stays() -> None:
    def build(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
        wide = builder.send("broadcastTensor:toShape", refs["self"], [9, 3])
        part = builder.send("sliceTensor:starts:ends:strides", wide, [0, 0], [4, 3], [1, 1])
        return builder.send("multiplicationWithPrimaryTensor:secondaryTensor", part, refs["other"])

    run = run_mul(build)
    assert expand_arguments(run) is run
