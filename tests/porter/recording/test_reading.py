"""As many calls of a kind are read as may tell something new."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from aten_overlay.apple.mpsgraph.objects import Ref
from porter.core.errors import PorterError
from porter.recording.running import UnexplainedCalls, read_runs
from porter.recording.runs import RecordedRun

from .graphs import GraphBuilder
from .test_programs import mean, run_graph


def means(shapes: Sequence[tuple[int, ...]], dim: int) -> Iterator[RecordedRun]:
    for shape in shapes:
        yield run_graph(torch.ops.aten.mean.dim, {"self": torch.rand(shape), "dim": [dim]}, mean)


def count(found: tuple[list[Any], list[PorterError]]) -> int:
    return len(found[0])


SIZES = [(2 + i, 3 + i % 7) for i in range(60)]


def test_calls_that_differ_in_sizes_alone_are_read_until_they_tell_nothing_new() -> None:
    """Eight of their structure, which is not known before, and eight that follow them."""
    assert count(read_runs(means(SIZES, 0), UnexplainedCalls())) == 16


def test_each_kind_of_argument_has_calls_of_its_own() -> None:
    assert count(read_runs([*means(SIZES, 0), *means(SIZES, 1)], UnexplainedCalls())) in range(24, 33)
    ones = [(1, size) for size, _ in SIZES]
    assert count(read_runs([*means(SIZES, 0), *means(ones, 0)], UnexplainedCalls())) in range(24, 33)


def test_a_kind_with_a_rare_structure_is_read_on() -> None:
    def mean_or_twice(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
        """Another graph for one number of rows."""
        found = mean(builder, refs, arguments)
        if len(arguments["self"]) != 14:
            return found
        return builder.send("additionWithPrimaryTensor:secondaryTensor", found, found)

    runs = [
        run_graph(torch.ops.aten.mean.dim, {"self": torch.rand(shape), "dim": [0]}, mean_or_twice) for shape in SIZES
    ]
    found, _ = read_runs(runs, UnexplainedCalls())
    assert len({each.program.structure for each in found}) == 2
    assert len(found) == 13 + 8  # the thirteenth is rare, and what was counted starts again


def test_calls_without_a_program_tell_why_and_those_of_one_element_are_lost() -> None:
    """No graph writes the result that the call is said to have returned."""
    lost = UnexplainedCalls()
    runs = [replace(ran, results=(torch.rand(5),)) for ran in means([(3, 5), (1, 1)], 0)]
    found, left = read_runs(runs, lost)
    assert (found, [each.code for each in left]) == ([], ["PTR365"])
    assert len(lost.found["mean.dim"]) == 1
