"""The loop form of graphs, compared with the graphs run node by node in float64."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aten_overlay.apple.mpsgraph.objects import Ref
from aten_overlay.apple.mpsgraph.types import MPS
from porter.core.dtypes import FLOAT
from porter.core.errors import PorterError
from porter.loops.expressions import find_reductions
from porter.loops.fusion import LoopNest, Shape, fuse
from porter.loops.graph import ConcreteGraph, Node, Result, Tensor
from shared.loop_forms import check_loop_form
from tests.porter.recording.graphs import GraphBuilder

Draw = Callable[[st.SearchStrategy[int]], int]
Step = Callable[[GraphBuilder, list[Ref], Draw], Ref]
BINARY = "WithPrimaryTensor:secondaryTensor"


def check(builder: GraphBuilder, *results: Ref) -> tuple[LoopNest, ...]:
    nests, differences = check_loop_form(builder.run(*results), tolerance=1e-9)
    assert differences == []
    return nests


def _axis(builder: GraphBuilder, x: Ref, draw: Draw) -> int:
    return draw(st.integers(0, len(builder.shape(x)) - 1))


def _pick(pool: list[Ref], draw: Draw) -> Ref:
    return pool[draw(st.integers(0, len(pool) - 1))]


def unary(builder: GraphBuilder, pool: list[Ref], draw: Draw) -> Ref:
    names = ("negative", "square", "sigmoid", "tanh", "absolute", "floor", "reLU", "identity")
    return builder.send(f"{names[draw(st.integers(0, len(names) - 1))]}WithTensor", _pick(pool, draw))


def binary(builder: GraphBuilder, pool: list[Ref], draw: Draw) -> Ref:
    names = ("addition", "subtraction", "multiplication", "maximumWithNaNPropagation")
    x, y = _pick(pool, draw), _pick(pool, draw)
    try:
        torch.broadcast_shapes(builder.shape(x), builder.shape(y))
    except RuntimeError:
        y = builder.send("constantWithScalar:dataType", 0.5, MPS[torch.float32])
    return builder.send(f"{names[draw(st.integers(0, 3))]}{BINARY}", x, y)


def transpose(builder: GraphBuilder, pool: list[Ref], draw: Draw) -> Ref:
    x = _pick(pool, draw)
    return builder.send("transposeTensor:dimension:withDimension", x, _axis(builder, x, draw), _axis(builder, x, draw))


def reshape(builder: GraphBuilder, pool: list[Ref], draw: Draw) -> Ref:
    x = _pick(pool, draw)
    count = torch.Size(builder.shape(x)).numel()
    first = next(size for size in (draw(st.integers(1, 6)), 1) if count % size == 0)
    return builder.send("reshapeTensor:withShape", x, [first, count // first])


def take_slice(builder: GraphBuilder, pool: list[Ref], draw: Draw) -> Ref:
    x = _pick(pool, draw)
    starts = [draw(st.integers(0, size - 1)) for size in builder.shape(x)]
    steps = [draw(st.integers(1, 3)) for _ in starts]
    return builder.send("sliceTensor:starts:ends:strides", x, starts, list(builder.shape(x)), steps)


def pad(builder: GraphBuilder, pool: list[Ref], draw: Draw) -> Ref:
    x = _pick(pool, draw)
    mode = (0, 1, 3)[draw(st.integers(0, 2))]
    left, right = ([draw(st.integers(0, size - 1)) for size in builder.shape(x)] for _ in range(2))
    return builder.send("padTensor:withPaddingMode:leftPadding:rightPadding:constantValue", x, mode, left, right, 1.5)


def join(builder: GraphBuilder, pool: list[Ref], draw: Draw) -> Ref:
    x = _pick(pool, draw)
    other = builder.send("negativeWithTensor", x)
    at, interleave = _axis(builder, x, draw), bool(draw(st.integers(0, 1)))
    return builder.send("concatTensors:dimension:interleave", [x, other, x], at, interleave)


def tile(builder: GraphBuilder, pool: list[Ref], draw: Draw) -> Ref:
    x = _pick(pool, draw)
    return builder.send("tileTensor:withMultiplier", x, [draw(st.integers(1, 2)) for _ in builder.shape(x)])


def reverse(builder: GraphBuilder, pool: list[Ref], draw: Draw) -> Ref:
    x = _pick(pool, draw)
    return builder.send("reverseTensor:axes", x, [_axis(builder, x, draw)])


def reduce(builder: GraphBuilder, pool: list[Ref], draw: Draw) -> Ref:
    x = _pick(pool, draw)
    name = ("Sum", "MaximumPropagateNaN", "Minimum", "Maximum")[draw(st.integers(0, 3))]
    axes = sorted({_axis(builder, x, draw), _axis(builder, x, draw)})
    return builder.send(f"reduction{name}WithTensor:axes", x, axes)


def average(builder: GraphBuilder, pool: list[Ref], draw: Draw) -> Ref:
    x = _pick(pool, draw)
    name = ("meanOfTensor:axes", "varianceOfTensor:axes")[draw(st.integers(0, 1))]
    return builder.send(name, x, [_axis(builder, x, draw)])


def softmax(builder: GraphBuilder, pool: list[Ref], draw: Draw) -> Ref:
    x = _pick(pool, draw)
    return builder.send("softMaxWithTensor:axis", x, _axis(builder, x, draw))


def scan(builder: GraphBuilder, pool: list[Ref], draw: Draw) -> Ref:
    x = _pick(pool, draw)
    flags = [bool(draw(st.integers(0, 1))) for _ in range(2)]
    return builder.send("cumulativeSumWithTensor:axis:exclusive:reverse", x, _axis(builder, x, draw), *flags)


def gather(builder: GraphBuilder, pool: list[Ref], draw: Draw) -> Ref:
    x = _pick(pool, draw)
    axis = _axis(builder, x, draw)
    indices = builder.feed(torch.tensor([draw(st.integers(0, builder.shape(x)[axis] - 1)) for _ in range(3)]))
    return builder.send("gatherWithUpdatesTensor:indicesTensor:axis:batchDimensions", x, indices, axis, 0)


def keep_band(builder: GraphBuilder, pool: list[Ref], draw: Draw) -> Ref:
    wide = [each for each in pool if len(builder.shape(each)) > 1]
    if not wide:
        return unary(builder, pool, draw)
    bounds = [draw(st.integers(-1, 2)) for _ in range(2)]
    return builder.send("bandPartWithTensor:numLower:numUpper", _pick(wide, draw), *bounds)


STEPS: tuple[Step, ...] = (
    unary, binary, binary, transpose, reshape, take_slice, pad, join, tile, reverse, reduce, reduce, average, softmax,
    scan, gather, keep_band,
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_graphs_agree_with_their_loop_form(data: st.DataObject) -> None:
    builder = GraphBuilder()
    torch.manual_seed(data.draw(st.integers(0, 1000)))
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    pool = [builder.feed(torch.randn(shape)), builder.feed(torch.randn(shape[-1:]))]
    for _ in range(data.draw(st.integers(1, 6))):
        made = STEPS[data.draw(st.integers(0, len(STEPS) - 1))](builder, pool, data.draw)
        if 0 < torch.Size(builder.shape(made)).numel() <= 400:
            pool.append(made)
    check(builder, *pool[-2:])


def _row(selector: str, *arguments: object) -> tuple[LoopNest, ...]:
    builder = GraphBuilder()
    return check(builder, builder.send(selector, builder.feed(torch.randn(3, 4, 5)), *arguments))


def test_softmax_is_one_row_wise_kernel() -> None:
    (nest,) = _row("softMaxWithTensor:axis", 1)
    assert nest.shape is Shape.ROWS
    assert [loop.size for loop in nest.rows] == [3, 5]


def test_loops_that_walk_as_one_are_joined() -> None:
    (nest,) = _row("negativeWithTensor")
    assert [loop.size for loop in nest.rows] == [60]
    (nest,) = _row("softMaxWithTensor:axis", 2)
    assert [loop.size for loop in nest.rows] == [12]
    (nest,) = _row("reductionSumWithTensor:axes", [1, 2])
    assert [reduction.reduction.loops[0].size for reduction in find_reductions(nest.stores[0].value)] == [20]


def test_mean_and_variance_share_a_kernel_and_the_sum() -> None:
    builder = GraphBuilder()
    x = builder.feed(torch.randn(3, 4, 5))
    (nest,) = check(builder, builder.send("meanOfTensor:axes", x, [1]), builder.send("varianceOfTensor:axes", x, [1]))
    assert nest.shape is Shape.REDUCTION
    assert len(nest.stores) == 2


def test_a_reduction_of_an_operand_reduced_along_another_axis_is_right() -> None:
    builder = GraphBuilder()
    x = builder.feed(torch.randn(4, 4))
    turned = builder.send("transposeTensor:dimension:withDimension", x, 0, 1)
    sums = builder.send("reductionSumWithTensor:axes", turned, [1])
    weighed = builder.send(f"multiplication{BINARY}", x, sums)
    nests = check(builder, builder.send("reductionSumWithTensor:axes", weighed, [0, 1]))
    assert len(nests) > 1, "the sums are stored on the way"


def test_constants_of_halves_are_not_rounded() -> None:
    builder = GraphBuilder()
    x = builder.feed(torch.randn(7, 3).half())
    third = builder.send("constantWithScalar:dataType", 1 / 3, MPS[torch.float32])
    cast = builder.send("castTensor:toType", third, MPS[torch.float16])
    tenth = builder.send("constantWithScalar:dataType", 0.1, MPS[torch.float16])
    scaled = builder.send(f"multiplication{BINARY}", x, builder.send(f"addition{BINARY}", cast, tenth))
    _, differences = check_loop_form(builder.run(scaled))  # the graph has them in single precision
    assert differences == []


@pytest.mark.parametrize("selector", ["fastFourierTransformWithTensor:axes:descriptor", "randomTensorWithShape"])
def test_an_operation_without_loop_form_is_refused(selector: str) -> None:
    shape = Result((3, 4), FLOAT)
    graph = ConcreteGraph((Node(selector, (), (shape,)),), frozenset(), (Tensor(0),))
    with pytest.raises(PorterError, match=selector) as caught:
        fuse(graph)
    assert caught.value.code == "PTR345"
