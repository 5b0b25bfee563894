"""What fused kernels cost, counted by hand beside it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from expecttest import assert_expected_inline
from hypothesis import given
from hypothesis import strategies as st

from aten_overlay.apple.mpsgraph.objects import Ref
from porter.loops.coalesce import coalesce
from porter.loops.expressions import Buffer
from porter.loops.fusion import fuse
from porter.recording.concrete import read_concrete_graph
from porter.recording.cost import Cost, cost_lines, count_cost, count_graph_bytes
from tests.porter.recording.graphs import GraphBuilder


def count(builder: GraphBuilder, *results: Ref) -> tuple[Cost, Mapping[Buffer, str]]:
    graph = read_concrete_graph(builder.run(*results))
    nests = [coalesce(nest) for nest in fuse(graph)]
    sizes = {Buffer(feed.node, feed.output): graph.result(feed).size for feed in graph.feeds}
    return count_cost(nests, sizes), {buffer: f"in{i}" for i, buffer in enumerate(sorted(sizes, key=lambda b: b.node))}


def describe(builder: GraphBuilder, *results: Ref) -> str:
    return "\n".join(cost_lines(*count(builder, *results)))


def test_each_pass_over_a_row_reads_it_again() -> None:
    builder, x = GraphBuilder(), torch.randn(3, 4, 5).half()
    made = builder.send("softMaxWithTensor:axis", builder.feed(x), 1)
    assert_expected_inline(
        describe(builder, made),
        """\
row-wise: 15 rows, 180 turns, 360 bytes read, 120 written
480 bytes moved, 2.00 times the 240 of inputs and results
in0 is read in 3 passes of the row-wise kernel""",
    )


def test_elements_behind_a_condition_count_where_it_holds() -> None:
    builder, x = GraphBuilder(), torch.randn(9, 7)
    band = builder.send("bandPartWithTensor:numLower:numUpper", builder.feed(x), 0, 0)
    made = builder.send("reductionSumWithTensor:axes", band, [0, 1])
    cost, _ = count(builder, made)
    assert cost.kernels[0].turns == 9 * 7 + 1
    assert (cost.moved, cost.least) == (7 * 4 + 4, 7 * 4 + 4)


def test_an_element_that_neighbors_read_too_counts_once() -> None:
    builder, x, y = GraphBuilder(), torch.randn(40, 60), torch.randn(60)
    made = builder.send("multiplicationWithPrimaryTensor:secondaryTensor", builder.feed(x), builder.feed(y))
    cost, _ = count(builder, made)
    assert (cost.moved, cost.ratio) == ((2400 + 60 + 2400) * 4, 1.0)


def test_elements_at_addresses_that_are_read_count_as_different_ones() -> None:
    builder, x, index = GraphBuilder(), torch.randn(40, 60), torch.randint(0, 40, (5, 60))
    selector = "gatherAlongAxis:withUpdatesTensor:indicesTensor"
    cost, _ = count(builder, builder.send(selector, 0, builder.feed(x), builder.feed(index)))
    assert sum(map(sum, cost.kernels[0].reads.values())) == 300 * 4 + 300 * 8


def test_what_one_kernel_writes_for_the_next_is_not_needed() -> None:
    builder, x = GraphBuilder(), torch.randn(6, 8)
    total = builder.send("reductionSumWithTensor:axes", builder.feed(x), [0])
    squared = builder.send("squareWithTensor", total)
    made = builder.send("reductionSumWithTensor:axes", squared, [1])
    assert_expected_inline(
        describe(builder, made),
        """\
reduction: 8 rows, 56 turns, 192 bytes read, 32 written
reduction: 1 rows, 9 turns, 32 bytes read, 4 written
260 bytes moved, 1.33 times the 196 of inputs and results""",
    )


def test_the_graph_moves_each_operand_and_result() -> None:
    builder, x = GraphBuilder(), torch.randn(4, 6)
    made = builder.send("squareWithTensor", builder.send("absoluteWithTensor", builder.feed(x)))
    assert count_graph_bytes(read_concrete_graph(builder.run(made))) == (2, 4 * 24 * 4)


@given(st.integers(2, 9), st.integers(2, 9), st.integers(0, 3), st.integers(0, 3))
def test_a_pad_reads_its_operand_once(rows: int, columns: int, before: int, after: int) -> None:
    builder, x = GraphBuilder(), torch.randn(rows, columns)
    selector = "padTensor:withPaddingMode:leftPadding:rightPadding:constantValue"
    made = builder.send(selector, builder.feed(x), 0, [before, 0], [0, after], 2.0)
    cost, _ = count(builder, made)
    written = (rows + before) * (columns + after)
    assert (cost.moved, cost.ratio) == ((rows * columns + written) * 4, 1.0)
