"""The kernel of matrix products against float64: of any sizes and strides, and with faults that are planted in it."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aten_overlay.metal.launch import Library
from porter.core import dtypes
from porter.core.dtypes import FLOAT, FLOAT2, HALF, INT, LONG, UCHAR, DType
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.contraction import TILE, Contraction, Operands
from porter.metal.helpers import read_helper
from tests.porter.metal.compiled import compile_soon

HEADS = "#include <c10/metal/utils.h>\n#include <metal_simdgroup_matrix>\nusing namespace metal;\n"
TYPES = (FLOAT, HALF, INT, LONG, UCHAR, FLOAT2)
PRODUCT = Contraction(Operands.BATCHES, "self", "mat2")
SIZES = st.sampled_from((1, 2, 7, 8, 9, 31, 32, 33, 40, 65))
TILES = (TILE, 64)
FAULTS = {
    "rows and columns exchanged": ("uint2(at % N, at / N) : uint2(at / 16, at % 16)", "uint2(at / N, at % N) : uint2(at % 16, at / 16)"),
    "the rest of the inner dimension left out": ("k < inner; k += 16", "k + 16 <= inner; k += 16"),
    "what lies behind the inner dimension": ("index_t(place.y) < length", "index_t(place.y) <= length"),
    "the elements before": ("const index_t next = k + 16;", "const index_t next = k;"),
    "one half of the tile twice": ("side_row = simdgroup / 2 * SIDE", "side_row = simdgroup % 2 * SIDE"),
    "the last column left out": ("x < columns)", "x + 1 < columns)"),
    "one behind the other for batches": ("left + batch * index_t(strides[3])", "left + batch * (inner + 1)"),
    "what is added taken once": ("scale_sum(static_cast<T>(added[from]), scales[1], factors[1])", "static_cast<T>(added[from])"),
    "one part of a sum left out": ("i < (are_adjacent ? 8 : 32)", "i < (are_adjacent ? 7 : 32)"),
    "a vector by the steps of the matrix": ("vector[k * vector_step]", "vector[k * inner_step]"),
    "the last element of a vector left out": ("if (at >= length ||", "if (at + 1 >= length ||"),
    "sums in the type of elements": ("using total_t = c10::metal::opmath_t<T>;", "using total_t = T;"),
}  # fmt: skip


def write_source(types: tuple[DType, ...]) -> str:
    kernels = PRODUCT.write_kernels("tested", types, KernelStyle(True, False))
    return f"{HEADS}{read_helper('ProductTile.metal')}{kernels.source}"


def build(source: str, types: tuple[DType, ...], tiles: tuple[int, ...] = (TILE,)) -> Library:
    names = [f"tested_vector_{dtype.metal}_int" for dtype in types]
    for dtype in types:
        names += [f"tested_{dtype.metal}_int_{tile}" for tile in tiles if tile == TILE or dtype == FLOAT]
    return compile_soon(source, *names)


@cache
def whole() -> Library:
    return build(write_source(TYPES), TYPES, TILES)


def multiply(
    library: Library, first: torch.Tensor, second: torch.Tensor, added: torch.Tensor | None = None,
    scales: tuple[complex, complex] = (1, 0), summed: int = 1, tile: int = TILE,
) -> torch.Tensor:  # fmt: skip
    """What the kernel makes of operands with three dimensions each."""
    batches, rows, inner = first.shape
    columns = second.shape[-1]
    output = torch.full((batches // summed, columns, rows), 7, dtype=first.dtype).mT  # with strides of its own
    addend = output if added is None else added.expand_as(output)
    tensors = (output, first, second, addend)
    strides = [stride for tensor in tensors for stride in tensor.stride()]
    dtype = next(each for each in dtypes.ALL if f"torch.{each.torch}" == str(first.dtype))
    arguments = [
        *(tensor if tensor.numel() else output for tensor in tensors),
        torch.tensor([rows, columns, inner, summed]), torch.tensor(strides),
        torch.view_as_real(torch.tensor(scales, dtype=torch.complex64)),
        torch.tensor([int(complex(scale).real) for scale in scales]),
    ]  # fmt: skip
    if min(rows, columns) == 1 and tile == TILE:
        size = -(-rows * columns // 8) * 256, 1, batches // summed
        library.run(f"tested_vector_{dtype.metal}_int", arguments, size, (256, 1, 1))
        return output
    groups = (-(-columns // tile), -(-rows // tile), batches // summed)
    library.run(f"tested_{dtype.metal}_int_{tile}", arguments, (groups[0] * 128, *groups[1:]), (128, 1, 1))
    return output


@st.composite
def matrices(draw: st.DrawFn, batches: int, rows: int, columns: int) -> torch.Tensor:
    """Matrices in memory by rows, by columns, with gaps, or one for all batches; of whole numbers, whose sums are
    exact.
    """
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))

    def fill(*shape: int) -> torch.Tensor:
        return torch.randint(-4, 5, shape, generator=generator).float()

    layout = draw(st.sampled_from(("rows", "columns", "gaps", "one")))
    if layout == "rows":
        return fill(batches, rows, columns)
    if layout == "columns":
        return fill(batches, columns, rows).mT
    if layout == "gaps":
        return fill(batches, rows * 2, columns * 3)[:, ::2, ::3]
    return fill(1, rows, columns).expand(batches, rows, columns)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), rows=SIZES, inner=SIZES, columns=SIZES, batches=st.integers(1, 3), tile=st.sampled_from(TILES))
def test_any_sizes_and_strides(
    data: st.DataObject, rows: int, inner: int, columns: int, batches: int, tile: int
) -> None:
    first = data.draw(matrices(batches, rows, inner))
    second = data.draw(matrices(batches, inner, columns))
    expected = first.double() @ second.double()
    assert torch.equal(multiply(whole(), first, second, tile=tile).double(), expected)
    summed = multiply(whole(), first, second, summed=batches, tile=tile)
    assert torch.equal(summed.double(), expected.sum(0, keepdim=True))


@settings(max_examples=12, deadline=None)
@given(rows=SIZES, inner=SIZES, columns=SIZES, dtype=st.sampled_from((INT, LONG, UCHAR)))
def test_integers_wrap_as_on_the_cpu(rows: int, inner: int, columns: int, dtype: DType) -> None:
    of = getattr(torch, dtype.torch)
    first = torch.randint(0, 255, (1, rows, inner)).to(of) * 1_000_003
    second = torch.randint(0, 255, (1, inner, columns)).to(of) * 7
    assert torch.equal(multiply(whole(), first, second), first @ second)
    added, factors = torch.full((columns,), 3, dtype=of), (2**32 + 1, 2**33 + 3)
    expected = factors[0] * (first @ second).long() + factors[1] * added.long()
    assert torch.equal(multiply(whole(), first, second, added, factors), expected.to(of))


def test_complex_numbers_and_what_is_added() -> None:
    first, second = (torch.randn(2, *shape, dtype=torch.complex64) for shape in ((33, 12), (12, 40)))
    added, scales = torch.randn(40, dtype=torch.complex64), (2 - 1j, 0.5j)
    expected = scales[0] * (first.to(torch.complex128) @ second.to(torch.complex128)) + scales[1] * added
    torch.testing.assert_close(multiply(whole(), first, second, added, scales), expected.to(torch.complex64))


def test_what_is_added_is_not_read_for_a_factor_of_zero() -> None:
    first, second, added = torch.ones(1, 3, 4), torch.ones(1, 4, 5), torch.full((5,), torch.nan)
    assert multiply(whole(), first, second, added, (1, 0)).eq(4).all()
    assert multiply(whole(), first, second, added, (1, 1)).isnan().all()


def test_an_inner_dimension_without_elements_gives_zeros_and_what_is_added() -> None:
    first, second = torch.ones(2, 33, 0), torch.ones(2, 0, 34)
    assert multiply(whole(), first, second).eq(0).all()
    assert multiply(whole(), first, second, torch.full((1,), 3.0), (1, 2)).eq(6).all()


def test_long_rows_are_as_exact_as_short_ones() -> None:
    """One sum after the other of so many would be off by more."""
    first, second = torch.rand(1, 2, 100_003), torch.rand(1, 100_003, 3)
    expected = first.double() @ second.double()
    torch.testing.assert_close(multiply(whole(), first, second).double(), expected, rtol=1e-6, atol=0)


def find_fault(library: Library) -> bool:
    """Whether products with a library differ from those in float64 by more than rounding."""
    for rows, inner, columns in ((40, 37, 33), (5, 3, 4), (1, 70, 33), (33, 70, 1)):
        first, second = torch.rand(1, inner, rows).half().mT, torch.rand(1, inner, columns).half()
        exact = first.double() @ second.double()
        if not torch.allclose(multiply(library, first, second).double(), exact, rtol=2**-10, atol=0):
            return True
    # In memory, batches are between rows and columns.
    first, second = (
        torch.rand(5, 2, 3).half().mT.transpose(0, 1).contiguous().transpose(0, 1),
        torch.rand(5, 2, 4).half(),
    )
    exact = first.double() @ second.double() + 2
    if not torch.allclose(multiply(library, first, second, torch.ones(1).half(), (1, 2)).double(), exact, rtol=2**-10):
        return True
    first, second = torch.ones(1, 2, 4096).half(), torch.ones(1, 4096, 2).half()
    second[:, 2048:] = 2**-6  # of which a sum in half has none, from 2048 on
    return not torch.equal(multiply(library, first, second), torch.full((1, 2, 2), 2080.0).half())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str) -> None:
    old, new = FAULTS[fault]
    source = write_source((HALF,))
    assert old in source and new != old
    assert find_fault(build(source.replace(old, new), (HALF,)))


def test_without_a_fault_none_is_found() -> None:
    assert not find_fault(whole())
