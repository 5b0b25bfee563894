"""The kernels that resample against torch, over tensors whose strides have gaps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
import torch

from porter.core.dtypes import FLOAT, FLOAT2, HALF
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.form import Argument
from porter.metal.forms.resampling import Resampling, Sampling
from tests.porter.metal.compiled import compile_soon
from tests.porter.metal.forms.launching import count_threads, with_gaps

HEADS = "#include <c10/metal/utils.h>\nusing namespace metal;\n"
MODES = {
    (Sampling.NEAREST, 1): "upsample_nearest1d", (Sampling.NEAREST, 2): "upsample_nearest2d",
    (Sampling.NEAREST, 3): "upsample_nearest3d", (Sampling.NEAREST_EXACT, 1): "_upsample_nearest_exact1d",
    (Sampling.NEAREST_EXACT, 2): "_upsample_nearest_exact2d", (Sampling.LINEAR, 1): "upsample_linear1d",
    (Sampling.LINEAR, 2): "upsample_bilinear2d",
}  # fmt: skip
SIZES = ((5, 7), (7, 3), (4, 8), (6, 1), (1, 5), (3, 40), (40, 3))  # of a dimension, before and after


def find_ratios(small: Sequence[int], large: Sequence[int], scale: float | None, aligned: bool) -> list[float]:
    """What the host code passes: ATen's `area_pixel_compute_scale`."""
    if aligned:
        return [(s - 1) / (n - 1) if n > 1 else 0.0 for s, n in zip(small, large, strict=True)]
    return [1 / scale if scale else s / n for s, n in zip(small, large, strict=True)]


def launch(
    found: Resampling, source: torch.Tensor, shape: Sequence[int], ratios: list[float], aligned: bool
) -> torch.Tensor:
    """The result that a kernel writes to."""
    kernel = found.write_kernels("tested", (FLOAT,), KernelStyle(True, False))
    library = compile_soon(HEADS + kernel.source, "tested_float_int")
    result = with_gaps(torch.full(tuple(shape), -1.0))

    def value(argument: Argument) -> torch.Tensor:
        tensor = source if argument.tensor == found.source else result
        made = {
            "tensor": tensor, "sizes": torch.tensor(tensor.shape), "strides": torch.tensor(tensor.stride()),
            "ratios": torch.tensor(ratios, dtype=torch.float32), "flag": torch.tensor([aligned]),
        }  # fmt: skip
        return made[argument.kind]

    threads = result.numel() if found.is_gradient else count_threads(result)
    library.run("tested_float_int", [value(each) for each in kernel.arguments], (threads,), (32,))
    return result


def assert_gradient(made: torch.Tensor, expected: torch.Tensor | None, has_shares: bool) -> None:
    assert expected is not None
    bound = 1e-5 * expected.abs().max().item() if has_shares else 0.0  # shares are of positions up to 42, in float
    torch.testing.assert_close(made.double(), expected, rtol=0.0, atol=bound)


@pytest.mark.parametrize(("sampling", "rank"), MODES)
def test_a_kernel_and_its_gradient(sampling: Sampling, rank: int) -> None:
    op = getattr(torch.ops.aten, MODES[sampling, rank]).default
    is_linear = sampling is Sampling.LINEAR
    names = ("d", "h", "w")[-rank:]
    for (before, after), aligned in product(SIZES, (False, True) if is_linear else (False,)):
        small, large = [before, before + 1, before + 2][:rank], [after, after + 2, after + 1][:rank]
        source = torch.randn(2, 3, *small, dtype=torch.float64, requires_grad=True)
        expected = op(source, large, *((aligned,) if is_linear else ()))
        ratios = find_ratios(small, large, None, aligned)
        if not is_linear:
            read = Resampling(sampling, "self", names)
            made = launch(read, with_gaps(source.detach().float()), expected.shape, ratios, aligned)
            assert made.equal(expected.detach().float())
        gradient = torch.randint(-8, 9, expected.shape).double()  # whose sums are exact
        expected.backward(gradient)
        back = Resampling(sampling, "grad_output", names, "align_corners" if is_linear else "", True)
        made = launch(back, with_gaps(gradient.float()), source.shape, ratios, aligned)
        assert_gradient(made, source.grad, is_linear)


@pytest.mark.parametrize("sampling", list(Sampling))
def test_scales_that_are_given(sampling: Sampling) -> None:
    """Scales that are not the ratio of the sizes, also such that results read past the last element."""
    op = getattr(torch.ops.aten, MODES[sampling, 1]).default
    for scale, (before, after) in product((0.4, 1.7, 2.6), ((7, 11), (9, 4))):
        source = torch.randn(2, 3, before, dtype=torch.float64, requires_grad=True)
        expected = op(source, [after], *((False,) if sampling is Sampling.LINEAR else ()), scale)
        gradient = torch.randint(-8, 9, expected.shape).double()  # whose sums are exact
        expected.backward(gradient)
        back = Resampling(sampling, "grad_output", ("w",), "align_corners" if sampling is Sampling.LINEAR else "", True)
        ratios = find_ratios([before], [after], scale, False)
        made = launch(back, with_gaps(gradient.float()), source.shape, ratios, False)
        assert_gradient(made, source.grad, sampling is Sampling.LINEAR)


def test_a_gradient_walks_few_results() -> None:
    """The text bounds its loops by the inverse, and not by the size of the gradient alone."""
    back = Resampling(Sampling.NEAREST, "grad_output", ("w",), "", True)
    source = back.write_kernels("tested", (FLOAT,), KernelStyle(True, False)).source
    assert "first_w = max(index_t(w / ratios[0]) - 2, index_t(0));" in source
    assert "min(index_t((w + 1) / ratios[0]) + 3, index_t(grad_output_sizes[2]))" in source


def test_the_types_of_a_kernel() -> None:
    moved = Resampling(Sampling.NEAREST, "self", ("w",), dtypes=(FLOAT,))
    assert FLOAT2 in moved.list_types(tuple, refuses_complex=False)
    assert FLOAT2 not in moved.list_types(tuple, refuses_complex=True)
    gradient = Resampling(Sampling.NEAREST, "self", ("w",), "", True, (HALF, FLOAT))
    assert gradient.list_types(tuple, refuses_complex=False) == [FLOAT, HALF]
