"""Tensors bound to pointers of another type: every access is within bounds, and the numbers mean nothing."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from aten_overlay.device.shader import Numbers
from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options, compile_kernels, host_names
from aten_overlay.metal.launch import Library
from aten_overlay.metal.sanitizer.checks import ALLOW_BYTES

SOURCE = Path(__file__).with_name("types.metal")


@cache
def load() -> Library:
    return Library(compile_kernels(SOURCE, host_names(SOURCE), Options(sanitize=("bounds",))))


def test_an_argument_that_no_thread_reads_may_be_bound_to_anything() -> None:
    load().run("take_half", [torch.zeros(8), torch.ones(8)], [0], [8])
    load().run("skip_half", [torch.zeros(8), torch.ones(8)], [8], [8])


def run(kernel: str, dtype: torch.dtype) -> None:
    load().run(kernel, [torch.zeros(8), torch.ones(8, dtype=dtype)], [8], [8])


@pytest.mark.parametrize(
    ("kernel", "dtype", "message"),
    [
        ("take_half", torch.float32, "as half, and the tensor bound there holds float"),
        ("take_float", torch.float16, "as float, and the tensor bound there holds half"),
        ("take_bfloat", torch.float16, "as bfloat, and the tensor bound there holds half"),
        ("take_vectors", torch.float16, "as float, and the tensor bound there holds half"),
        ("take_int", torch.int64, "as int, and the tensor bound there holds long"),
        ("take_float", torch.bool, "as float, and the tensor bound there holds bool"),
        ("take_truth", torch.float32, "as bool, and the tensor bound there holds float"),
        ("take_float", torch.int32, "as float, and the tensor bound there holds int"),
        ("take_half", torch.int16, "as half, and the tensor bound there holds short"),
    ],
)
def test_another_type_is_named(kernel: str, dtype: torch.dtype, message: str) -> None:
    with pytest.raises(OverlayError) as refused:
        run(kernel, dtype)
    assert refused.value.code == "PTR279"
    assert refused.value.what.startswith(f"kernel `{kernel}` reads argument `x` (buffer 1) {message}, at ")


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        ("take_half", torch.float16), ("take_bfloat", torch.bfloat16), ("take_float", torch.float32),
        ("take_vectors", torch.float32), ("take_int", torch.int32), ("take_uint", torch.int32),
        ("take_uint", torch.float32), ("take_bytes", torch.float32), ("take_uint", torch.uint8), ("take_truth", torch.uint8), ("take_bytes", torch.bool), ("take_float", torch.complex64),
    ],
)  # fmt: skip
def test_the_same_type_its_bits_and_bytes_pass(kernel: str, dtype: torch.dtype) -> None:
    run(kernel, dtype)


LISTS = [
    ("take_list", 3, "int32", ""),
    ("take_list", 3, None, "as int, and the list bound there holds long"),
    ("take_four", 4, "int32", ""),
    ("take_four", 4, None, "as int, and the list bound there holds long"),
    ("take_three", 4, "int32", ""),
    ("take_pair", 2, "int32", ""),
    ("take_pair", 1, None, "a structure whose widest member takes 4 bytes, and the list bound there holds long"),
    ("take_sizes", 3, "int32", ""),
    (
        "take_sizes",
        4,
        "int32",
        "which takes 12 bytes, and the list bound there has 16",
    ),
]


@pytest.mark.parametrize(("kernel", "count", "cast", "message"), LISTS)
def test_a_list_has_the_width_and_the_size_that_its_kernel_reads(
    kernel: str, count: int, cast: str | None, message: str
) -> None:
    bound = [torch.zeros(8), Numbers([*range(1, count + 1)], cast)]
    if not message:
        load().run(kernel, bound, [8], [8])
        return
    with pytest.raises(OverlayError) as refused:
        load().run(kernel, bound, [8], [8])
    assert refused.value.code == "PTR279" and message in refused.value.what


NUMBERS: list[tuple[str, float, str | None, str]] = [
    ("take_number", 7, None, ""),
    ("take_number", -7, None, ""),
    ("take_number", 1 << 31, None, ""),
    ("take_number", 1 << 32, None, "as int, and 4294967296, which is bound there, does not fit"),
    ("take_count", 70000, None, "as short, and 70000, which is bound there, does not fit"),
    ("take_count", -70000, "int32", "as short, and -70000, which is bound there, does not fit"),
    ("take_count", -1, "int32", ""),
    ("take_number", 2.0, None, "as int, and the number bound there holds float"),
    ("take_factor", 2, None, "as float, and the number bound there holds long"),
    ("take_factor", 2.5, None, ""),
    ("take_small", 2.5, "fp16", ""),
    ("take_small", 2.5, "bf16", "as half, and the number bound there holds bfloat"),
    ("take_small", 2.5, None, "which takes 2 bytes, and the host handed over 4"),
    ("take_list", 1 << 40, None, "as int, and 1099511627776, which is bound there, does not fit"),
]


@pytest.mark.parametrize(("kernel", "number", "cast", "message"), NUMBERS)
def test_a_number_is_the_one_that_its_kernel_reads(kernel: str, number: float, cast: str | None, message: str) -> None:
    bound = [torch.zeros(1), Numbers([number], cast)]
    if not message:
        load().run(kernel, bound, [1], [1])
        return
    with pytest.raises(OverlayError) as refused:
        load().run(kernel, bound, [1], [1])
    assert refused.value.code == "PTR279" and message in refused.value.what


def test_a_structure_of_the_host_has_the_size_of_the_kernels() -> None:
    load().run("take_pair", [torch.zeros(8), np.zeros(2, np.int32)], [8], [8])
    with pytest.raises(OverlayError, match=r"PTR279.*which takes 8 bytes, and the host handed over 16"):
        load().run("take_pair", [torch.zeros(8), np.zeros(4, np.int32)], [8], [8])


def test_a_float_of_the_host_is_no_half_of_the_kernel() -> None:
    load().run("take_small", [torch.zeros(8), np.ones(1, np.float16)], [8], [8])
    with pytest.raises(OverlayError, match=r"PTR279.*which takes 2 bytes, and the host handed over 4"):
        load().run("take_small", [torch.zeros(8), np.ones(1, np.float32)], [8], [8])


def test_a_union_of_the_host_may_be_wider_than_its_float() -> None:
    out = torch.zeros(8)
    load().run("take_factor", [out, np.array([3, 9], np.float32)], [8], [8])
    assert out.tolist() == [3.0] * 8


def test_an_integer_of_the_host_may_be_wider() -> None:
    load().run("take_number", [torch.zeros(8), np.ones(1, np.int64)], [8], [8])


def test_a_structure_in_a_tensor_has_members_as_wide_as_its_elements() -> None:
    load().run("take_pair", [torch.zeros(8), torch.tensor([1, 2], dtype=torch.int32)], [8], [8])
    load().run("take_pair", [torch.zeros(8), torch.zeros(8, dtype=torch.uint8)], [8], [8])
    with pytest.raises(
        OverlayError, match=r"PTR279.*widest member takes 4 bytes, and the tensor bound there holds long"
    ):
        load().run("take_pair", [torch.zeros(8), torch.tensor([1, 2])], [8], [8])


def test_views_of_bytes_may_be_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Integers may be parts of anything; a float of another type, a number and a structure are no views."""
    monkeypatch.setenv(ALLOW_BYTES, "1")
    kernels = ["take_half", "take_float", "take_int", "take_pair", "take_number", "take_list"]
    allowed = Library(compile_kernels(SOURCE, kernels, Options(sanitize=("bounds",))))
    for kernel, dtype in (("take_half", torch.int32), ("take_float", torch.int16), ("take_int", torch.float16)):
        with pytest.raises(OverlayError, match="PTR279"):
            run(kernel, dtype)
        allowed.run(kernel, [torch.zeros(8), torch.ones(8, dtype=dtype)], [8], [8])
    with pytest.raises(OverlayError, match="PTR264"):
        allowed.run("take_half", [torch.zeros(4), torch.ones(8, dtype=torch.int32)], [8], [8])
    faults: list[tuple[str, object]] = [
        ("take_half", torch.ones(8)),
        ("take_float", torch.ones(8, dtype=torch.float16)),
        ("take_pair", Numbers([1, 2], None)),
        ("take_pair", torch.tensor([1, 2])),
        ("take_pair", np.zeros(4, np.int32)),
        ("take_number", Numbers([2.0], None)),
        ("take_list", Numbers([1, 2, 3], None)),
    ]
    for kernel, bound in faults:
        with pytest.raises(OverlayError, match="PTR279"):
            allowed.run(kernel, [torch.zeros(8), bound], [8], [8])
