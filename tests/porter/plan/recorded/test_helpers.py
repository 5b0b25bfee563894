"""Functions of c10/metal that a fork lacks, which its kernel files get."""

import shutil
from pathlib import Path

import pytest
import torch

from aten_overlay.metal.build import QUICK, Options, compile_kernels
from aten_overlay.metal.launch import Library
from aten_overlay.toolchain import torch_root
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.layout import KERNELS, METAL_HEADERS, UTILS
from porter.plan.recorded.files import edit_kernel_file
from porter.plan.recorded.helpers import define_missing
from tests.porter.plan.recorded import fork

FILE = f"{KERNELS}/Turns.metal"
TEXT = "x = c10::metal::mul(c10::metal::cast_to<T>(1), c10::metal::max(y, z));\n"


def without_header(folder: Path) -> Checkout:
    """A fork whose c10/metal has none of what kernels call."""
    checkout = fork.copy_fork(folder)
    shutil.rmtree(checkout.root / METAL_HEADERS)
    header = checkout.root / UTILS
    header.parent.mkdir()
    header.write_text("template <typename T>\nT max(T x, T y);\n")
    return checkout


def test_a_fork_that_has_all_functions_gets_none(tmp_path: Path) -> None:
    assert define_missing(fork.copy_fork(tmp_path), FILE, TEXT) == ""


def test_a_kernel_file_gets_each_function_once(tmp_path: Path) -> None:
    checkout = without_header(tmp_path)
    (edit,) = edit_kernel_file(checkout, FILE, TEXT)
    assert edit.text.count("inline T cast_to(") == 3
    assert edit.text.index("float2 mul(") < edit.text.index(TEXT)
    (checkout.root / FILE).write_text(edit.text)
    assert define_missing(checkout, FILE, TEXT) == ""


def test_a_function_that_porter_lacks_too_is_named(tmp_path: Path) -> None:
    with pytest.raises(PorterError, match=r"Turns.metal:1.* PTR349 .* c10::metal::log1p"):
        define_missing(without_header(tmp_path), FILE, "c10::metal::log1p(x)")


KERNEL = """
kernel void convert(
    device float2* product, device float* parts, device bool* truths, device float2* real,
    constant float2* x, constant float2* y, uint i [[thread_position_in_grid]]) {
  product[i] = c10::metal::mul(x[i], y[i]);
  parts[i] = c10::metal::cast_to<float>(x[i]) * c10::metal::mul(c10::metal::mul(2L, 3), 0.5f) * 2;
  truths[i] = c10::metal::cast_to<bool>(x[i]);
  real[i] = c10::metal::cast_to<float2>(c10::metal::cast_to<float2>(int(x[i].x)));
}
"""


def test_the_functions_compute_what_torch_does(tmp_path: Path) -> None:
    source = (
        "#include <metal_stdlib>\nusing namespace metal;\n"
        + define_missing(without_header(tmp_path), FILE, TEXT)
        + KERNEL
    )
    x, y = torch.randn(9, dtype=torch.complex64), torch.randn(9, dtype=torch.complex64)
    x[3], x[4] = 0, torch.tensor(2j)
    product, real = torch.empty_like(x), torch.empty_like(x)
    parts, truths = torch.empty(9), torch.empty(9, dtype=torch.bool)
    library = Library(compile_kernels(source, ["convert"], Options(optimization=QUICK)))
    library.run("convert", [product, parts, truths, real, x, y], (9,), (9,))
    torch.testing.assert_close(product, x * y)
    torch.testing.assert_close(parts, x.real * 6)
    assert torch.equal(truths, x.bool())
    torch.testing.assert_close(real, x.real.trunc().to(torch.complex64))


ADDING = """
template <typename T, typename A>
kernel void add(device c10::metal::AtomicType_t<A>* output, constant T* value, constant long* index,
                uint i [[thread_position_in_grid]]) {
  c10::metal::AtomicType<A>::atomic_add(output, index[i], A(value[i]));
}
"""
ADDED = {torch.float32: "float", torch.complex64: "float2", torch.float16: "half", torch.bfloat16: "bfloat",
         torch.int64: "long", torch.int32: "int", torch.int16: "short", torch.int8: "char", torch.uint8: "uchar",
         torch.bool: "bool"}  # fmt: skip


@pytest.mark.parametrize("dtype", ADDED, ids=str)
def test_additions_by_several_threads_are_all_there(tmp_path: Path, dtype: torch.dtype) -> None:
    type_ = ADDED[dtype]
    made = f'template [[host_name("add_{type_}")]] kernel void add<{type_}, {type_}>('
    made += f"device c10::metal::AtomicType_t<{type_}>*, constant {type_}*, constant long*, uint);\n"
    source = "#include <metal_stdlib>\nusing namespace metal;\n"
    source += define_missing(without_header(tmp_path), FILE, ADDING) + ADDING + made
    index = torch.arange(96) % 5 + 1  # elements that share words with neighbors that no thread adds to
    value = torch.randint(-9, 9, (96,)).to(dtype)
    if dtype is torch.int64:
        value += 2**32 - 3  # carries
    result = torch.ones(8, dtype=dtype)
    expected = result.clone().index_add(0, index, value)
    library = Library(compile_kernels(source, [f"add_{type_}"], Options(optimization=QUICK)))
    library.run(f"add_{type_}", [result, value, index], (96,), (32,))
    assert torch.equal(result, expected)


LANES = """
kernel void combine(
    device long* longs, device float2* products, device float* largest,
    constant long* x, constant float2* y, constant float* z, uint i [[thread_position_in_grid]]) {
  longs[i] = c10::metal::simdgroup_sum(x[i]) + 3 * c10::metal::simdgroup_min(x[i]);
  products[i] = c10::metal::simdgroup_prod(y[i]);
  largest[i] = c10::metal::simdgroup_max(z[i]);
}
"""


def test_lanes_combine_integers_of_64_bits_complex_numbers_and_nan(tmp_path: Path) -> None:
    missing = define_missing(without_header(tmp_path), FILE, LANES)
    assert define_missing(fork.copy_fork(tmp_path / "newer"), FILE, LANES) == missing, "no fork has these"
    header = "#include <c10/metal/utils.h>\n#include <metal_stdlib>\nusing namespace metal;\n"
    library = Library(
        compile_kernels(
            header + missing + LANES, ["combine"], Options(include=(torch_root() / "include",), optimization=QUICK)
        )
    )
    x, y = torch.randint(-(1 << 60), 1 << 60, (64,)) >> 5, torch.randn(64, dtype=torch.complex64)
    z = torch.randn(64).index_fill(0, torch.tensor([40]), torch.nan)
    longs, products, largest = torch.empty_like(x), torch.empty_like(y), torch.empty_like(z)
    library.run("combine", [longs, products, largest, x, y, z], (64,), (64,))
    for lanes in (slice(0, 32), slice(32, 64)):
        assert longs[lanes].equal((x[lanes].sum() + 3 * x[lanes].amin()).expand(32))
        torch.testing.assert_close(products[lanes], y[lanes].prod().expand(32))
        torch.testing.assert_close(largest[lanes], z[lanes].amax().expand(32), equal_nan=True)
