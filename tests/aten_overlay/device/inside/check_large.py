"""Offsets in 32 bits are found in tensors that take no memory; the same kernels with 64 bits are right.

The faults are those of upstream's pull requests and issues that the kernels name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch

from aten_overlay.device import load
from aten_overlay.device.large import sparse_memory
from aten_overlay.device.placements import (
    BOUNDARIES,
    PLACEMENTS,
    Boundary,
    Placement,
    allocate,
    find_extents,
    place,
)
from aten_overlay.device.shader import ShaderLibrary

BYTES, HALF, WHOLE = BOUNDARIES
OFFSET, FIRST, LAST = PLACEMENTS

# 189960: rows joined into a wide output; the output's offset is a sum of products in the index type.
CAT = """
kernel void cat(device float* output, constant float* input, constant long* strides, constant uint& columns,
                uint2 at [[thread_position_in_grid]]) {{
  {index} offset = 0;
  offset += at.y * {index}(strides[0]);
  offset += at.x * {index}(strides[1]);
  output[offset] = input[at.y * columns + at.x];
}}
"""
# 182052, 185663: a column's offset is a product of two strides, in uint.
COLUMNS = """
kernel void columns(device float* output, constant float* input, constant {index}& stride,
                    uint2 at [[thread_position_in_grid]]) {{
  {index} offset = at.y * stride + at.x;
  output[at.y * 4 + at.x] = 2 * input[offset];
}}
"""
# 197636: a batch's matrix starts at its number times the matrix's size.
BATCHES = """
kernel void batches(device float* output, constant float* left, constant float* right, constant long& batch_stride,
                    uint3 at [[thread_position_in_grid]]) {{
  constant float* matrix = left + {index}(at.z) * {index}(batch_stride);
  float sum = 0;
  for (uint k = 0; k < 4; ++k) sum += matrix[at.y * 4 + k] * right[at.z * 16 + k * 4 + at.x];
  output[at.z * 16 + at.y * 4 + at.x] = sum;
}}
"""


@pytest.fixture(autouse=True)
def sparse() -> Iterator[None]:
    with sparse_memory():
        yield


def library(source: str, index: str) -> ShaderLibrary:
    device = load.started()
    assert device is not None
    return ShaderLibrary(f"#include <metal_stdlib>\n{source.format(index=index)}", device, checked=True)


def laid_out(shape: Sequence[int], placement: Placement, boundary: Boundary) -> tuple[torch.Tensor, torch.Tensor]:
    values = torch.arange(1.0, 1 + torch.Size(shape).numel()).view(*shape)
    placed = place(values, placement, boundary)
    assert placed is not None
    return values, placed


@pytest.mark.parametrize("checks", ["all", "none"])
@pytest.mark.parametrize("boundary", [HALF, WHOLE], ids=["half", "whole"])
def test_a_sum_of_strides_in_int(boundary: Boundary, checks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTER_SANITIZE", checks)
    values, out = laid_out((3, 4), FIRST, boundary)
    given = torch.rand(3, 4)
    arguments = (out, given.to("mps"), list(out.stride()), [4])
    with pytest.raises(RuntimeError, match=r"PTR270 kernel `cat` writes 4 bytes .* of argument `output`"):
        library(CAT, "int").cat(*arguments, threads=(4, 3), group_size=(4, 3), arg_casts={3: "int32"})
    library(CAT, "long").cat(*arguments, threads=(4, 3), group_size=(4, 3), arg_casts={3: "int32"})
    torch.testing.assert_close(out.cpu(), given)
    assert not torch.equal(given, values)


def test_a_product_in_uint() -> None:
    values, given = laid_out((3, 4), FIRST, WHOLE)
    output = torch.empty(3, 4, device="mps")
    with pytest.raises(RuntimeError, match=r"PTR270 kernel `columns` reads 4 bytes .* of argument `input`"):
        library(COLUMNS, "uint").columns(
            output, given, given.stride(0) % (1 << 32), threads=(4, 3), group_size=(4, 3), arg_casts={2: "int32"}
        )
    library(COLUMNS, "ulong").columns(output, given, given.stride(0), threads=(4, 3), group_size=(4, 3))
    torch.testing.assert_close(output.cpu(), 2 * values)


def test_a_batch_that_starts_past_32_bits() -> None:
    values, left = laid_out((3, 4, 4), FIRST, WHOLE)
    right, output = torch.rand(3, 4, 4), torch.empty(3, 4, 4, device="mps")
    arguments = (output, left, right.to("mps"), left.stride(0))
    with pytest.raises(RuntimeError, match=r"PTR270 kernel `batches` .* of argument `left`"):
        library(BATCHES, "uint").batches(*arguments, threads=(4, 4, 3), group_size=(4, 4, 3))
    library(BATCHES, "ulong").batches(*arguments, threads=(4, 4, 3), group_size=(4, 4, 3))
    torch.testing.assert_close(output.cpu(), values @ right)


def test_an_offset_of_bytes_in_32_bits() -> None:
    values, given = laid_out((3, 4), FIRST, BYTES)
    source = """
    kernel void at_bytes(device float* output, constant char* input, constant long& stride,
                         uint2 at [[thread_position_in_grid]]) {{
      output[at.y * 4 + at.x] = *(constant float*)(input + {index}(at.y * stride * 4 + at.x * 4));
    }}
    """
    output = torch.empty(3, 4, device="mps")
    with pytest.raises(RuntimeError, match=r"PTR270 kernel `at_bytes` .* it has one at byte"):
        library(source, "uint").at_bytes(output, given, given.stride(0), threads=(4, 3), group_size=(4, 3))
    library(source, "long").at_bytes(output, given, given.stride(0), threads=(4, 3), group_size=(4, 3))
    torch.testing.assert_close(output.cpu(), values)


def test_memory_is_taken_for_what_is_touched_alone() -> None:
    before = _resident()
    kept = [laid_out((2, 1000), placement, WHOLE)[1] for placement in PLACEMENTS[:2] for _ in range(8)]
    assert sum(each.untyped_storage().nbytes() for each in kept) > 200 << 30
    assert _resident() - before < 64 << 20


def test_addresses_are_used_again() -> None:
    for _ in range(300):
        assert float(laid_out((2, 2), OFFSET, WHOLE)[1].sum()) == 10


def test_fresh_sparse_memory_is_zero_after_use() -> None:
    first = allocate((4,), torch.float32, ((1,), 1 << 32))
    first.copy_(torch.ones(4))
    address = first.untyped_storage().data_ptr()
    del first
    again = allocate((4,), torch.float32, ((1,), 1 << 32))
    assert again.untyped_storage().data_ptr() == address
    assert again.cpu().tolist() == [0, 0, 0, 0]


def test_extents_are_those_of_the_elements() -> None:
    layout = FIRST.lay_out((2, 3), 1 << 32)
    assert layout is not None
    (low, _), (far, end) = find_extents((2, 3), layout, 4)
    assert (low, end - far) == (0, 12) and far == layout[0][0] * 4 > 1 << 34
    assert LAST.lay_out((1, 3), 1 << 32) is None
    assert FIRST.lay_out((1, 1), 1 << 32) is None


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
