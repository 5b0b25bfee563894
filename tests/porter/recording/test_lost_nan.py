"""Numbers that a graph makes of NaN, where the CPU keeps it and where it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import torch

from aten_overlay.apple.mpsgraph.objects import Ref
from aten_overlay.apple.mpsgraph.types import MPS
from porter.loops.printing import program_lines
from porter.recording.programs import find_programs

from .graphs import GraphBuilder
from .test_programs import SHAPES, run_graph

SELECT = "selectWithPredicateTensor:truePredicateTensor:falsePredicateTensor"


@pytest.fixture
def library() -> Iterator[torch.library.Library]:
    """Operators that are made up, and none that stays."""
    with torch.library._scoped_library("made_up_counts", "DEF") as counts:
        counts.define("count(Tensor self, int[1] dim) -> Tensor")
        yield counts


def keep(x: torch.Tensor, dim: list[int]) -> torch.Tensor:
    return x.abs().ceil().clamp(max=1).sum(dim)


def count(x: torch.Tensor, dim: list[int]) -> torch.Tensor:
    return (x != 0).to(x.dtype).sum(dim)


def select(builder: GraphBuilder, x: Ref, one: Ref, zero: Ref) -> Ref:
    return builder.send(SELECT, x, one, zero)


def compare(builder: GraphBuilder, x: Ref, _one: Ref, zero: Ref) -> Ref:
    differs = builder.send("notEqualWithPrimaryTensor:secondaryTensor", x, zero)
    return builder.send("castTensor:toType", differs, MPS[torch.float32])


@pytest.mark.parametrize("write", [select, compare])
@pytest.mark.parametrize(("computes", "keeps"), [(keep, True), (count, False)])
def test_a_count_keeps_nan_where_the_cpu_does(
    library: torch.library.Library,
    computes: Callable[..., torch.Tensor],
    keeps: bool,
    write: Callable[..., Ref],
) -> None:
    library.impl("count", computes, "CPU")

    def build(builder: GraphBuilder, refs: dict[str, Ref], arguments: Mapping[str, Any]) -> Ref:
        one, zero = (builder.send("constantWithScalar:dataType", n, MPS[torch.float32]) for n in (1.0, 0.0))
        counted = builder.send("reductionSumWithTensor:axes", write(builder, refs["self"], one, zero), [1])
        kept = [size for dim, size in enumerate(arguments["self"].shape) if dim != 1]
        return builder.send("reshapeTensor:withShape", counted, kept)

    op = torch.ops.made_up_counts.count.default
    calls = [run_graph(op, {"self": torch.rand(shape).round(), "dim": [1]}, build) for shape in SHAPES]
    programs = find_programs("made_up_counts::count", calls)
    assert not programs.left
    [program] = programs.cases
    assert any("isNaN" in line for line in program_lines(program)) is keeps
