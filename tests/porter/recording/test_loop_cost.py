"""What fused kernels cost, counted by hand beside it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from expecttest import assert_expected_inline
from hypothesis import given
from hypothesis import strategies as st

from aten_overlay.apple.mpsgraph.objects import Ref
from porter.core.dtypes import FLOAT
from porter.loops.expressions import Buffer
from porter.loops.fusion import coalesce, fuse
from porter.loops.host_values import Arguments, ArgumentValue, TensorValue
from porter.metal.forms.contraction import Contraction, Operands
from porter.metal.forms.convolution import Convolution, Convolved
from porter.metal.forms.form import Form
from porter.recording.concrete import read_concrete_graph
from porter.recording.cost import Cost, cost_lines, count_cost, count_graph_bytes, form_cost_lines
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


def describe_form(form: Form, others: dict[str, ArgumentValue], **shapes: tuple[int, ...]) -> list[str]:
    tensors = {name: TensorValue(shape, FLOAT) for name, shape in shapes.items()}
    return list(form_cost_lines(form, Arguments(tensors, others)))


def list_numbers(groups: int = 1, stride: int = 1, dilation: int = 1) -> dict[str, ArgumentValue]:
    return {"padding": (0, 0), "stride": (stride, stride), "dilation": (dilation, dilation), "groups": groups}


def test_a_convolution_reads_weights_for_each_tile_of_windows_and_the_input_for_each_of_channels() -> None:
    """Tiles of 32: 24 windows, then 7,200 and so 225 tiles, and 64 channels and so 2."""
    form = Convolution("self", "weight", "", (Convolved.OUTPUT,), "bias")
    numbers = list_numbers()
    assert describe_form(form, numbers, self=(2, 8, 5, 6), weight=(64, 8, 3, 3), result0=(2, 64, 3, 4)) == [
        "reduction: 64 rows, 110592 turns, 22272 bytes read, 6144 written",
        "28416 bytes moved, 1.07 times the 26496 of inputs and results",
    ]
    assert describe_form(
        form, numbers, self=(2, 8, 62, 62), weight=(64, 8, 3, 3), bias=(64,), result0=(2, 64, 60, 60)
    ) == [
        "reduction: 64 rows, 33177600 turns, 4639488 bytes read, 1843200 written",
        "6482688 bytes moved, 3.08 times the 2107904 of inputs and results",
        "weight is read in 225 passes of the reduction kernel",
        "self is read in 2 passes of the reduction kernel",
    ]


def test_a_convolution_of_few_rows_reads_all_once_and_slices_are_memory_of_the_launch() -> None:
    form = Convolution("self", "weight", "grad", (Convolved.INPUT, Convolved.WEIGHT))
    grouped = describe_form(
        form, list_numbers(8), self=(2, 8, 5, 6), weight=(8, 1, 3, 3), grad=(2, 8, 3, 4), result0=(2, 8, 5, 6)
    )
    assert grouped == [
        "reduction: 8 rows, 4320 turns, 1056 bytes read, 1920 written",
        "2976 bytes moved, 1.00 times the 2976 of inputs and results",
    ]
    sliced = describe_form(
        form, list_numbers(), self=(2, 8, 64, 64), weight=(32, 8, 1, 1), grad=(2, 32, 64, 64), result1=(32, 8, 1, 1)
    )
    assert sliced == [
        "reduction: 32 rows, 2097152 turns, 1310720 bytes read, 65536 written",
        "reduction: 32 rows, 16384 turns, 65536 bytes read, 1024 written",
        "1442816 bytes moved, 1.10 times the 1311744 of inputs and results",
    ]


def test_the_gradient_of_a_strided_input_has_products_of_few_taps() -> None:
    """Places of four kinds have a fourth of 4 * 4 taps each, unless dilation leaves three kinds none."""
    form = Convolution("self", "weight", "grad", (Convolved.INPUT,))
    shapes = {"weight": (4, 4, 4, 4), "grad": (1, 4, 4, 4), "result0": (1, 4, 10, 10)}
    assert describe_form(form, list_numbers(stride=2), **shapes)[:2] == [
        f"reduction: 4 rows, {4 * 4 * 100 * 4} turns, 2048 bytes read, 1600 written",
        "3648 bytes moved, 1.27 times the 2880 of inputs and results",
    ]
    [line, *_] = describe_form(form, list_numbers(stride=2, dilation=2), **shapes)
    assert line == f"reduction: 4 rows, {4 * 4 * 25 * 16} turns, 1280 bytes read, 1600 written"


def test_a_product_reads_an_operand_for_each_tile_of_the_other() -> None:
    form = Contraction(Operands.MATRICES, "a", "b", added="c", beta="beta")
    [line, *_] = describe_form(form, {"beta": 0}, a=(64, 8), b=(8, 33), c=(64, 33), result0=(64, 33))
    assert line == f"reduction: 64 rows, {64 * 33 * 8} turns, {(2 * 64 * 8 + 2 * 8 * 33) * 4} bytes read, 8448 written"
    [line, *_] = describe_form(form, {"beta": 1}, a=(1, 64), b=(64, 70), c=(1, 70), result0=(1, 70))
    assert line == f"reduction: 1 rows, {70 * 64} turns, {(64 + 64 * 70 + 70) * 4} bytes read, 280 written"
