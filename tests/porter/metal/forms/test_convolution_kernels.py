"""The kernels of convolutions against float64: of any sizes and strides, and with faults that are planted in them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import gcd, prod
from typing import cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aten_overlay.metal.launch import Library
from porter.core.dtypes import FLOAT, HALF, DType
from porter.metal.codegen.host_code import Line
from porter.metal.codegen.host_values import Names
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.convolution import Convolution, Convolved
from porter.metal.forms.form import Site
from porter.metal.helpers import read_helper
from porter.recording.forms.algebra import convolve
from tests.porter.metal.compiled import compile_soon

HEADS = "#include <c10/metal/utils.h>\n#include <metal_simdgroup_matrix>\nusing namespace metal;\n"
TYPES = (FLOAT, HALF)
FORM = Convolution("input", "weight", "output", tuple(Convolved), "bias")
TILES, DIRECT, SLICES = "tested_", "tested_direct_", "tested_slices_"
SIDES = (32, 64)
FAULTS = {
    "a wrong bound of the padding": (TILES, "place < size;", "place <= size;"),
    "a wrong bound of the padding of a line": (DIRECT, "place < size;", "place <= size;"),
    "one dilation for all dimensions": (DIRECT, "is_tap ? 3 + dim : dim", "is_tap ? 5 : dim"),
    "an index that is further without its carry": (TILES, "places[dim - 1]++;", ""),
    "the first group for all": (DIRECT, "source + group * index_t(source_strides[0])", "source"),
    "sums in the type of elements": (DIRECT, "float total = 0, sum = 0;", "T total = 0, sum = 0;"),
    "the tail of a tile left out": (TILES, "k + index_t(at.y) < end", "k + 16 <= end"),
    "a slice that takes what the next one has": (TILES, "end = min(length, begin + index_t(sizes[6]))", "end = length"),
    "lines that lanes have twice": (DIRECT, "line += others", "line += 1"),
    "the last slice left out": (SLICES, "slice < slices; slice++", "slice + 1 < slices; slice++"),
    "the bias once for each slice": (TILES, "sizes[4] && slice == 0", "sizes[4]"),
}  # fmt: skip


def write_source(types: tuple[DType, ...]) -> str:
    kernels = FORM.write_kernels("tested", types, KernelStyle(True, False))
    return f"{HEADS}{read_helper('ProductTile.metal')}{read_helper('SourceSteps.metal')}{kernels.source}"


def build(source: str, types: tuple[DType, ...]) -> Library:
    names = [f"{kernel}{dtype.metal}_int" for dtype in types for kernel in (DIRECT, SLICES)]
    names += [f"{TILES}{dtype.metal}_int_{side}" for dtype in types for side in SIDES]
    return compile_soon(source, *names)


@cache
def whole() -> Library:
    return build(write_source(TYPES), TYPES)


Tensors = dict[str, torch.Tensor]
Numbers = dict[str, list[int]]


def find_part(tensors: Tensors, numbers: Numbers, dim: int, place: int) -> tuple[Tensors, Numbers]:
    """The places of an input a stride apart along a dimension, with the taps that they have products of."""
    stride, dilation = numbers["stride"][dim], numbers["dilation"][dim]
    step, start = stride // gcd(stride, dilation), place + numbers["padding"][dim]
    tap = next((tap for tap in range(step) if (start - tap * dilation) % stride == 0), tensors["weight"].shape[dim + 2])
    front = [slice(None)] * (dim + 2)
    part = {
        **tensors,
        "input": tensors["input"][(*front, slice(place, None, stride))],
        "weight": tensors["weight"][(*front, slice(tap, None, step))],
    }
    changed = {"stride": 1, "dilation": dilation * step // stride, "padding": (start - tap * dilation) // stride}
    return part, {name: [*numbers[name][:dim], number, *numbers[name][dim + 1 :]] for name, number in changed.items()}


def convolve_by_kernel(
    library: Library, computed: Convolved, tensors: Tensors, numbers: Numbers, groups: int, slices: int, side: int
) -> torch.Tensor:
    """What kernels make of operands with five dimensions: tiles of a side, or the one without tiles.

    As in host code, places of an input that lie a stride apart are made together.
    """
    is_input, is_weight = computed is Convolved.INPUT, computed is Convolved.WEIGHT
    first, weight, output = (tensors[name] for name in ("input", "weight", "output"))
    result = torch.full_like({**tensors, "": first}[computed.value.lower()], 7)
    for i, stride in enumerate(numbers["stride"]):
        if is_input and stride > 1:
            for place in range(min(stride, first.shape[i + 2])):
                part, changed = find_part(tensors, numbers, i, place)
                at = (*[slice(None)] * (i + 2), slice(place, None, stride))
                has_taps = part["weight"].numel() > 0
                part_result = (
                    convolve_by_kernel(library, computed, part, changed, groups, slices, side) if has_taps else 0
                )
                result[at] = part_result
            return result
    factors, source = output if is_weight else weight, output if is_input else first
    windows = [first.shape[0], *(first if is_input else output).shape[2:]]
    taps = [weight.shape[0] // groups if is_input else weight.shape[1], *weight.shape[2:]]
    rows = weight.shape[1] if is_input else weight.shape[0] // groups
    columns, inner = (taps, windows) if is_weight else (windows, taps)
    partial = torch.full((slices, *result.shape), torch.nan)

    def strides(tensor: torch.Tensor, is_of_weight: bool) -> torch.Tensor:
        grouped = 0 if is_of_weight else 1
        row = 1 if is_of_weight and is_input else grouped
        group = tensor.shape[grouped] // groups * tensor.stride(grouped)
        return torch.tensor([group, tensor.stride(row), tensor.stride(1 - row), *tensor.stride()[2:]])

    sign = -1 if is_input else 1
    steps = [
        *numbers["stride"], *(sign * each for each in numbers["dilation"]), *(-sign * each for each in numbers["padding"])
    ]  # fmt: skip
    bias = tensors.get("bias") if computed is Convolved.OUTPUT else None
    lanes, share = (32 if prod(inner) > 16 else 1), -(-prod(inner[:3]) // slices)
    line_lanes = min(lanes, 1 << (inner[3] - 1).bit_length())
    if side:
        share = -(-prod(inner) // (slices * 16)) * 16
    added = (bias is not None, 0 if bias is None else bias.stride(0))
    sizes = torch.tensor([rows, slices, result.numel(), is_weight, *added, share, line_lanes])
    arguments = [
        result, partial, factors, source, result if bias is None else bias, sizes, torch.tensor(columns),
        torch.tensor(inner), torch.tensor(source.shape[2:]),
        strides(partial[0] if slices > 1 else result, is_weight), strides(factors, not is_weight),
        strides(source, False), torch.tensor(steps),
    ]  # fmt: skip
    dtype = next(each for each in TYPES if f"torch.{each.torch}" == str(first.dtype))
    if side:
        grid = (-(-prod(columns) // side) * 32, -(-rows // side) * 4, groups * slices)
        library.run(f"{TILES}{dtype.metal}_int_{side}", arguments, grid, (32, 4, 1))
    else:
        grid = (lanes, prod(columns), rows * groups * slices)
        library.run(f"{DIRECT}{dtype.metal}_int", arguments, grid, (lanes, 2, 1))
    if slices > 1:
        arguments = [result, partial, sizes, torch.tensor(result.shape), torch.tensor(result.stride())]
        library.run(f"{SLICES}{dtype.metal}_int", arguments, (result.numel(), 1, 1), (64, 1, 1))
    return result


def make(*shape: int, last: bool = False, seed: int = 0) -> torch.Tensor:
    """Whole numbers, whose sums are exact; with channels `last` in memory."""
    values = torch.randint(-4, 5, shape, generator=torch.Generator().manual_seed(seed)).float()
    return values.to(memory_format=torch.channels_last_3d) if last else values


def make_call(
    batches: int, channels: tuple[int, int], groups: int, sizes: Sequence[int], taps: Sequence[int], numbers: Numbers,
    last: bool = False,
) -> Tensors:  # fmt: skip
    """The tensors of a convolution. Raises ValueError where it has no windows."""
    outputs = [
        (size + 2 * numbers["padding"][i] - numbers["dilation"][i] * (taps[i] - 1) - 1) // numbers["stride"][i] + 1
        for i, size in enumerate(sizes)
    ]
    if min(outputs) < 1:
        raise ValueError("no windows")
    return {
        "input": make(batches, channels[0] * groups, *sizes, last=last),
        "weight": make(channels[1] * groups, channels[0], *taps, last=last, seed=1),
        "output": make(batches, channels[1] * groups, *outputs, last=last, seed=2),
        "bias": make(2, channels[1] * groups, seed=3)[0],
    }


def differs(
    library: Library, tensors: Tensors, numbers: Numbers, groups: int, slices: int, side: int, bound: float = 0
) -> bool:
    """Whether a library computes something otherwise than float64 does."""
    for computed in Convolved:
        shape = tensors[computed.value.lower()].shape
        expected = convolve(FORM, computed, tensors, {**numbers, "groups": groups}, shape)
        result = convolve_by_kernel(library, computed, tensors, numbers, groups, slices, side).double()
        if not torch.allclose(result, expected, rtol=bound, atol=0):
            return True
    return False


THREE = st.tuples(*[st.integers(1, 3)] * 3).map(list)


@settings(max_examples=40, deadline=None)
@given(
    batches=st.integers(1, 3), channels=st.tuples(*[st.sampled_from((1, 2, 3, 9, 33))] * 2), groups=st.integers(1, 3),
    sizes=st.tuples(*[st.integers(1, 6)] * 3), taps=THREE, stride=THREE, dilation=THREE,
    padding=st.tuples(*[st.integers(0, 3)] * 3).map(list), last=st.booleans(), slices=st.integers(1, 3), side=st.sampled_from((0, *SIDES)),
)  # fmt: skip
def test_any_sizes_and_strides(
    batches: int, channels: tuple[int, int], groups: int, sizes: tuple[int, ...], taps: list[int], stride: list[int],
    dilation: list[int], padding: list[int], last: bool, slices: int, side: int,
) -> None:  # fmt: skip
    numbers = {"padding": padding, "stride": stride, "dilation": dilation}
    try:
        tensors = make_call(batches, channels, groups, sizes, taps, numbers, last)
    except ValueError:
        return
    assert not differs(whole(), tensors, numbers, groups, slices, side)


@pytest.mark.parametrize("side", (0, *SIDES))
def test_infinity_times_padding_is_nan(side: int) -> None:
    """As on the CPU, which multiplies the zeros of a padding too."""
    numbers = {"padding": [1, 2, 0], "stride": [2, 1, 3], "dilation": [1, 2, 1]}
    tensors = make_call(2, (2, 3), 1, (3, 6, 5), (2, 2, 3), numbers)
    tensors["weight"][0, 0, 0] = torch.inf
    padded = torch.nn.functional.pad(tensors["input"].abs() + 1, [0, 0, 2, 2, 1, 1])
    expected = torch.nn.functional.conv3d(
        padded, tensors["weight"], tensors["bias"], numbers["stride"], 0, numbers["dilation"]
    )
    tensors["input"] = tensors["input"].abs() + 1
    result = convolve_by_kernel(whole(), Convolved.OUTPUT, tensors, numbers, 1, 2, side)
    assert 0 < int(expected.isnan().sum()) < expected.numel()
    assert torch.equal(result.isnan(), expected.isnan())


def find_fault(library: Library, kernel: str) -> bool:
    """Whether convolutions with a kernel differ from those in float64 by more than rounding."""
    numbers = {"padding": [1, 2, 0], "stride": [2, 1, 3], "dilation": [1, 2, 1]}
    exact = make_call(2, (5, 33), 2, (3, 6, 5), (2, 2, 3), numbers)
    fractions = {name: tensor.abs() / 7 + 0.1 for name, tensor in exact.items()}
    halves = (
        {name: tensor.half() for name, tensor in exact.items()},
        {name: tensor.half() for name, tensor in fractions.items()},
    )
    sides = (0,) if kernel == DIRECT else SIDES
    return any(
        differs(library, tensors, numbers, 2, slices=2, side=side, bound=bound)
        for side in sides
        for tensors, bound in zip(halves, (0, 2**-10), strict=True)
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str) -> None:
    kernel, old, new = FAULTS[fault]
    source = write_source((HALF,))
    assert old in source
    assert find_fault(build(source.replace(old, new), (HALF,)), kernel)


def test_without_a_fault_none_is_found() -> None:
    assert not any(find_fault(whole(), kernel) for kernel in (TILES, DIRECT))


class SameNames:
    """Variables of a function that are called as the arguments are."""

    def variable(self, name: str) -> str:
        return name


@pytest.mark.parametrize("transposed", [True, False])
def test_only_a_transposed_convolution_checks_its_output_padding(transposed: bool) -> None:
    """A gradient has the sizes of an input that there is; MPSGraph refused the others."""
    form = Convolution("" if transposed else "input", "weight", "output", (Convolved.INPUT,))
    kernels = form.write_kernels("tested", TYPES, KernelStyle(True, False))
    lines = form.write_launch(kernels, Site(cast(Names, SameNames()))).nodes
    *checks, call = [line.text for line in lines if isinstance(line, Line)]
    assert call.startswith('run_convolution("tested", Convolved::Input, result0, weight, output, std::nullopt, ')
    expected = """\
for (size_t i = 0; i < stride.size(); i++) {
  const int64_t more = result0.size(i + 2) + 2 * padding[i] - dilation[i] * (weight.size(i + 2) - 1) - 1 - (output.size(i + 2) - 1) * stride[i];
  TORCH_CHECK(more < std::max(stride[i], dilation[i]), "output padding must be smaller than either stride or dilation");
}"""
    assert "\n".join(checks) == (expected if transposed else "")
