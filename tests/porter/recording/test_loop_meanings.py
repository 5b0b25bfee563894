"""The loop form of single operations, compared with the operations in float64."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from aten_overlay.apple.mpsgraph.objects import Descriptor, Ref
from aten_overlay.apple.mpsgraph.types import MPS
from porter.core.errors import PorterError
from porter.loops.expressions import Op, walk
from porter.loops.graph import Node, Tensor
from porter.loops.meanings.resizing import sample_grid
from shared.loop_forms import TOLERANCE, check_loop_form
from tests.porter.recording.graphs import GraphBuilder

FLOAT, INT = MPS[torch.float32], MPS[torch.int32]
BINARY = "WithPrimaryTensor:secondaryTensor"
Case = tuple[Any, ...]


def floats(*shape: int) -> torch.Tensor:
    return torch.randn(shape)


def indices(top: int, *shape: int) -> torch.Tensor:
    """Indices of which some are out of bounds."""
    return torch.randint(-1, top + 1, shape, dtype=torch.int32)


def far(top: int, *shape: int) -> torch.Tensor:
    """Indices, and what 32 bits of other indices are; these are out of bounds."""
    return indices(top, *shape).long() + torch.randint(-1, 2, shape) * 2**32


def valid(top: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, top, shape, dtype=torch.int32)


def feed(builder: GraphBuilder, value: Any) -> Any:
    if isinstance(value, list) and isinstance(value[0], torch.Tensor):
        return [builder.feed(each) for each in value]
    return builder.feed(value) if isinstance(value, torch.Tensor) else value


def check(selector: str, *arguments: Any, output: int = 0) -> None:
    torch.manual_seed(0)
    builder = GraphBuilder()
    fed = [feed(builder, each) for each in arguments]
    made = builder.send(selector, *fed)
    result = type(made)(made.node, output)
    expect_agreement(builder, result)


def expect_agreement(builder: GraphBuilder, result: Ref) -> None:
    is_image = any(node.selector.startswith(("resize", "sample")) for node in builder.graph.nodes)
    _, differences = check_loop_form(builder.run(result), TOLERANCE if is_image else 1e-9)
    assert differences == []


BLOCKS = ":widthAxis:heightAxis:depthAxis:blockSize:usePixelShuffleOrder"
VIEWS: list[Case] = [
    ("transposeTensor:permutation", floats(2, 3, 4), [2, 0, 1]),
    ("sliceTensor:dimension:start:length", floats(2, 5, 4), 1, -3, 2),
    ("sliceTensor:starts:ends:strides:startMask:endMask:squeezeMask", floats(4, 5, 6), [1, 2, 0], [2, 5, 6], [1, 2, 3], 4, 2, 1),
    ("sliceTensor:starts:ends:strides", floats(5, 6), [4, 5], [0, 0], [-1, -2]),
    ("sliceUpdateDataTensor:updateTensor:starts:ends:strides", floats(6, 7), floats(2, 3), [1, 0], [5, 7], [3, 3]),
    ("stackTensors:axis", [floats(2, 3), floats(2, 3)], 1),
    ("tileGradientWithIncomingGradientTensor:sourceTensor:withMultiplier", floats(6, 4), floats(3, 2), [2, 2]),
    ("reverseTensor", floats(3, 4)),
    ("coordinateAlongAxis:withShape", 1, [3, 4, 2]),
    ("bandPartWithTensor:numLower:numUpper", floats(2, 5, 4), 1, 0),
    ("bandPartWithTensor:numLower:numUpper", floats(4, 5), -1, 1),
    *((f"depthToSpace2DTensor{BLOCKS}", floats(2, 8, 3, 5), 3, 2, 1, 2, order) for order in (True, False)),
    *((f"spaceToDepth2DTensor{BLOCKS}", floats(2, 2, 4, 6), 3, 2, 1, 2, order) for order in (True, False)),
]  # fmt: skip
PAD_GRADIENT = "padGradientWithIncomingGradientTensor:sourceTensor:paddingMode:leftPadding:rightPadding"
PADS: list[Case] = [
    *(
        ("padTensor:withPaddingMode:leftPadding:rightPadding:constantValue", floats(4, 5), mode, left, [2, 3], 2.5)
        for mode in (0, 1, 3, 4)
        for left in ([1, 2], [0, 3])
    ),
    ("padTensor:withPaddingMode:leftPadding:rightPadding:constantValue", floats(4, 5), 0, [-1, 2], [1, -2], 2.5),
    *((PAD_GRADIENT, floats(6, 9), floats(4, 5), mode, [1, 2], [1, 2]) for mode in (0, 1, 3)),
]
NORMAL = "normalizationGradientWithIncomingGradientTensor:sourceTensor:meanTensor:varianceTensor:gammaTensor:"
NORMAL += "gammaGradientTensor:betaGradientTensor:reductionAxes:epsilon"
GAMMA = (
    "normalizationGammaGradientWithIncomingGradientTensor:sourceTensor:meanTensor:varianceTensor:reductionAxes:epsilon"
)
ROW = (floats(1, 3, 1), floats(1, 3, 1).abs())
ROWS: list[Case] = [
    ("softMaxGradientWithIncomingGradient:sourceTensor:axis", floats(2, 3, 4), floats(2, 3, 4), 1),
    ("normalizationWithTensor:meanTensor:varianceTensor:gammaTensor:betaTensor:epsilon", floats(2, 3, 4), *ROW, floats(1, 3, 1), None, 1e-5),
    (NORMAL, floats(2, 3, 4), floats(2, 3, 4), *ROW, None, None, None, [0, 2], 1e-5),
    (NORMAL, floats(2, 3, 4), floats(2, 3, 4), *ROW, floats(1, 3, 1), floats(1, 3, 1), floats(1, 3, 1), [0, 2], 1e-5),
    (GAMMA, floats(2, 3, 4), floats(2, 3, 4), *ROW, [0, 2], 1e-5),
    ("normalizationBetaGradientWithIncomingGradientTensor:sourceTensor:reductionAxes", floats(2, 3, 4), floats(2, 3, 4), [0]),
    ("varianceOfTensor:meanTensor:axes", floats(2, 3, 4), floats(1, 3, 1), [0, 2]),
    ("reductionProductWithTensor:axes", floats(2, 3, 4), [0, 2]),
    ("reductionArgMaximumWithTensor:axis", torch.tensor([[3.0, 3.0, 1.0], [0.0, 2.0, 2.0]]), 1),
    ("reductionArgMinimumWithTensor:axis", floats(4, 5), 0),
    ("reductionMaximumWithTensor:axis", torch.tensor([[float("nan"), 3.0], [float("nan"), float("nan")]]), 1),
    ("reductionAndWithTensor:axis", torch.tensor([[True, False], [True, True]]), 1),
    ("reductionSumWithTensor:axis", torch.tensor([[True, False], [True, True]]), 1),
    *((f"cumulative{name}WithTensor:axis:exclusive:reverse", floats(3, 4), 1, True, False) for name in ("Product", "Maximum", "Minimum")),
]  # fmt: skip
INDEXED: list[Case] = [
    ("gatherAlongAxis:withUpdatesTensor:indicesTensor", 1, floats(3, 5), indices(5, 3, 4)),
    ("gatherAlongAxis:withUpdatesTensor:indicesTensor", 1, floats(3, 5), far(5, 3, 4)),
    ("gatherWithUpdatesTensor:indicesTensor:axis:batchDimensions", floats(3, 5, 2), indices(5, 4, 2), 1, 0),
    ("gatherWithUpdatesTensor:indicesTensor:axis:batchDimensions", floats(3, 5, 2), indices(5, 3, 4), 1, 1),
    ("gatherNDWithUpdatesTensor:indicesTensor:batchDimensions", floats(3, 5, 2), valid(3, 4, 2), 0),
    *(("scatterAlongAxis:withDataTensor:updatesTensor:indicesTensor:mode", 1, floats(3, 5), floats(3, 4), indices(5, 3, 4), mode) for mode in (0, 1, 2, 4, 5)),
    ("scatterAlongAxis:withUpdatesTensor:indicesTensor:shape:mode", 0, floats(4, 3), indices(5, 4, 3), [5, 3], 0),
    ("scatterWithDataTensor:updatesTensor:indicesTensor:axis:mode", floats(3, 5), floats(3, 4), indices(5, 4), 1, 0),
    ("scatterWithDataTensor:updatesTensor:indicesTensor:axis:mode", floats(3, 5), floats(3, 2), torch.tensor([4, 1], dtype=torch.int32), 1, 6),
    ("scatterWithUpdatesTensor:indicesTensor:shape:axis:mode", floats(3, 4), indices(5, 4), [3, 5], 1, 2),
    ("scatterNDWithDataTensor:updatesTensor:indicesTensor:batchDimensions:mode", floats(3, 5, 2), floats(4, 2), indices(3, 4, 2), 0, 0),
    ("oneHotWithIndicesTensor:depth:axis:dataType:onValue:offValue", indices(4, 3, 2), 4, 1, FLOAT, 2.0, -1.0),
    ("oneHotWithIndicesTensor:depth:dataType", indices(4, 3, 2), 4, INT),
    ("oneHotWithIndicesTensor:depth:dataType", far(4, 3, 2), 4, INT),
    ("scatterWithDataTensor:updatesTensor:indicesTensor:axis:mode", floats(3, 5), floats(3, 4), far(5, 4), 1, 0),
]  # fmt: skip
POOL = {
    "paddingStyle": 0,
    "ceilMode": 0,
    "includeZeroPadToAverage": 0,
    "returnIndicesMode": 2,
    "returnIndicesDataType": INT,
}


def plane(**more: int) -> Descriptor:
    """Windows of 3x2 with strides, dilation and padding on NCHW."""
    sizes = {
        "dataLayout": 0, "kernelHeight": 3, "kernelWidth": 2, "strideInY": 2, "strideInX": 1, "dilationRateInY": 1,
        "dilationRateInX": 2, "paddingTop": 1, "paddingBottom": 1, "paddingLeft": 0, "paddingRight": 1,
    }  # fmt: skip
    return Descriptor("MPSGraphPooling2DOpDescriptor", tuple((POOL | sizes | more).items()))


def space() -> Descriptor:
    lists = {
        "kernelSizes": [1, 1, 2, 3], "strides": [1, 1, 2, 2], "dilationRates": [1, 1, 1, 1],
        "paddingValues": [0, 0, 0, 0, 1, 1, 1, 1],
    }  # fmt: skip
    return Descriptor("MPSGraphPooling4DOpDescriptor", tuple((POOL | lists).items()))


WINDOWS: list[Case] = [
    ("maxPooling2DWithSourceTensor:descriptor", floats(2, 3, 7, 6), plane()),
    ("maxPooling4DWithSourceTensor:descriptor", floats(2, 3, 7, 6), space()),
    ("avgPooling2DWithSourceTensor:descriptor", floats(2, 3, 7, 6), plane()),
    ("avgPooling4DWithSourceTensor:descriptor", floats(2, 3, 7, 6), space()),
    ("avgPooling2DWithSourceTensor:descriptor", floats(2, 3, 7, 6), plane(includeZeroPadToAverage=1)),
    ("maxPooling2DGradientWithGradientTensor:sourceTensor:descriptor", floats(2, 3, 4, 5), floats(2, 3, 7, 6), plane()),
    ("avgPooling2DGradientWithGradientTensor:sourceTensor:descriptor", floats(2, 3, 4, 5), floats(2, 3, 7, 6), plane()),
    ("maxPooling2DGradientWithGradientTensor:indicesTensor:outputShape:descriptor", floats(2, 3, 4, 5), valid(42, 2, 3, 4, 5), [2, 3, 7, 6], plane()),
]  # fmt: skip
ALIGN = "centerResult:alignCorners:layout"
RESIZES: list[Case] = [
    *((f"resizeTensor:size:mode:{ALIGN}", floats(2, 3, 4, 5), [7, 3], mode, center, False, 0) for mode in (0, 1) for center in (True, False)),
    (f"resizeTensor:size:mode:{ALIGN}", floats(2, 3, 4, 5), [7, 9], 1, False, True, 0),
    *((f"resizeWithGradientTensor:input:mode:{ALIGN}", floats(2, 3, 7, 3), floats(2, 3, 4, 5), mode, True, False, 0) for mode in (0, 1)),
]  # fmt: skip
GRID = "sampleGridWithSourceTensor:coordinateTensor:layout:normalizeCoordinates:relativeCoordinates:alignCorners:paddingMode"
GRIDS: list[Case] = [
    (f"{GRID}:{mode}:constantValue", floats(2, 3, 4, 5), floats(2, 6, 7, 2) * 3, 0, True, False, align, padding, number, 0.0)
    for mode, number in (("samplingMode", 1), ("nearestRoundingMode", 4))
    for align, padding in ((True, 4), (False, 4), (True, 0), (True, 3), (False, 3), (True, 1), (False, 2))
]  # fmt: skip
ARITHMETIC: list[Case] = [
    *((f"{name}{BINARY}", floats(3, 4), floats(3, 4)) for name in ("floorModulo", "modulo", "atan2", "divisionNoNaN")),
    *((f"bitwise{name}{BINARY}", valid(99, 3, 4), valid(99, 3, 4)) for name in ("AND", "OR", "XOR")),
    *((f"logical{name}{BINARY}", valid(2, 3, 4).bool(), valid(2, 3, 4).bool()) for name in ("NAND", "NOR", "XNOR", "XOR")),
    ("exponentBase10WithTensor", floats(3, 4)),
    ("absoluteSquareWithTensor", floats(3, 4)),
    ("leakyReLUWithTensor:alpha", floats(3, 4), 0.25),
    ("reLUGradientWithIncomingGradient:sourceTensor", floats(3, 4), floats(3, 4)),
    ("sigmoidGradientWithIncomingGradient:sourceTensor", floats(3, 4), floats(3, 4)),
    ("leakyReLUGradientWithIncomingGradient:sourceTensor:alphaTensor", floats(3, 4), floats(3, 4), torch.tensor(0.25)),
    ("clampWithTensor:minValueTensor:maxValueTensor", floats(3, 4), torch.tensor(-0.5), torch.tensor(0.5)),
    ("selectWithPredicateTensor:truePredicateTensor:falsePredicateTensor", valid(2, 3, 4).bool(), floats(3, 4), floats(3, 4)),
    ("castTensor:toType", floats(3, 4) * 9, INT),
    ("castTensor:toType", valid(2, 3, 4), FLOAT),
]  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [*VIEWS, *PADS, *ROWS, *INDEXED, *WINDOWS, *RESIZES, *GRIDS, *ARITHMETIC],
    ids=lambda case: case[0].split(":")[0],
)
def test_an_operation_agrees_with_its_loop_form(case: Case) -> None:
    check(*case)


def test_copies_of_a_tensor_that_are_joined_are_a_tiling() -> None:
    builder = GraphBuilder()
    ours, theirs = builder.feed(floats(2, 3)), builder.feed(floats(4, 3))
    made = builder.send("concatTensors:dimension", [ours, ours, theirs, theirs, theirs, ours], 0)
    expect_agreement(builder, made)
    builder = GraphBuilder()
    tiled = builder.send("concatTensors:dimension", [builder.feed(floats(4, 3))] * 5, 1)
    [nest], _ = check_loop_form(builder.run(builder.send("reshapeTensor:withShape", tiled, [4, 5, 3])), 1e-9)
    assert not any(each.op in (Op.SELECT, Op.REMAINDER) for store in nest.stores for each in walk(store.value))


def test_a_grid_samples_one_pixel_and_channels_behind() -> None:
    for align, padding in ((True, 1), (False, 2), (True, 3), (False, 4)):
        options = (True, False, align, padding, 1, 0.0)
        check(f"{GRID}:samplingMode:constantValue", floats(1, 2, 1, 1), floats(1, 3, 4, 2), 0, *options)
        check(f"{GRID}:samplingMode:constantValue", floats(1, 5, 4, 2), floats(1, 3, 4, 2), 1, *options)


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("samplingMode", (False, False, True, 4, 1, 0.0)),
        ("samplingMode", (True, True, True, 4, 1, 0.0)),
        ("samplingMode", (True, False, True, 4, 0, 0.0)),
        ("nearestRoundingMode", (True, False, True, 4, 3, 0.0)),
        ("samplingMode", (True, False, True, 0, 1, 2.0)),
    ],
    ids=["pixels", "relative", "no rounding mode", "another rounding mode", "a constant around"],
)
def test_other_grids_are_refused(mode: str, options: tuple[Any, ...]) -> None:
    images, grid = Tensor(0), Tensor(1)
    node = Node(f"{GRID}:{mode}:constantValue", (images, grid, 0, *options), ())
    with pytest.raises(PorterError, match="PTR345"):
        sample_grid(SimpleNamespace(node=node), images, grid, 0, *options)


def test_the_positions_of_pooled_maxima_agree() -> None:
    check("maxPooling2DReturnIndicesWithSourceTensor:descriptor", floats(2, 3, 7, 6), plane(), output=1)


def test_the_gradient_of_a_slice_agrees() -> None:
    builder = GraphBuilder()
    shape = builder.send("shapeOfTensor", builder.feed(floats(6, 7)))
    selector = "sliceGradientTensor:fwdInShapeTensor:starts:ends:strides"
    expect_agreement(builder, builder.send(selector, builder.feed(floats(2, 3)), shape, [1, 0], [5, 7], [3, 3]))


def test_the_parts_of_a_split_agree() -> None:
    check("splitTensor:splitSizes:axis", floats(3, 9), [2, 3, 4], 1, output=2)
