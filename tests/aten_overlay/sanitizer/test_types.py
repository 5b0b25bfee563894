"""Tensors bound to pointers of another type: every access is within bounds, and the numbers mean nothing."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import torch

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options, compile_kernels, host_names
from aten_overlay.metal.launch import Library

SOURCE = Path(__file__).with_name("types.metal")


@cache
def load() -> Library:
    return Library(compile_kernels(SOURCE, host_names(SOURCE), Options(sanitize=("bounds",))))


def run(kernel: str, dtype: torch.dtype) -> None:
    load().run(kernel, [torch.zeros(8), torch.ones(8, dtype=dtype)], [8], [8])


@pytest.mark.parametrize(
    ("kernel", "dtype", "message"),
    [
        ("take_half", torch.float32, "for half, and the tensor bound there holds float"),
        ("take_float", torch.float16, "for float, and the tensor bound there holds half"),
        ("take_bfloat", torch.float16, "for bfloat, and the tensor bound there holds half"),
        ("take_vectors", torch.float16, "for float, and the tensor bound there holds half"),
        ("take_int", torch.int64, "for int, and the tensor bound there holds long"),
    ],
)
def test_another_type_is_named(kernel: str, dtype: torch.dtype, message: str) -> None:
    with pytest.raises(OverlayError) as refused:
        run(kernel, dtype)
    assert refused.value.code == "PTR279"
    assert refused.value.what == f"kernel `{kernel}` takes argument `x` (buffer 1) {message}"


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        ("take_half", torch.float16), ("take_bfloat", torch.bfloat16), ("take_float", torch.float32),
        ("take_vectors", torch.float32), ("take_int", torch.int32), ("take_uint", torch.int32),
        ("take_uint", torch.float32), ("take_bytes", torch.float32), ("take_uint", torch.uint8), ("take_float", torch.complex64),
    ],
)  # fmt: skip
def test_the_same_type_its_bits_and_bytes_pass(kernel: str, dtype: torch.dtype) -> None:
    run(kernel, dtype)
