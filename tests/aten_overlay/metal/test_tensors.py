"""Tensors and their products, against numpy in double precision."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import compile_kernels
from aten_overlay.metal.language import LANGUAGES, OLDER_TILES, VARIABLE
from aten_overlay.metal.launch import Library

SOURCE = Path(__file__).with_name("tensors.metal")
NAMES = ("to_memory", "in_steps", "in_registers_half", "in_registers_float_t", "integers", "alone")


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(compile_kernels(SOURCE, NAMES))


def _operand(rows: int, columns: int, dtype: type = np.float16) -> np.ndarray:
    return np.random.default_rng(rows * 1000 + columns).standard_normal((rows, columns)).astype(dtype)


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64)


@pytest.mark.parametrize(("m", "n", "k"), [(64, 32, 16), (70, 45, 19), (1, 1, 1)])
def test_tiles_of_memory_end_where_their_tensors_end(library: Library, m: int, n: int, k: int) -> None:
    a, b, c = _operand(m, k), _operand(k, n), np.full((m, n), np.nan, np.float32)
    threads = [-(-n // 32) * 128, -(-m // 64)]
    library.run("to_memory", [a, b, c, np.array([m, n, k], np.int32)], threads, [128, 1])
    np.testing.assert_allclose(c, _product(a, b), atol=1e-4)


@pytest.mark.parametrize(("m", "n", "k"), [(32, 48, 16), (40, 50, 37)])
def test_a_sum_in_registers_over_threadgroup_memory(library: Library, m: int, n: int, k: int) -> None:
    a, b, c = _operand(m, k), _operand(n, k), np.full((m, n), np.nan, np.float32)
    threads = [-(-n // 48) * 128, -(-m // 32)]
    sizes = np.array([m, n, k], np.int32)
    library.run("in_steps", [a, b, c, sizes], threads, [128, 1], threadgroup_bytes=[(32 + 48) * 16 * 2])
    np.testing.assert_allclose(c, _product(a, b.T), atol=1e-4)


@pytest.mark.parametrize(("name", "dtype", "transposed"), [("half", np.float16, False), ("float_t", np.float32, True)])
def test_operands_in_registers_have_the_order_that_kernels_count_on(
    library: Library, name: str, dtype: type, transposed: bool
) -> None:
    a, b = _operand(16, 16, dtype), _operand(16, 32, dtype)
    given = np.ascontiguousarray(b.T) if transposed else b
    c = np.full((16, 32), np.nan, np.float32)
    library.run(f"in_registers_{name}", [a, given, c], [32])
    started = np.repeat([1.0, 2.0], 16)
    np.testing.assert_allclose(c, _product(a, b) + started, atol=1e-4)


def test_integers_of_a_transposed_operand(library: Library) -> None:
    random = np.random.default_rng(1)
    a, b = (random.integers(-128, 128, (40, n), np.int8) for n in (8, 24))
    c = np.zeros((8, 24), np.int32)
    library.run("integers", [a, b, c], [32])
    assert (c == _product(a.T, b)).all()


def test_one_thread_alone(library: Library) -> None:
    a, b, c = _operand(4, 5, np.float32), _operand(5, 6, np.float32), np.zeros((4, 6), np.float32)
    library.run("alone", [a, b, c], [1])
    expected = _product(a, b)
    expected[3, 5] += 5000
    np.testing.assert_allclose(c, expected, atol=1e-4, rtol=1e-6)


def test_a_tensor_cannot_be_an_argument() -> None:
    with pytest.raises(OverlayError, match="PTR109 a tensor is not supported as an argument") as caught:
        compile_kernels(SOURCE, ["handed"])
    assert "over a buffer" in caught.value.hint


@pytest.mark.parametrize(("asks", "right"), [(True, (True, True)), (False, (True, False))])
def test_tiles_have_another_order_before_macos_26_2(
    asks: bool, right: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = "const int row = sum.get_multidimensional_index(i)[1];" if asks else (
        "const uint n = lane % 32; const int row = int(n >> 2 & 4) + int(n >> 1 & 3) + i / 2 / 2 * 8;"
    )  # fmt: skip
    source = f"""#include <metal_stdlib>
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;
kernel void add_rows(device half* a, device half* b, device float* c, uint lane [[thread_index_in_simdgroup]]) {{
  auto A = tensor(a, dextents<int, 2>(16, 16));
  auto B = tensor(b, dextents<int, 2>(16, 16));
  auto C = tensor(c, dextents<int, 2>(16, 16));
  constexpr auto descriptor = matmul2d_descriptor(16, 16, 16);
  matmul2d<descriptor, execution_simdgroup> product;
  auto sum = product.get_destination_cooperative_tensor<decltype(A), decltype(B), float>();
  product.run(A, B, sum);
  for (int i = 0; i < sum.get_capacity(); ++i) {{ {place} sum[i] += float(row); }}
  sum.store(C);
}}
"""
    a, b = _operand(16, 16), _operand(16, 16)
    wanted = _product(a, b) + np.arange(16)[:, None]
    got = []
    for language in (LANGUAGES[-1], OLDER_TILES):
        monkeypatch.setenv(VARIABLE, language.name)
        c = np.zeros((16, 16), np.float32)
        Library(compile_kernels(source, ["add_rows"])).run("add_rows", [a, b, c], [32])
        got.append(np.allclose(c, wanted, atol=1e-3))
    assert tuple(got) == right
