"""Meanings of convolutions, pooling, resizing, transforms, recurrence and random numbers, against torch or by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from aten_overlay.apple.mpsgraph import semantics
from aten_overlay.apple.mpsgraph.objects import Descriptor
from aten_overlay.apple.mpsgraph.types import MPS, Unknown
from aten_overlay.errors import OverlayError


def of(selector: str, *arguments: object) -> Any:
    return semantics.find(selector)(*arguments)


def descriptor(name: str, **properties: object) -> Descriptor:
    return Descriptor(name, tuple(properties.items()))


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


PLANE = {
    "strideInX": 2, "strideInY": 1, "dilationRateInX": 1, "dilationRateInY": 2, "paddingLeft": 1, "paddingRight": 0,
    "paddingTop": 2, "paddingBottom": 1, "paddingStyle": 0, "groups": 2,
}  # fmt: skip


def test_convolution_pads_each_side_separately_in_both_layouts() -> None:
    x, w = normal(2, 4, 6, 7), normal(6, 2, 3, 2)
    want = F.conv2d(F.pad(x, (1, 0, 2, 1)), w, stride=(1, 2), dilation=(2, 1), groups=2)
    first = descriptor("MPSGraphConvolution2DOpDescriptor", **PLANE, dataLayout=0, weightsLayout=2)
    got = of("convolution2DWithSourceTensor:weightsTensor:descriptor", x, w, first)
    torch.testing.assert_close(got, want)
    last = descriptor("MPSGraphConvolution2DOpDescriptor", **PLANE, dataLayout=1, weightsLayout=3)
    permuted = of(
        "convolution2DWithSourceTensor:weightsTensor:descriptor", x.permute(0, 2, 3, 1), w.permute(2, 3, 1, 0), last
    )
    torch.testing.assert_close(permuted, want.permute(0, 2, 3, 1))


def test_a_padding_style_that_is_not_implemented_is_refused() -> None:
    same = descriptor("MPSGraphConvolution2DOpDescriptor", **{**PLANE, "paddingStyle": 2})
    with pytest.raises(OverlayError, match="PaddingStyle 2"):
        of("convolution2DWithSourceTensor:weightsTensor:descriptor", normal(1, 4, 6, 7), normal(6, 2, 3, 2), same)


VOLUME = {
    "strideInX": 1, "strideInY": 2, "strideInZ": 1, "dilationRateInX": 1, "dilationRateInY": 1, "dilationRateInZ": 1,
    "paddingLeft": 1, "paddingRight": 1, "paddingTop": 0, "paddingBottom": 0, "paddingFront": 2, "paddingBack": 2,
    "paddingStyle": 0, "groups": 1, "dataLayout": 7, "weightsLayout": 9,
}  # fmt: skip


def test_convolution_gradients_match_torch() -> None:
    x, w = normal(1, 2, 4, 5, 6).requires_grad_(), normal(3, 2, 2, 3, 2).requires_grad_()
    d = descriptor("MPSGraphConvolution3DOpDescriptor", **VOLUME)
    want = F.conv3d(x, w, stride=(1, 2, 1), padding=(2, 0, 1))
    torch.testing.assert_close(of("convolution3DWithSourceTensor:weightsTensor:descriptor", x, w, d), want)
    incoming = torch.ones_like(want)
    by_x, by_w = torch.autograd.grad(want, (x, w), incoming)
    data = "convolution3DDataGradientWithIncomingGradientTensor:weightsTensor:outputShape:forwardConvolutionDescriptor"
    weights = (
        "convolution3DWeightsGradientWithIncomingGradientTensor:sourceTensor:outputShape:forwardConvolutionDescriptor"
    )
    torch.testing.assert_close(of(data, incoming, w.detach(), list(x.shape), d), by_x)
    torch.testing.assert_close(of(weights, incoming, x.detach(), list(w.shape), d), by_w)


def test_gradients_are_computed_below_autograd() -> None:
    """Where a backend's own kernels run."""
    x, w = normal(1, 4, 6, 7), normal(6, 2, 3, 2)
    d = descriptor("MPSGraphConvolution2DOpDescriptor", **PLANE, dataLayout=0, weightsLayout=2)
    data = "convolution2DDataGradientWithIncomingGradientTensor:weightsTensor:outputShape:forwardConvolutionDescriptor"
    incoming = torch.ones_like(of("convolution2DWithSourceTensor:weightsTensor:descriptor", x, w, d))
    above = of(data, incoming, w, list(x.shape), d)
    with torch._C._AutoDispatchBelowAutograd(), torch.no_grad():
        assert torch.equal(of(data, incoming, w, list(x.shape), d), above)


def test_data_gradient_may_exceed_the_minimal_input_size() -> None:
    """As a transposed convolution with output padding has."""
    x, w = normal(1, 2, 4, 4), normal(2, 3, 2, 2)
    plain = {**PLANE, "strideInX": 2, "dilationRateInX": 3, "paddingLeft": 0, "paddingTop": 0, "paddingBottom": 0}
    d = descriptor("MPSGraphConvolution2DOpDescriptor", **{**plain, "groups": 1}, dataLayout=0, weightsLayout=2)
    want = F.conv_transpose2d(x, w, stride=(1, 2), dilation=(2, 3), output_padding=(0, 2))
    data = "convolution2DDataGradientWithIncomingGradientTensor:weightsTensor:outputShape:forwardConvolutionDescriptor"
    torch.testing.assert_close(of(data, x, w, list(want.shape), d), want)


def test_depthwise_convolution_keeps_channels_separate() -> None:
    """As host code uses it: channels at -3, the batch as depth, weights [1, C, H, W]."""
    x, w = normal(2, 3, 5, 6), normal(3, 1, 2, 3)
    d = descriptor(
        "MPSGraphDepthwiseConvolution3DOpDescriptor", strides=[1, 2, 1], dilationRates=[1, 1, 1],
        paddingValues=[0, 0, 1, 1, 0, 2], paddingStyle=0, channelDimensionIndex=-3,
    )  # fmt: skip
    got = of("depthwiseConvolution3DWithSourceTensor:weightsTensor:descriptor", x, w.transpose(0, 1), d)
    want = F.conv2d(F.pad(x, (0, 2, 1, 1)), w, stride=(2, 1), groups=3)
    torch.testing.assert_close(got, want)


def pooling(**changed: object) -> Descriptor:
    plain: dict[str, object] = {
        "kernelWidth": 2, "kernelHeight": 3, "strideInX": 2, "strideInY": 1, "dilationRateInX": 1, "dilationRateInY": 1,
        "paddingLeft": 1, "paddingRight": 1, "paddingTop": 1, "paddingBottom": 1, "paddingStyle": 0, "dataLayout": 0,
        "returnIndicesMode": 2, "returnIndicesDataType": MPS[torch.int32], "ceilMode": False,
        "includeZeroPadToAverage": True,
    }  # fmt: skip
    return descriptor("MPSGraphPooling2DOpDescriptor", **{**plain, **changed})


def test_max_pool_indices_refer_to_the_unpadded_input() -> None:
    x = normal(2, 3, 5, 6)
    values, places = of("maxPooling2DReturnIndicesWithSourceTensor:descriptor", x, pooling())
    want, where = F.max_pool2d(x, (3, 2), (1, 2), (1, 1), return_indices=True)
    torch.testing.assert_close(values, want)
    assert torch.equal(places, where.to(torch.int32))


def test_images_are_pooled_without_a_batch() -> None:
    x = normal(3, 5, 6)
    got = of("maxPooling2DWithSourceTensor:descriptor", x, pooling())
    torch.testing.assert_close(got, F.max_pool2d(x, (3, 2), (1, 2), (1, 1)))


def test_max_pool_prefers_nan_and_the_first_of_equal_values() -> None:
    x = torch.tensor([[[[1.0, 1.0, float("nan"), 0.0]]]])
    d = pooling(kernelHeight=1, paddingLeft=0, paddingRight=0, paddingTop=0, paddingBottom=0)
    values = of("maxPooling2DWithSourceTensor:descriptor", x, d)
    assert values[0, 0, 0, 0] == 1 and values[0, 0, 0, 1].isnan()
    gradient = of("maxPooling2DGradientWithGradientTensor:sourceTensor:descriptor", torch.ones(1, 1, 1, 2), x, d)
    assert gradient.tolist() == [[[[1, 0, 1, 0]]]]
    by_place = of(
        "maxPooling2DGradientWithGradientTensor:indicesTensor:outputShape:descriptor", torch.ones(1, 1, 1, 2),
        torch.tensor([[[[0, 2]]]], dtype=torch.int32), [1, 1, 1, 4], d,
    )  # fmt: skip
    assert by_place.tolist() == gradient.tolist()


@pytest.mark.parametrize("counted", [False, True])
def test_average_pool_counts_padding_on_request(counted: bool) -> None:
    x = normal(2, 3, 5, 5)
    got = of("avgPooling2DWithSourceTensor:descriptor", x, pooling(includeZeroPadToAverage=counted))
    torch.testing.assert_close(got, F.avg_pool2d(x, (3, 2), (1, 2), (1, 1), count_include_pad=counted))


def test_pool_sizes_round_up_on_request() -> None:
    """What lies beyond the source counts for nothing, unless padding counts."""
    x = normal(2, 3, 5, 5)
    edges = {"paddingLeft": 0, "paddingRight": 0, "paddingTop": 0, "paddingBottom": 0}
    d = pooling(ceilMode=True, includeZeroPadToAverage=False, **edges)
    counted = of("avgPooling2DWithSourceTensor:descriptor", x, pooling(ceilMode=True, **edges))
    torch.testing.assert_close(counted, F.avg_pool2d(x, (3, 2), (1, 2), ceil_mode=True, divisor_override=6))
    average = of("avgPooling2DWithSourceTensor:descriptor", x, d)
    torch.testing.assert_close(average, F.avg_pool2d(x, (3, 2), (1, 2), ceil_mode=True))
    largest = of("maxPooling2DWithSourceTensor:descriptor", x, d)
    torch.testing.assert_close(largest, F.max_pool2d(x, (3, 2), (1, 2), ceil_mode=True))


def test_four_dimensional_pooling_matches_three_dimensional() -> None:
    x = normal(2, 4, 5, 6)
    d = descriptor(
        "MPSGraphPooling4DOpDescriptor", kernelSizes=[1, 2, 2, 3], strides=[1, 2, 1, 3], dilationRates=[1] * 4,
        paddingValues=[0] * 8, paddingStyle=0, ceilMode=False, includeZeroPadToAverage=False, returnIndicesMode=3,
        returnIndicesDataType=MPS[torch.int32],
    )  # fmt: skip
    want, where = F.max_pool3d(x.unsqueeze(1), (2, 2, 3), (2, 1, 3), return_indices=True)
    values, places = of("maxPooling4DReturnIndicesWithSourceTensor:descriptor", x, d)
    torch.testing.assert_close(values, want.squeeze(1))
    assert torch.equal(places, where.squeeze(1).to(torch.int32))
    average = of("avgPooling4DWithSourceTensor:descriptor", x, d)
    torch.testing.assert_close(average, F.avg_pool3d(x.unsqueeze(1), (2, 2, 3), (2, 1, 3)).squeeze(1))


@pytest.mark.parametrize(("center", "align"), [(True, False), (False, True)])
def test_bilinear_resize_matches_torch(center: bool, align: bool) -> None:
    x, size = normal(2, 3, 4, 5), torch.tensor([7, 3], dtype=torch.int32)
    got = of("resizeBilinearWithTensor:sizeTensor:centerResult:alignCorners:layout", x, size, center, align, 0)
    want = F.interpolate(x, (7, 3), mode="bilinear", align_corners=align)
    torch.testing.assert_close(got, want)
    last = of(
        "resizeBilinearWithTensor:sizeTensor:centerResult:alignCorners:layout", x.movedim(1, -1), size, center, align, 1
    )
    torch.testing.assert_close(last.movedim(-1, 1), want)


def test_nearest_resize_rounds_as_requested() -> None:
    x = torch.arange(4.0).reshape(1, 1, 1, 4)
    size = torch.tensor([1, 6], dtype=torch.int32)
    selector = "resizeNearestWithTensor:sizeTensor:nearestRoundingMode:centerResult:alignCorners:layout"
    floor = of(selector, x, size, 3, False, False, 0)
    assert torch.equal(floor, F.interpolate(x, (1, 6), mode="nearest"))
    exact = of(selector, x, size, 0, True, False, 0)
    assert torch.equal(exact, F.interpolate(x, (1, 6), mode="nearest-exact"))
    halves = torch.arange(3.0).reshape(1, 1, 1, 3)
    size = torch.tensor([1, 5], dtype=torch.int32)  # corners aligned: 0, 0.5, 1, 1.5, 2
    rounded = {mode: of(selector, halves, size, mode, False, True, 0).flatten().tolist() for mode in range(6)}
    assert rounded == {
        0: [0, 1, 1, 2, 2], 1: [0, 0, 1, 1, 2], 2: [0, 1, 1, 2, 2], 3: [0, 0, 1, 1, 2], 4: [0, 0, 1, 2, 2],
        5: [0, 1, 1, 1, 2],
    }  # fmt: skip


def test_resize_applies_scale_and_offset() -> None:
    """`result = source * scale + offset`; centered by 2 the offset is a half."""
    x = normal(1, 2, 3, 4)
    scale = torch.tensor([2.0, 2.0, 0.5, 0.5])
    size = torch.tensor([6, 8], dtype=torch.int32)
    got = of("resizeBilinearWithTensor:sizeTensor:scaleOffsetTensor:layout", x, size, scale, 0)
    torch.testing.assert_close(got, F.interpolate(x, scale_factor=2.0, mode="bilinear"))
    gradient = of(
        "resizeBilinearWithGradientTensor:input:scaleOffsetTensor:layout", torch.ones(1, 2, 6, 8), x, scale, 0
    )
    torch.testing.assert_close(gradient.sum(), torch.tensor(96.0))


def test_a_fed_size_leaves_the_shape_unknown() -> None:
    meta, size = torch.empty(1, 1, 2, 2, device="meta"), torch.empty(2, device="meta")
    selector = "resizeBilinearWithTensor:sizeTensor:centerResult:alignCorners:layout"
    assert of(selector, meta, size, True, False, 0) == Unknown(torch.float32)
    assert of("nonZeroIndicesOfTensor", meta) == Unknown(torch.int32)


def test_sample_grid_reads_normalized_coordinates() -> None:
    x, grid = normal(2, 3, 4, 5), normal(2, 6, 7, 2)
    plain = "sampleGridWithSourceTensor:coordinateTensor:layout:normalizeCoordinates:relativeCoordinates:alignCorners:"
    got = of(f"{plain}paddingMode:samplingMode:constantValue", x, grid, 0, True, False, False, 4, 1, 0.0)
    torch.testing.assert_close(got, F.grid_sample(x, grid, "bilinear", "zeros", align_corners=False))
    near = of(f"{plain}paddingMode:nearestRoundingMode:constantValue", x, grid, 0, True, False, True, 1, 4, 0.0)
    torch.testing.assert_close(near, F.grid_sample(x, grid, "nearest", "reflection", align_corners=True))
    with pytest.raises(OverlayError, match="PaddingMode 2"):  # mirrors at the edge, with corners aligned
        of(f"{plain}paddingMode:samplingMode:constantValue", x, grid, 0, True, False, True, 2, 1, 0.0)


def fourier(inverse: bool = False, scaling: int = 0, odd: bool = False) -> Descriptor:
    return descriptor("MPSGraphFFTDescriptor", inverse=inverse, scalingMode=scaling, roundToOddHermitean=odd)


def test_fft_scales_as_requested_in_both_directions() -> None:
    x = torch.complex(normal(3, 4), normal(3, 4).flip(0))
    selector = "fastFourierTransformWithTensor:axes:descriptor"
    torch.testing.assert_close(of(selector, x, [0, 1], fourier()), torch.fft.fft2(x))
    torch.testing.assert_close(of(selector, x, [1], fourier(inverse=True)), torch.fft.ifft(x, norm="forward"))
    torch.testing.assert_close(of(selector, x, [1], fourier(inverse=True, scaling=1)), torch.fft.ifft(x))
    torch.testing.assert_close(of(selector, x, [0, 1], fourier(scaling=2)), torch.fft.fft2(x, norm="ortho"))


@pytest.mark.parametrize("size", [4, 5])
def test_hermitian_half_round_trips(size: int) -> None:
    x = normal(3, size)
    half = of("realToHermiteanFFTWithTensor:axes:descriptor", x, [0, 1], fourier())
    assert half.shape == (3, size // 2 + 1)
    back = of("HermiteanToRealFFTWithTensor:axes:descriptor", half, [0, 1], fourier(True, scaling=1, odd=size % 2 == 1))
    torch.testing.assert_close(back, x)


def lstm_descriptor(bidirectional: bool) -> Descriptor:
    gates = {"inputGateActivation": 3, "forgetGateActivation": 3, "cellGateActivation": 2, "outputGateActivation": 3}
    return descriptor(
        "MPSGraphLSTMDescriptor", reverse=False, bidirectional=bidirectional, produceCell=True, training=True,
        forgetGateLast=False, activation=2, **gates,
    )  # fmt: skip


@pytest.mark.parametrize("bidirectional", [False, True])
def test_lstm_and_its_gradients_match_torch(bidirectional: bool) -> None:
    torch.manual_seed(0)
    model = torch.nn.LSTM(3, 4, bidirectional=bidirectional)
    ways = 2 if bidirectional else 1
    x = normal(5, 2, 3).requires_grad_()
    h, c = normal(ways, 2, 4).requires_grad_(), normal(ways, 2, 4).requires_grad_()
    want, (last, cell) = model(x, (h, c))
    named = dict(model.named_parameters())
    ends = ["l0", "l0_reverse"][:ways]
    recurrent = torch.stack([named[f"weight_hh_{end}"] for end in ends])
    recurrent = recurrent if bidirectional else recurrent[0]
    weight = torch.cat([named[f"weight_ih_{end}"] for end in ends])
    bias = torch.cat([named[f"bias_ih_{end}"] + named[f"bias_hh_{end}"] for end in ends])
    start = [t.detach().transpose(0, 1).flatten(1) for t in (h, c)]
    d = lstm_descriptor(bidirectional)
    given = [t.detach() for t in (x, recurrent, weight, bias)]
    states, cells, inner = of(
        "LSTMWithSourceTensor:recurrentWeight:inputWeight:bias:initState:initCell:descriptor", *given, *start, d
    )
    torch.testing.assert_close(states, want)
    assert inner.shape == (5, 2, 16 * ways)
    weights = [normal(*t.shape) for t in (want, last, cell)]
    leaves = [x, named["weight_ih_l0"], named["bias_ih_l0"], h, c]
    by_x, by_weight, by_bias, by_h, by_c = torch.autograd.grad((want, last, cell), leaves, weights)
    selector = (
        "LSTMGradientsWithSourceTensor:recurrentWeight:sourceGradient:zState:cellOutputFwd:stateGradient:cellGradient:"
        "inputWeight:bias:initState:initCell:mask:peephole:descriptor"
    )
    final = [t.transpose(0, 1).flatten(1) for t in weights[1:]]
    got = of(selector, given[0], given[1], weights[0], inner, cells, *final, *given[2:], *start, None, None, d)
    torch.testing.assert_close(got[0], by_x)
    torch.testing.assert_close(got[2][:16], by_weight)
    torch.testing.assert_close(got[3].flatten()[:16], by_bias)
    torch.testing.assert_close(got[4], by_h.transpose(0, 1).flatten(1))
    torch.testing.assert_close(got[5], by_c.transpose(0, 1).flatten(1))


def drawn(distribution: int, dtype: torch.dtype, seed: int = 1, **limits: float) -> torch.Tensor:
    plain = {"min": 0.0, "max": 1.0, "mean": 0.0, "standardDeviation": 1.0, "minInteger": 0, "maxInteger": 0}
    d = descriptor("MPSGraphRandomOpDescriptor", distribution=distribution, dataType=MPS[dtype], **{**plain, **limits})
    state = of("randomPhiloxStateTensorWithSeed", seed)
    made: list[torch.Tensor] = of("randomTensorWithShape:descriptor:stateTensor", [100, 100], d, state)
    assert made[0].dtype is dtype and made[1].shape == state.shape and not torch.equal(made[1], state)
    return made[0]


def test_random_numbers_follow_their_distribution_and_state() -> None:
    uniform = drawn(0, torch.float32, min=2.0, max=4.0)
    assert uniform.min() >= 2 and uniform.max() < 4 and abs(uniform.mean() - 3) < 0.05
    whole = drawn(0, torch.int32, minInteger=-2, maxInteger=3)
    assert whole.unique().tolist() == [-2, -1, 0, 1, 2, 3]
    assert drawn(0, torch.int32, minInteger=5, maxInteger=5).unique().tolist() == [5]
    assert drawn(0, torch.int32, maxInteger=2**63 - 1).unique().numel() > 9000
    bell = drawn(1, torch.float32, mean=5.0, standardDeviation=2.0)
    assert abs(bell.mean() - 5) < 0.1 and abs(bell.std() - 2) < 0.1
    cut = drawn(2, torch.float32, min=-1.0, max=0.5)
    assert cut.min() >= -1 and cut.max() <= 0.5 and abs(cut.mean() + 0.21) < 0.03
    assert torch.equal(uniform, drawn(0, torch.float32, min=2.0, max=4.0))
    assert not torch.equal(uniform, drawn(0, torch.float32, seed=2, min=2.0, max=4.0))


def test_a_plain_resize_repeats_or_interpolates() -> None:
    selector, x = "resizeTensor:size:mode:centerResult:alignCorners:layout", normal(1, 2, 3, 2)
    repeated = of(selector, x, [6, 4], 0, True, False, 0)
    assert torch.equal(repeated, x.repeat_interleave(2, 2).repeat_interleave(2, 3))
    torch.testing.assert_close(of(selector, x, [5, 7], 1, True, False, 0), F.interpolate(x, (5, 7), mode="bilinear"))
    aligned = F.interpolate(x, (5, 7), mode="bilinear", align_corners=True)
    torch.testing.assert_close(of(selector, x, [5, 7], 1, False, True, 0), aligned)


def test_dropout_keeps_the_mean() -> None:
    made = of("dropoutTensor:rate", torch.ones(100, 100), 0.25)
    assert set(made.unique().tolist()) == {0.0, torch.tensor(1 / 0.75).item()}
    assert abs(made.mean() - 1) < 0.05


def test_attention_matches_torch() -> None:
    q, k, v, mask = normal(2, 3, 4, 5), normal(2, 3, 6, 5), normal(2, 3, 6, 7), normal(4, 6)
    selector = "scaledDotProductAttentionWithQueryTensor:keyTensor:valueTensor:maskTensor:scale"
    want = F.scaled_dot_product_attention(q, k, v, mask, scale=0.3)
    torch.testing.assert_close(of(selector, q, k, v, mask, 0.3), want)
