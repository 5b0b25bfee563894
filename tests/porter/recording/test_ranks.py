"""Calls of a case with the dimensions of other cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from aten_overlay.apple.mpsgraph.objects import Ref
from porter.loops.program import Programs
from porter.recording.calls import OpCall
from porter.recording.programs import find_programs
from porter.recording.runs import RecordedRun

from .graphs import GraphBuilder
from .test_programs import run_graph

CUBES = ((3, 5, 7), (2, 11, 3), (5, 4, 9), (6, 4, 13), (7, 9, 2), (4, 3, 8))
SQUARES = ((3, 5), (2, 11), (5, 4), (6, 13), (7, 9), (4, 8))


def reduce_last(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
    """The sum of rows, or the largest element of each."""
    kind = "Maximum" if arguments["keepdim"] else "Sum"
    return builder.send(f"reduction{kind}WithTensor:axis", refs["self"], arguments["self"].ndim - 1)


def call(shape: tuple[int, ...], keepdim: bool) -> RecordedRun:
    arguments = {"self": torch.rand(shape), "dim": [-1], "keepdim": keepdim, "dtype": None}
    return run_graph(torch.ops.aten.sum.dim_IntList, arguments, reduce_last)


def run(made: OpCall) -> Iterator[RecordedRun]:
    yield run_graph(made.overload, made.arguments, reduce_last)


def list_ranks(programs: Programs) -> dict[bool, set[int]]:
    """The dimensions of the tensors of each case's calls."""
    found: dict[bool, set[int]] = {}
    for each in programs.calls:
        found.setdefault(bool(each.others["keepdim"]), set()).add(len(each.tensors["self"].shape))
    return found


def test_a_case_gets_calls_of_the_dimensions_that_others_have() -> None:
    calls = [*(call(shape, False) for shape in (*CUBES, *SQUARES)), *(call(shape, True) for shape in CUBES)]
    assert list_ranks(find_programs("sum.dim_IntList", calls)) == {False: {2, 3}, True: {3}}
    found = find_programs("sum.dim_IntList", calls, run=run)
    assert list_ranks(found) == {False: {2, 3}, True: {2, 3}}
    assert len(found.cases) == 2


def test_calls_that_the_case_does_not_compute_are_not_of_it() -> None:
    def run_others(made: OpCall) -> Iterator[RecordedRun]:
        yield run_graph(made.overload, {**made.arguments, "keepdim": False}, reduce_last)

    calls = [*(call(shape, False) for shape in (*CUBES, *SQUARES)), *(call(shape, True) for shape in CUBES)]
    assert list_ranks(find_programs("sum.dim_IntList", calls, run=run_others)) == {False: {2, 3}, True: {3}}
