"""Integers that are too wide for their type on the way to an address: each at its line, and what may wrap passes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options, compile_kernels, host_names
from aten_overlay.metal.launch import Library

SOURCE = Path(__file__).with_name("widths.metal")


@cache
def load() -> Library:
    return Library(compile_kernels(SOURCE, host_names(SOURCE), Options(sanitize=("bounds", "overflow"))))


def run(kernel: str, a: int, b: int) -> np.ndarray:
    out, x = np.zeros(16, np.float32), np.arange(16, dtype=np.float32)
    load().run(kernel, [out, x, np.array([a], np.int32), np.array([b], np.int32)], [8], [8])
    return out


@pytest.mark.parametrize(
    ("kernel", "a", "b", "message"),
    [
        ("product", 65536, 65536, "multiplies 65536 and 65536 in unsigned 32 bits on the way to an address: the result, 4294967296, is out of range and wraps to 0"),
        ("product_of_signed", 65536, 32768, "multiplies 65536 and 32768 in 32 bits on the way to an address: the result, 2147483648, is out of range and wraps to -2147483648"),
        ("sum", 2147483647, 2, "adds 2147483647 and 2 in 32 bits on the way to an address: the result, 2147483649, is out of range and wraps to -2147483647"),
        ("conversion", 40000, 0, "converts 40000 to 16 bits on the way to an address: it becomes -25536"),
        ("narrow_size", 1 << 30, 4, "converts 4294967296 to 32 bits on the way to an address: it becomes 0"),
        ("shift", 1 << 20, 12, "shifts 1048576 left by 12 in unsigned 32 bits on the way to an address: the result, 4294967296, is out of range and wraps to 0"),
        ("amount", 0, 32, "shifts 1 left by 32 in 32 bits on the way to an address: Metal shifts by 0"),
        ("amount", 0, -1, "shifts 1 left by -1 in 32 bits on the way to an address: Metal shifts by 31"),
        ("amount_to_the_right", 5, 0, "shifts 5 right by 32 in 32 bits on the way to an address: Metal shifts by 0"),
        ("amount_of_signed", -5, 33, "shifts -5 right by 33 in 32 bits on the way to an address: Metal shifts by 1"),
        ("amount_of_long", 0, 64, "shifts 1 left by 64 in 64 bits on the way to an address: Metal shifts by 0"),
        ("member", 65536, 65536, "multiplies 65536 and 65536 in 32 bits on the way to an address: the result, 4294967296, is out of range and wraps to 0"),
        ("array", 65536, 65536, "multiplies 65536 and 65536 in 32 bits on the way to an address: the result, 4294967296, is out of range and wraps to 0"),
        ("vector", 65536, 65536, "multiplies 65536 and 65536 in unsigned 32 bits on the way to an address: the result, 4294967296, is out of range and wraps to 0"),
        ("difference_of_vectors", -2147483648, 1, "subtracts 1 from -2147483648 in 32 bits on the way to an address: the result, -2147483649, is out of range and wraps to 2147483647"),
        ("counter", 300, 0, "adds 255 and 1 in unsigned 8 bits on the way to an address: the result, 256, is out of range and wraps to 0"),
        ("rounded", 5000, 4, "converts 40000 to 16 bits on the way to an address: it is out of range"),
        ("rounded_below_zero", 2, 0, "converts -2 to unsigned 32 bits on the way to an address: it is out of range"),
        ("middle", 1 << 30, (1 << 30) + 5, "adds 1073741824 and 1073741829 in 32 bits on the way to an address: the result, 2147483653, is out of range and wraps to -2147483643"),
        ("remainder", 65536, 65536, "multiplies 65536 and 65536 in 32 bits on the way to an address: the result, 4294967296, is out of range and wraps to 0"),
        ("quotient", 65536, 65536, "multiplies 65536 and 65536 in unsigned 32 bits on the way to an address: the result, 4294967296, is out of range and wraps to 0"),
        ("only_compared", 65536, 32768, "multiplies 65536 and 32768 in 32 bits on the way to an address: the result, 2147483648, is out of range and wraps to -2147483648"),
        ("through_float", 16777217, 0, "converts 16777217 to float on the way to an address, which holds 24 bits of it"),
        ("through_half", 2049, 0, "converts 2049 to half on the way to an address, which holds 11 bits of it"),
        ("infinite_half", 65536, 0, "converts 65536 to half on the way to an address: it becomes infinity"),
        ("copied_float", 16777217, 0, "converts 16777217 to float on the way to an address, which holds 24 bits of it"),
        ("negated_float", 16777217, 0, "converts 16777217 to float on the way to an address, which holds 24 bits of it"),
        ("unannotated", 65536, 0, "multiplies 65536 and 65536 in unsigned 32 bits on the way to an address: the result, 4294967296, is out of range and wraps to 0"),
    ],
)  # fmt: skip
def test_a_value_that_is_lost_is_named(kernel: str, a: int, b: int, message: str) -> None:
    run(kernel, 5, 1)
    with pytest.raises(OverlayError) as refused:
        run(kernel, a, b)
    lines = SOURCE.read_text().split("\n")
    line = next(number for number, text in enumerate(lines, 1) if text.endswith(f"// {kernel}"))
    assert refused.value.code == "PTR282"
    assert refused.value.what.startswith(f"kernel `{kernel}` {message}, at ")
    assert f"widths.metal:{line}, in thread (0, 0, 0)" in refused.value.what


def test_a_function_that_returns_an_index_is_followed() -> None:
    with pytest.raises(OverlayError, match=r"PTR282 kernel `product_in_a_helper` multiplies .* at .*widths\.metal:8,"):
        run("product_in_a_helper", 65536, 65536)


def test_a_negative_number_that_became_unsigned_is_named_where_it_is_out_of_bounds() -> None:
    assert run("unsigned_position", 2, 0)[0] == 2
    with pytest.raises(OverlayError) as refused:
        run("unsigned_position", -3, 0)
    assert refused.value.code == "PTR264"
    assert "a number that is -3 where it is signed became 4294967293 on the way to an address" in refused.value.what
    assert refused.value.what.count("widths.metal:") == 1


@pytest.mark.parametrize(
    ("kernel", "grid", "group", "message"),
    [
        ("narrow_position", [65537], [32], "positions in 16 bits, .* 65537 threads along x"),
        ("narrow_groups", [1, 65537], [1, 1], "positions in 16 bits, .* 65537 threadgroups along y"),
        ("narrow_count", [65536], [32], "counts in 16 bits, .* 65536 threads along x"),
        ("narrow_count_of_groups", [1, 65536], [1, 1], "counts in 16 bits, .* 65536 threadgroups along y"),
    ],
)
def test_positions_of_16_bits_count_no_more_than_they_can(
    kernel: str, grid: list[int], group: list[int], message: str
) -> None:
    arrays = [np.zeros(16, np.float32), np.ones(16, np.float32)]
    load().run(kernel, arrays, [*grid[:-1], grid[-1] - 1], group)
    with pytest.raises(OverlayError, match=rf"PTR282 kernel `{kernel}` takes {message}"):
        load().run(kernel, arrays, grid, group)


@pytest.mark.parametrize(
    ("kernel", "a", "b"),
    [
        ("data", 1 << 20, 1 << 20), ("hash", 1 << 30, 0), ("negative_stride", -1, 0), ("annotated", 65536, 0),
        ("product_repaired", 65536, 65536), ("down_to_zero", 5, 0), ("data_in_places", 1 << 30, 12345), ("conversion_repaired", 40000, 0),
        ("middle_repaired", 1 << 30, (1 << 30) + 5), ("only_compared_repaired", 65536, 32768), ("data_compared", 5, 0), ("hash_in_a_branch", 1 << 30, 0),
        ("through_float_repaired", 16777217, 0), ("through_float", 1 << 30, 0), ("scaled", 16777217, 0), ("counted_in_float", 16777217, 0),
        ("square_root", 16777217, 0), ("multiplied_and_added", 16777217, 0),
        ("amount_repaired", 5, 0), ("rotated_hash", 5, 0), ("rotated_hash", 5, 40), ("bit_of_a_mask", 5, 34), ("amount_of_long", 0, 63),
    ],
)  # fmt: skip
def test_what_wraps_on_purpose_and_what_is_wide_enough_pass(kernel: str, a: int, b: int) -> None:
    run(kernel, a, b)


def test_without_the_check_integers_wrap_as_the_language_says() -> None:
    library = Library(compile_kernels(SOURCE, ("product",), Options(sanitize=("bounds",))))
    out, x = np.zeros(16, np.float32), np.arange(16, dtype=np.float32)
    library.run("product", [out, x, np.array([65536], np.int32), np.array([65536], np.int32)], [8], [8])
    assert out[:8].tolist() == list(range(8))
