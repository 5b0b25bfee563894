"""The kernels of Fourier transforms against float64: of any sizes and strides, and with faults that are planted in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import product
from math import ceil, isqrt, prod

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aten_overlay.metal.launch import Library
from porter.core.dtypes import FLOAT, FLOAT2
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.convolution import Fourier
from porter.metal.helpers import read_helper
from tests.porter.metal.compiled import compile_soon
from tests.porter.metal.forms.launching import with_gaps

HEADS = "#include <metal_stdlib>\nusing namespace metal;\n"
TYPES = {torch.float32: "float", torch.complex64: "float2"}
PAIRS = ("float2_float2", "float2_float", "float_float2")
LONGEST = 64  # rows of more elements are transformed in parts here, and those with greater factors as convolutions
GREATEST = 7
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 21, 24, 30, 32, 35, 48, 49, 60, 64, 11, 26, 96, 128, 105, 256)
BOUND = 4e-7  # of the greatest element
FAULTS = {
    "roots of another quarter": ("turned == slope ? root.x : -root.x", "root.x"),
    "a sine of fewer terms": ("fma(square, sine, 7.9692626e-2f)", "7.9692626e-2f"),
    "an eighth too much": ("turn_back(a - b, k * 8 / half_size)", "turn_back(a - b, k * 4 / half_size)"),
    "a term left out": ("q < radix; q++", "q + 1 < radix; q++"),
    "parts that are not turned": ("= whole > 0 ? multiply", "= whole > 100 ? multiply"),
    "a root that is no product": ("multiply(roots[rest], roots[q - rest])", "roots[rest]"),
    "a sixteenth of another half": ("float2(-root.y, -root.x)", "float2(-root.x, -root.y)"),
    "a filter of one side": ("min(ulong(tid), ulong(sizes[1]) - tid)", "ulong(tid)"),
}  # fmt: skip


def build(pairs: Sequence[str], fault: tuple[str, str] = ("", "")) -> Library:
    """The kernels for some pairs of types alone, with one width of indices, perhaps with a fault."""
    kernels = Fourier("self", "dim", "normalization").write_kernels("tested", (FLOAT, FLOAT2), KernelStyle(True, False))
    source = f"{HEADS}{read_helper('find_root.metal')}{re.sub(r'^REGISTER_.*$', '', kernels.source, flags=re.M)}"
    assert fault[0] in source
    source = source.replace(*fault) if fault[0] else source
    for pair, copy in product(pairs, ("", "COPY_")):
        source += f"REGISTER_TESTED_{copy}({pair.replace('_', ', ')}, int);\n"
    names = [f"tested_{copy}{pair}_int" for pair in pairs for copy in ("", "copy_")]
    return compile_soon(source, *names, "tested_chirp")


@cache
def whole() -> Library:
    return build(PAIRS)


class Launcher:
    """Runs kernels as host code does, with rows of few elements in threadgroup memory, and few rows."""

    def __init__(self, library: Library, group_rows: int = 3, longest: int = LONGEST) -> None:
        self.library, self.group_rows, self.longest = library, group_rows, longest

    def rows(self, output: torch.Tensor, input_: torch.Tensor, dim: int) -> list[torch.Tensor]:
        others = [i for i in range(input_.ndim) if i != dim]
        sizes = [input_.shape[i] for i in others] or [1]
        steps = [[each.stride(i) for i in others] or [0] for each in (output, input_)]
        return [
            torch.tensor(sizes),
            *(torch.tensor([*step, each.stride(dim)]) for step, each in zip(steps, (output, input_), strict=True)),
        ]

    def launch(
        self,
        output: torch.Tensor,
        input_: torch.Tensor,
        dim: int,
        size: int,
        is_folded: bool,
        is_forward: bool,
        scale: float,
        whole: int = 0,
    ) -> None:
        rows = self.rows(output, input_, dim)
        count, inner = int(rows[0].prod()), prod(input_.shape[dim + 2 :]) if whole else 1
        group_rows = max(1, min(count, self.group_rows))
        sizes = [size, input_.shape[dim], output.shape[dim], count, len(rows[0]), group_rows, whole, inner, is_folded]
        arguments = [
            output,
            input_,
            torch.tensor(sizes),
            *rows,
            torch.tensor([float(scale)]),
            torch.tensor([is_forward]),
        ]
        threads = group_rows * (size // 16 if size % 16 == 0 else ceil(size / 8))
        name = f"tested_{TYPES[output.dtype]}_{TYPES[input_.dtype]}_int"
        memory = ceil(group_rows * size / 16) * 128
        grid = (ceil(count / group_rows) * threads,)
        self.library.run(name, arguments, grid, (threads,), threadgroup_bytes=(memory,))

    def copy(
        self,
        output: torch.Tensor,
        input_: torch.Tensor,
        dim: int,
        size: int,
        is_folded: bool = False,
        factors: torch.Tensor | None = None,
        scale: float = 1,
    ) -> None:
        rows = self.rows(output, input_, dim)
        sizes = [size, input_.shape[dim], output.shape[dim], len(rows[0]), factors is not None, is_folded]
        arguments = [
            output,
            input_,
            torch.tensor(sizes),
            *rows,
            torch.tensor([float(scale)]),
            output if factors is None else factors,
        ]
        name = f"tested_copy_{TYPES[output.dtype]}_{TYPES[input_.dtype]}_int"
        self.library.run(name, arguments, (output.numel(),), (32,))

    def transform(
        self, output: torch.Tensor, input_: torch.Tensor, dim: int, is_forward: bool, scale: float = 1
    ) -> None:
        """As `transform_along` of host code."""
        size = max(input_.shape[dim], output.shape[dim])
        real = output if input_.is_complex() else input_
        is_folded = not real.is_complex() and size % 2 == 0
        count = size // 2 if is_folded else size

        def make(length: int) -> torch.Tensor:
            return torch.full((*input_.shape[:dim], length, *input_.shape[dim + 1 :]), torch.nan, dtype=torch.complex64)

        if any(
            size % factor == 0 and all(factor % each for each in range(2, factor))
            for factor in range(GREATEST + 1, size + 1)
        ):
            length = 1 << (2 * size - 2).bit_length()
            padded, chirp, filter_ = (
                make(length),
                torch.empty(size, dtype=torch.complex64),
                torch.empty(length, dtype=torch.complex64),
            )
            self.library.run(
                "tested_chirp",
                [chirp, filter_, torch.tensor([size, length]), torch.tensor([is_forward])],
                (length,),
                (32,),
            )
            self.transform(filter_, filter_, 0, True)
            self.copy(padded, input_, dim, size, factors=chirp)
            self.transform(padded, padded, dim, True)
            self.copy(padded, padded, dim, length, factors=filter_)
            self.transform(padded, padded, dim, False)
            self.copy(output, padded.narrow(dim, 0, size), dim, size, factors=chirp, scale=scale / length)
        elif count <= self.longest:
            is_half = is_folded and output.is_complex()
            self.launch(output, input_, dim, count, is_folded, is_forward, scale / 2 if is_half else scale)
        elif is_folded and all(real.stride(i) == 1 if i == dim else real.stride(i) % 2 == 0 for i in range(real.ndim)):
            pairs = torch.view_as_complex(real.unflatten(dim, (count, 2)).movedim(dim + 1, -1))
            spectrum = make(count)
            if is_forward:
                self.transform(spectrum, pairs, dim, True, scale / 2)
                self.copy(output, spectrum, dim, count, True)
            else:
                self.copy(spectrum, input_, dim, count, True)
                self.transform(pairs, spectrum, dim, False, scale)
        elif input_.shape[dim] < size:
            spectrum = make(size)
            self.copy(spectrum, input_, dim, size)
            self.transform(output, spectrum, dim, is_forward, scale)
        elif output.shape[dim] < size:
            spectrum = make(size)
            self.transform(spectrum, input_, dim, is_forward, scale)
            self.copy(output, spectrum.narrow(dim, 0, output.shape[dim]), dim, output.shape[dim])
        else:
            part = next(each for each in range(isqrt(size), 0, -1) if size % each == 0)
            parts = make(size).unflatten(dim, (part, size // part))
            self.launch(parts, input_.unflatten(dim, (part, size // part)), dim, part, False, is_forward, 1, size)
            self.transform(
                output.unflatten(dim, (size // part, part)).transpose(dim, dim + 1), parts, dim + 1, is_forward, scale
            )


def make(*shape: int, is_complex: bool, has_gaps: bool, seed: int = 0) -> torch.Tensor:
    values = torch.randn(
        shape, dtype=torch.complex64 if is_complex else torch.float32, generator=torch.Generator().manual_seed(seed)
    )
    return with_gaps(values) if has_gaps else values


def differs(
    library: Library,
    size: int,
    before: int,
    behind: int,
    has_gaps: bool,
    group_rows: int = 3,
    longest: int = LONGEST,
    most: int = 5,
) -> bool:
    """Whether a transform of the first `most` kinds along the dimension between two others is not as float64 has it."""
    launcher, half = Launcher(library, group_rows, longest), size // 2 + 1
    numbers = make(before, size, behind, is_complex=True, has_gaps=has_gaps)
    spectrum = make(before, half, behind, is_complex=True, has_gaps=has_gaps, seed=1)
    wide = numbers.to(torch.complex128)
    real = numbers.real if has_gaps else numbers.real.contiguous()
    mirrored = torch.fft.irfft(spectrum.to(torch.complex128), size, dim=1)
    expected = (
        (numbers, torch.fft.fft(wide, dim=1), True),
        (numbers, torch.fft.ifft(wide, dim=1), False),
        (real, torch.fft.fft(wide.real, dim=1), True),
        (real, torch.fft.rfft(wide.real, dim=1), True),
        (spectrum, mirrored, False),
    )
    for input_, result, is_forward in expected[:most]:
        dtype = torch.complex64 if result.is_complex() else torch.float32
        output = make(*result.shape, is_complex=result.is_complex(), has_gaps=has_gaps).fill_(torch.nan)
        launcher.transform(output, input_, 1, is_forward, 1 if is_forward else 1 / size)
        assert output.dtype == dtype
        if not (output - result).abs().max() <= BOUND * result.abs().max() * (4 if size > LONGEST else 1):
            return True
    return False


@settings(max_examples=40, deadline=None)
@given(
    size=st.sampled_from(SIZES),
    before=st.integers(1, 3),
    behind=st.integers(1, 4),
    has_gaps=st.booleans(),
    group_rows=st.integers(1, 5),
    longest=st.sampled_from((LONGEST, 256)),
)
def test_any_sizes_and_strides(
    size: int, before: int, behind: int, has_gaps: bool, group_rows: int, longest: int
) -> None:
    assert not differs(whole(), size, before, behind, has_gaps, group_rows, longest)


def find_fault(library: Library) -> bool:
    """Whether transforms of complex numbers differ: by powers of two and others, in parts, and as a convolution."""
    return any(differs(library, size, 2, 3, has_gaps=True, most=2) for size in (16, 64, 30, 96, 11))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str) -> None:
    assert find_fault(build(PAIRS[:1], FAULTS[fault]))


def test_without_a_fault_none_is_found() -> None:
    assert not find_fault(whole())


def test_infinity_is_not_multiplied_by_zero() -> None:
    output, spectrum = torch.empty(1, 2), torch.tensor([[1, torch.inf]], dtype=torch.complex64)
    Launcher(whole()).transform(output, spectrum, 1, False)
    assert output.tolist() == [[torch.inf, -torch.inf]]
