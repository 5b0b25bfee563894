"""The kernels of sorted rows against torch, over several blocks, ties, NaN, gaps in memory and shuffled lanes."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aten_overlay.metal.launch import Library
from porter.core.dtypes import BFLOAT, BOOL, CHAR, FLOAT, FLOAT2, HALF, INT, LONG, UCHAR
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.sort import HELPERS, Kept, Sort
from tests.porter.metal.compiled import compile_soon

MEDIAN = Sort("self", Kept.MEDIAN, "dim", dtypes=(FLOAT, INT, BOOL))
# Of each width and kind: elements of 8 and 16 bits are sorted by numbers of 32
TYPES = {
    torch.float32: "float", torch.float16: "half", torch.bfloat16: "bfloat", torch.int64: "long", torch.int32: "int",
    torch.int8: "char", torch.uint8: "uchar", torch.bool: "bool",
}  # fmt: skip
NAN = float("nan")


@cache
def library() -> Library:
    """The stages of all types, and what picks a median of floats."""
    kernels = MEDIAN.write_kernels(
        "tested", (FLOAT, HALF, BFLOAT, LONG, INT, CHAR, UCHAR, BOOL), KernelStyle(True, False)
    )
    names = [f"tested_{stage}_{type_}_int" for stage in ("blocks", "merge") for type_ in TYPES.values()]
    return compile_soon(f"using namespace metal;\n{HELPERS}{kernels.source}", *names, "tested_float_int")


def longs(*values: int) -> torch.Tensor:
    return torch.tensor(values or (0,), dtype=torch.int64)


def sort_rows(rows: torch.Tensor, descending: bool, kept: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What host code does: blocks of this width, four elements a thread, then merges; `kept` elements of each row, in memory with gaps."""
    type_, size, rank = TYPES[rows.dtype], rows.size(-1), longs(rows.ndim)
    flag = torch.tensor([descending])
    shape = (*rows.shape[:-1], kept)

    def make(is_last: bool) -> tuple[torch.Tensor, torch.Tensor]:
        room = (*shape, 2) if is_last else (*rows.shape, 1)
        return torch.zeros(room, dtype=rows.dtype)[..., 0], torch.full(room, -1)[..., 0]

    values, indices = make(width >= size)
    blocks = -(-size // width) * (rows.numel() // size)
    arguments = [values, indices, rows, longs(*rows.shape), longs(*rows.stride()), longs(*values.stride())]
    arguments += [longs(*indices.stride()), rank, longs(values.size(-1)), flag]
    library().run(f"tested_blocks_{type_}_int", arguments, (blocks * width // 4,), (width // 4,))
    while width < size:
        merged, places = make(2 * width >= size)
        arguments = [merged, places, values, indices, longs(*rows.shape), longs(*merged.stride())]
        arguments += [longs(*places.stride()), rank, longs(merged.size(-1)), flag, longs(width)]
        library().run(f"tested_merge_{type_}_int", arguments, (rows.numel() // size * -(-size // 4),), (32,))
        values, indices, width = merged, places, 2 * width
    return values, indices


def check(rows: torch.Tensor, descending: bool, width: int, kept: int | None = None) -> None:
    kept = rows.size(-1) if kept is None else kept
    values, indices = sort_rows(rows, descending, kept, width)
    wanted = torch.sort(rows, stable=True, dim=-1, descending=descending)
    torch.testing.assert_close(values, wanted.values[..., :kept], rtol=0, atol=0, equal_nan=True)
    assert torch.equal(indices, wanted.indices[..., :kept])


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("width", [4, 16, 64])
@pytest.mark.parametrize("dtype", list(TYPES))
def test_rows_of_several_blocks_with_ties(dtype: torch.dtype, width: int, descending: bool) -> None:
    rows = torch.randint(-9, 9, (3, 2, 37)).to(dtype)
    check(rows, descending, width)
    check(torch.stack((rows, rows), -1)[..., 0].transpose(0, 1), descending, width, kept=5)


@pytest.mark.parametrize("descending", [False, True])
def test_nan_is_larger_than_infinity(descending: bool) -> None:
    check(torch.tensor([[2.0, NAN, float("inf"), -float("inf"), NAN, -0.0, 0.0]]), descending, 4)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, -0.0, 1.5, -2.5, NAN, float("inf"), 3e38]), min_size=1, max_size=70),
    st.sampled_from([4, 8, 16, 32]),
    st.booleans(),
)
def test_any_row(elements: list[float], width: int, descending: bool) -> None:
    check(torch.tensor([elements]), descending, width)


@pytest.mark.parametrize("rows", [[[3.0, 1.0, 2.0, 4.0], [5.0, NAN, 1.0, NAN]], [[NAN, NAN], [1.0, 1.0]]])
def test_a_median_is_the_lower_one_or_the_first_nan(rows: list[list[float]]) -> None:
    source = torch.tensor(rows)
    values, indices = torch.zeros(2, 1), longs(-1, -1).reshape(2, 1)
    run_values, run_indices = sort_rows(source, False, source.size(1), 4)
    arguments = [values, indices, run_values.contiguous(), run_indices.contiguous(), longs(*source.shape)]
    arguments += [longs(*values.stride()), longs(*indices.stride()), longs(2)]
    library().run("tested_float_int", arguments, (2,), (2,))
    wanted = torch.sort(source, stable=True, dim=1)
    at = torch.where(source.isnan().any(1), (~source.isnan()).sum(1), (source.size(1) - 1) // 2).unsqueeze(1)
    assert torch.equal(indices, wanted.indices.gather(1, at))
    torch.testing.assert_close(values, source.median(1, keepdim=True).values, rtol=0, atol=0, equal_nan=True)


_RAMPS = """
// Even numbers, or odd ones, from the smallest on or from the largest
struct Ramp {
  int start;
  bool descending;
  long operator[](int i) const { return (descending ? -1 : 1) * (2 * long(i) + start); }
};

kernel void ramps(
    device long* places,
    constant long* at,
    constant long& right,
    constant bool& descending,
    uint tid [[thread_position_in_grid]]) {
  const ulong mask = descending ? ~ulong(0) : 0;
  places[tid] = count_left(Ramp{0, descending}, 1 << 30, Ramp{1, descending}, int(right), int(at[tid]), mask);
}
"""


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("right", [1, 5, 2**30 - 1])
def test_runs_of_2_to_the_30_are_merged_in_32_bits(right: int, descending: bool) -> None:
    tested = compile_soon(f"#include <metal_stdlib>\nusing namespace metal;\n{HELPERS}{_RAMPS}", "ramps")
    at = longs(0, 1, 2, 3, 7, right, 2 * right, 2 * right + 1, 2**30, 2**30 + right - 1, 2**30 + right)
    places = torch.full_like(at, -1)
    tested.run("ramps", [places, at, longs(right), torch.tensor([descending])], (len(at),), (1,))
    assert places.tolist() == [max(-(-count // 2), count - right) for count in at.tolist()]


def test_types() -> None:
    types = MEDIAN.list_types(tuple, False)
    assert {BOOL, LONG, FLOAT} <= set(types) and FLOAT2 not in types


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", list(TYPES))
def test_the_last_values_of_a_type_come_before_what_pads_a_block(dtype: torch.dtype, descending: bool) -> None:
    ends = [float("-inf"), float("inf"), NAN] if dtype.is_floating_point else list_extremes(dtype)
    rows = torch.tensor([*ends, *ends, *ends], dtype=dtype)
    check(rows.repeat(2, 1), descending, 32)
    check(rows.repeat(2, 5), descending, 4)  # the last of several blocks is padded


def list_extremes(dtype: torch.dtype) -> list[int]:
    return [0, 1] if dtype is torch.bool else [torch.iinfo(dtype).min, torch.iinfo(dtype).max]
