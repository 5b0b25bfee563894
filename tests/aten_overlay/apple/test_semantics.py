"""Meanings of shapes, scans, gathers, scatters and the kernels beside the graph, against torch or by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from aten_overlay.apple.mpsgraph import semantics
from aten_overlay.errors import OverlayError


def of(selector: str, *arguments: object) -> Any:
    return semantics.find(selector)(*arguments)


@pytest.mark.parametrize(
    ("exclusive", "reverse", "sums"),
    [(False, False, [1, 3, 6]), (True, False, [0, 1, 3]), (False, True, [6, 5, 3]), (True, True, [5, 3, 0])],
)
def test_scans_may_be_exclusive_or_reversed(exclusive: bool, reverse: bool, sums: list[int]) -> None:
    x = torch.tensor([1, 2, 3], dtype=torch.int32)
    assert of("cumulativeSumWithTensor:axis:exclusive:reverse", x, 0, exclusive, reverse).tolist() == sums


REDUCTIONS: dict[str, Any] = {
    "Sum": torch.sum, "Product": lambda x, axes, keepdim: x.prod(0, True).prod(2, True), "Maximum": torch.amax,
    "Minimum": torch.amin, "MaximumPropagateNaN": torch.amax, "MinimumPropagateNaN": torch.amin, "And": torch.all,
    "Or": torch.any,
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduced_dimensions_keep_size_1(name: str) -> None:
    x = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1))
    x = x > 1 if name in ("And", "Or") else x
    got = of(f"reduction{name}WithTensor:axes", x, [0, -1])
    torch.testing.assert_close(got, REDUCTIONS[name](x, (0, 2), keepdim=True))
    assert of(f"reduction{name}WithTensor:axis", x, -2).shape == (2, 1, 4)


@pytest.mark.parametrize("axes", [[0], [0, 1]])
def test_minimum_of_all_nan_is_nan(axes: list[int]) -> None:
    nan = torch.full((2, 1), torch.nan)
    assert of("reductionMinimumWithTensor:axes", nan, axes).isnan().all()
    assert of("reductionMinimumWithTensor:axes", torch.cat([nan, torch.ones(1, 1)]), axes).item() == 1


def test_top_k_reduces_the_last_dimension() -> None:
    values, places = of("topKWithSourceTensor:k", torch.tensor([[1.0, 5.0, 3.0], [9.0, 7.0, 8.0]]), 2)
    assert values.tolist() == [[5, 3], [9, 8]] and places.tolist() == [[1, 2], [0, 2]]


def test_coordinates_have_the_requested_shape() -> None:
    assert of("coordinateAlongAxis:withShape", 1, [2, 3]).tolist() == [[0, 1, 2], [0, 1, 2]]


def test_exclusive_cumulative_maximum_starts_at_minus_infinity() -> None:
    x = torch.tensor([1.0, 3.0, 2.0])
    assert of("cumulativeMaximumWithTensor:axis:exclusive:reverse", x, 0, True, False).tolist() == [-torch.inf, 1, 3]


def test_sort_reads_its_axis_from_a_constant() -> None:
    x, axis = torch.tensor([[2, 1], [0, 3]]), torch.tensor([0])
    assert of("sortWithTensor:axisTensor:descending", x, axis, True).tolist() == [[2, 3], [0, 1]]
    assert of("argSortWithTensor:axisTensor", x, axis).tolist() == [[1, 0], [0, 1]]


def test_depth_to_space_and_space_to_depth_are_inverses() -> None:
    x = torch.arange(2 * 8 * 2 * 3.0).reshape(2, 8, 2, 3)
    to_space = "depthToSpace2DTensor:widthAxis:heightAxis:depthAxis:blockSize:usePixelShuffleOrder"
    to_depth = "spaceToDepth2DTensor:widthAxis:heightAxis:depthAxis:blockSize:usePixelShuffleOrder"
    assert torch.equal(of(to_space, x, 3, 2, 1, 2, True), torch.pixel_shuffle(x, 2))
    plain = of(to_space, x, 3, 2, 1, 2, False)
    assert plain[0, :, 0, 0].tolist() == x[0, :2, 0, 0].tolist()  # a block's first pixel has the first channels
    for shuffled in (True, False):
        wide = of(to_space, x, 3, 2, 1, 2, shuffled)
        assert torch.equal(of(to_depth, wide, 3, 2, 1, 2, shuffled), x)
    last = of(to_space, x.movedim(1, -1), 2, 1, 3, 2, True)
    assert torch.equal(last.movedim(-1, 1), torch.pixel_shuffle(x, 2))


def test_interleaved_concatenation_alternates_slices() -> None:
    a, b = torch.tensor([[1, 2]]), torch.tensor([[3, 4]])
    assert of("concatTensors:dimension:interleave", [a, b], 1, True).tolist() == [[1, 3, 2, 4]]
    assert of("concatTensors:dimension:interleave", [a, b], 1, False).tolist() == [[1, 2, 3, 4]]


def test_gather_takes_slices_along_an_axis_with_and_without_batches() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    indices = torch.tensor([[2, 0], [1, 1]], dtype=torch.int32)
    selector = "gatherWithUpdatesTensor:indicesTensor:axis:batchDimensions"
    assert torch.equal(of(selector, x, indices, 1, 0), x[:, indices.long()])
    paired = of(selector, x, indices, 2, 1)
    assert torch.equal(paired, torch.stack([x[i][:, indices[i].long()] for i in range(2)]))


def test_gather_nd_works_with_and_without_batches() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    places = torch.tensor([[1, 2], [0, 1]], dtype=torch.int32)
    selector = "gatherNDWithUpdatesTensor:indicesTensor:batchDimensions"
    assert torch.equal(of(selector, x, places, 0), torch.stack((x[1, 2], x[0, 1])))
    assert of(selector, x, places, 1).tolist() == [x[0, 1, 2], x[1, 0, 1]]


@pytest.mark.parametrize(
    ("mode", "wanted"), [(0, [9, 2, 7]), (1, [1, 2, -1]), (2, [15, 2, 12]), (4, [1, 2, 3]), (5, [5, 2, 4]), (6, None)]
)
def test_scatter_modes_combine_duplicate_indices(mode: int, wanted: list[float] | None) -> None:
    """Add, subtract, multiply, least, greatest and set, of data [5, 2, 3] and updates."""
    data = torch.tensor([5.0, 2.0, 3.0])
    indices, updates = torch.tensor([[0], [2], [0]]), torch.tensor([1.0, 4.0, 3.0])
    selector = "scatterNDWithDataTensor:updatesTensor:indicesTensor:batchDimensions:mode"
    made = of(selector, data, updates, indices, 0, mode)
    if wanted is None:  # of two updates of a place, either
        assert made[1:].tolist() == [2, 4] and made[0].item() in (1, 3)
    else:
        assert made.tolist() == wanted


def test_gather_gives_zero_out_of_bounds() -> None:
    x, places = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1, -1], [2, 0]], dtype=torch.int32)
    assert of("gatherAlongAxis:withUpdatesTensor:indicesTensor", -1, x, places).tolist() == [[2, 0], [0, 3]]
    made = of("gatherWithUpdatesTensor:indicesTensor:axis:batchDimensions", x, torch.tensor([1, -1, 2, 0]), 0, 0)
    assert made.tolist() == [[3, 4], [0, 0], [0, 0], [1, 2]]


def test_scatter_skips_out_of_bounds_indices() -> None:
    data, updates = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([5.0, 7.0, 9.0, 11.0])
    places = torch.tensor([0, -1, 2, 3], dtype=torch.int32)
    along = of("scatterAlongAxis:withDataTensor:updatesTensor:indicesTensor:mode", 0, data, updates, places, 6)
    assert along.tolist() == [5, 2, 9]
    made = of("scatterWithUpdatesTensor:indicesTensor:shape:axis:mode", updates[:, None], places, [3, 1], -2, 0)
    assert made.tolist() == [[5], [0], [9]]
    pairs = torch.tensor([[0, 0], [0, 2], [1, -1], [1, 1]])  # the second pair is not the first of the next row
    selector = "scatterNDWithUpdatesTensor:indicesTensor:shape:batchDimensions"
    assert of(selector, updates, pairs, [2, 2], 0).tolist() == [[5, 0], [0, 11]]


def test_scatter_into_a_shape_needs_no_data_tensor() -> None:
    unknown = torch.empty(1, device="meta")
    made = of("scatterNDWithUpdatesTensor:indicesTensor:shape:batchDimensions:mode", unknown, unknown, [3, 5], 0, 0)
    assert made.shape == (3, 5) and made.is_meta


def test_scatter_does_not_divide_integers() -> None:
    whole = torch.tensor([4, 2], dtype=torch.int32)
    with pytest.raises(OverlayError, match="MPSGraphScatterMode 3"):
        of("scatterAlongAxis:withDataTensor:updatesTensor:indicesTensor:mode", 0, whole, whole, torch.tensor([0, 1]), 3)


def test_nonzero_indices_are_in_order() -> None:
    made = of("nonZeroIndicesOfTensor", torch.tensor([[0, 3], [4, 0]]))
    assert made.dtype is torch.int32 and made.tolist() == [[0, 1], [1, 0]]


def test_slice_and_tile_gradients_reach_their_sources() -> None:
    shape = torch.tensor([2, 4], dtype=torch.int32)
    made = of(
        "sliceGradientTensor:fwdInShapeTensor:starts:ends:strides", torch.ones(1, 2), shape, [1, 0], [2, 4], [1, 2]
    )
    assert made.tolist() == [[0, 0, 0, 0], [1, 0, 1, 0]]
    meta = of(
        "sliceGradientTensor:fwdInShapeTensor:starts:ends:strides", torch.ones(1, 2, device="meta"), shape, [1, 0],
        [2, 4], [1, 2],
    )  # fmt: skip
    assert meta.shape == (2, 4) and meta.is_meta
    tiled = of(
        "tileGradientWithIncomingGradientTensor:sourceTensor:withMultiplier",
        torch.ones(2, 6),
        torch.zeros(2, 2),
        [1, 3],
    )
    assert tiled.tolist() == [[3, 3], [3, 3]]


def test_pad_gradient_has_the_unpadded_shape() -> None:
    selector = "padGradientWithIncomingGradientTensor:sourceTensor:paddingMode:leftPadding:rightPadding"
    for source in (torch.zeros(3), torch.zeros(5)):  # the second with a part cut off before
        made = of(selector, torch.tensor([1.0, 2, 4, 8, 16]), source, 3, [1], [1])
        assert made.tolist() == [3, 4, 24]


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_gradient_of_padding_alone_is_refused_unless_constant(device: str) -> None:
    selector = "padGradientWithIncomingGradientTensor:sourceTensor:paddingMode:leftPadding:rightPadding"
    gradient, source = torch.ones(2, 5, device=device), torch.zeros(2, 4, device=device)
    with pytest.raises(OverlayError, match="all 5 elements along dimension 1 are padding") as refused:
        of(selector, gradient, source, 3, [0, 0], [0, 5])
    assert refused.value.code == "PTR127"
    assert of(selector, gradient, source, 0, [0, 0], [0, 5]).shape == (2, 0)


def test_matrices_are_inverted() -> None:
    x = torch.tensor([[[2.0, 0.0], [0.0, 4.0]]])
    assert of("inverseOfTensor", x).tolist() == [[[0.5, 0.0], [0.0, 0.25]]]
