"""Results of a graph that no operand gives."""

from __future__ import annotations

import torch

from aten_overlay.apple.mpsgraph.types import MPS
from porter.loops.fusion import fuse
from porter.loops.printing import name_buffers, nest_lines
from porter.recording.concrete import read_concrete_graph
from tests.porter.recording.graphs import GraphBuilder


def lines(builder: GraphBuilder, *results: object) -> list[str]:
    nests = fuse(read_concrete_graph(builder.run(*results)))  # type: ignore[arg-type]
    names = name_buffers(nests, {})
    return [line for nest in nests for line in nest_lines(nest, names)]


def test_a_constant_that_operations_make_is_computed_by_its_index() -> None:
    builder = GraphBuilder()
    ones = builder.send("constantWithScalar:shape:dataType", 1.0, [2, 3], MPS[torch.float32])
    band = builder.send("bandPartWithTensor:numLower:numUpper", ones, 0, 0)
    assert [line.strip() for line in lines(builder, band)] == [
        "map, for i0 < 2, i1 < 3:", "out0[i0 * 3 + i1] = (i0 == i1) ? 1 : 0",
    ]  # fmt: skip


def test_one_number_is_stored_too_by_the_kernel_of_another_result() -> None:
    builder = GraphBuilder()
    given = builder.feed(torch.rand(4))
    count = builder.send("constantWithScalar:shape:dataType", 4.0, [1], MPS[torch.float32])
    total = builder.send("reductionSumWithTensor:axes", given, None)
    found = [line.strip() for line in lines(builder, count, total)]
    assert found[0] == "reduction:" and "out0[0] = 4" in found and len([each for each in found if ":" in each]) == 1
