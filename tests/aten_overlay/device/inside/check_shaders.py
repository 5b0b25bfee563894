"""torch.mps.compile_shader: the semantics of PyTorch's own binding."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch

import aten_overlay
from aten_overlay.device.shader import ShaderLibrary

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void full(device float* out, constant float& val, uint idx [[thread_position_in_grid]]) { out[idx] = val; }
kernel void scale(device float* out, device const float* in, constant long& by, uint i [[thread_position_in_grid]]) {
  out[i] = in[i] * by;
}
kernel void narrow(device int* out, constant int2& v, constant half& h, uint i [[thread_position_in_grid]]) {
  out[i] = v.x * 100 + v.y * 10 + int(h);
}
kernel void where(device int* out, uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_grid]],
                  uint2 group [[threads_per_threadgroup]]) {
  out[at.y * size.x + at.x] = group.x * 10 + group.y;
}
kernel void third(device uint* out, constant uint3& v) { out[0] = v.z; }
kernel void gather(device float* out, constant const device float* const* in, uint i [[thread_position_in_grid]]) {
  out[i] = in[0][i] + in[1][i];
}
kernel void total(device float* out, device const float* in, uint i [[thread_position_in_threadgroup]]) {
  threadgroup float shared[64];
  shared[i] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i == 0) { float sum = 0; for (uint k = 0; k < 64; ++k) sum += shared[k]; out[0] = sum; }
}
"""


@pytest.fixture(scope="module")
def library() -> Any:
    return torch.mps.compile_shader(SOURCE)


def test_the_example_of_pytorch(library: Any) -> None:
    x = torch.zeros(16, device="mps")
    library.full(x, 3.14)
    assert torch.equal(x.cpu(), torch.full((16,), 3.14))


def test_kernels_are_listed(library: Any) -> None:
    assert dir(library) == ["full", "gather", "narrow", "scale", "third", "total", "where"]


def test_threads_are_the_whole_grid(library: Any) -> None:
    x = torch.zeros(16, device="mps")
    library.full(x, 1.0, threads=5)
    assert x.cpu().tolist() == [1.0] * 5 + [0.0] * 11


def test_offset_views_and_integers(library: Any) -> None:
    x, out = torch.arange(8.0).to("mps"), torch.zeros(8, device="mps")
    library.scale(out[2:6], x[3:], 10)
    assert out.cpu().tolist() == [0, 0, 30, 40, 50, 60, 0, 0]


def test_group_sizes(library: Any) -> None:
    out = torch.zeros(6 * 4, dtype=torch.int32, device="mps")
    library.where(out, threads=[6, 4], group_size=[2, 4])
    assert out.cpu().unique().tolist() == [24]
    library.where(out, threads=(6, 4))
    assert out.cpu()[0] // 10 == 6


def test_casts_by_argument(library: Any) -> None:
    out = torch.zeros(2, dtype=torch.int32, device="mps")
    library.narrow(out, [3, 4], 5.0, arg_casts={1: "int32", 2: "fp16"})
    assert out.cpu().tolist() == [345, 345]


def test_cpu_scalars_are_bound_by_value(library: Any) -> None:
    x = torch.zeros(4, device="mps")
    library.full(x, torch.tensor(2.5, dtype=torch.float64))
    assert x.cpu().tolist() == [2.5] * 4


def test_three_numbers_fill_a_vector_of_three(library: Any) -> None:
    out, sizes = torch.zeros(1, dtype=torch.int32, device="mps"), torch.tensor([2, 3, 5], dtype=torch.int32)
    library.third(out, sizes.to("mps"))
    assert out.item() == 5


def test_a_list_of_three_is_too_short_for_a_vector_of_three(library: Any) -> None:
    with pytest.raises(RuntimeError, match=r"`third`: argument `v` takes 16 bytes; 12 are bound \(buffer 1\)"):
        library.third(torch.zeros(1, dtype=torch.int32, device="mps"), [2, 3, 5], arg_casts="int32")


def test_three_numbers_fill_a_vector_of_three_with_checks() -> None:
    library = ShaderLibrary(SOURCE, aten_overlay.start(), checked=True)
    out = torch.zeros(1, dtype=torch.int32, device="mps")
    library.third(out, torch.tensor([2, 3, 5], dtype=torch.int32).to("mps"))
    assert out.item() == 5


def test_lists_of_tensors_are_addresses(library: Any) -> None:
    a, b, out = torch.arange(4.0).to("mps"), torch.ones(4, device="mps"), torch.zeros(4, device="mps")
    library.gather(out, [a, b])
    assert out.cpu().tolist() == [1, 2, 3, 4]


def test_barriers(library: Any) -> None:
    out, x = torch.zeros(1, device="mps"), torch.arange(64.0).to("mps")
    library.total(out, x, threads=64, group_size=64)
    assert out.item() == 64 * 63 / 2


def test_limits(library: Any) -> None:
    kernel = library.total
    assert kernel.max_threads_per_threadgroup == 1024 and kernel.thread_execution_width == 32
    assert library.full.static_thread_group_memory_length == 0


def test_declared_threadgroup_memory(library: Any) -> None:
    assert library.total.static_thread_group_memory_length == 64 * ctypes.sizeof(ctypes.c_float)


def test_checked_libraries_refuse_what_lies_out_of_bounds() -> None:
    x, out = torch.ones(4, device="mps"), torch.zeros(4, device="mps")
    checked = ShaderLibrary(SOURCE, aten_overlay.start(), checked=True)
    checked.scale(out, x, 2)
    assert out.tolist() == [2] * 4
    with pytest.raises(RuntimeError, match="out of bounds"):
        checked.scale(out, x, 2, threads=5)


def test_the_sanitizer_knows_where_a_tensor_ends() -> None:
    both, out = torch.ones(8, device="mps"), torch.zeros(5, device="mps")
    bounds = ShaderLibrary(SOURCE, aten_overlay.start(), checked=True)
    bounds.scale(out, both[:4], 2, threads=5)
    watched = ShaderLibrary(SOURCE, aten_overlay.start(), sanitize=True)
    watched.scale(out, both[:4], 2, threads=4)
    with pytest.raises(RuntimeError, match=r"PTR264 .* byte 16, where bytes 0 to 16 are the tensor"):
        watched.scale(out, both[:4], 2, threads=5)


def test_shuffled_lanes_find_a_missing_barrier() -> None:
    x, out = torch.arange(64.0).to("mps"), torch.zeros(1, device="mps")
    racy = SOURCE.replace("threadgroup_barrier(mem_flags::mem_threadgroup);", "")
    for seed in (1, 2, 3):
        ShaderLibrary(SOURCE, aten_overlay.start(), shuffle=seed).total(out, x, threads=64, group_size=64)
        assert out.item() == 64 * 63 / 2
    found = []
    for seed in (1, 2, 3):
        ShaderLibrary(racy, aten_overlay.start(), shuffle=seed).total(out, x, threads=64, group_size=64)
        found.append(out.item())
    assert set(found) != {64 * 63 / 2}


def test_an_empty_grid_does_nothing(library: Any) -> None:
    whole = torch.zeros(4, device="mps")
    library.full(whole[:0], 1.0)
    assert whole.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda k, x: k.nothing(x), RuntimeError, "Failed to create function state object for: nothing"),
        (lambda k, x: k.full(x.cpu(), 1.0), RuntimeError, "Passed CPU tensor to MPS op"),
        (lambda k, x: k.full(x, "a"), RuntimeError, "Unsupported argument type"),
        (lambda k, x: k.full(x, []), RuntimeError, "Empty list/tuple"),
        (lambda k, x: k.full(x, [torch.tensor(1.0)]), RuntimeError, "Passed CPU tensor to MPS op"),
        (lambda k, x: k.full(x, [1, "a"]), RuntimeError, "Unexpected argument types"),
        (lambda k, x: k.full(x, 1.0, arg_casts="fp8"), RuntimeError, "Unsupported cast instruction fp8"),
        (lambda k, x: k.full(x, 1.0, arg_casts=3), RuntimeError, "Unexpected caster arg type int"),
        (lambda k, x: k.full(x, 1.0, threads=[1, 1, 1, 1]), RuntimeError, "wrong dimension"),
        (lambda k, x: k.full(1.0, 1.0), RuntimeError, "Number of threads is undefined"),
        (lambda k, x: k.full(x, 1.0, threads=4, group_size=[2, 2]), RuntimeError, "same number of dimensions"),
        (lambda k, x: k.full(x, 1.0, group_size=2048), ValueError, "Threadgroup size exceeds 1024 limit"),
        (lambda k, x: k.full(x), RuntimeError, "val"),
    ],
)
def test_wrong_arguments(library: Any, call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(library, torch.zeros(4, device="mps"))


def test_source_that_does_not_compile() -> None:
    with pytest.raises(SyntaxError, match="Failed to create metal library"):
        torch.mps.compile_shader("kernel void f(device float* out) { out[0] = nonsense; }")


def test_a_broken_kernel_does_not_reject_the_others() -> None:
    library = torch.mps.compile_shader(
        "kernel void broken(device float* o) { o[0] = nonsense; }\n"
        "kernel void f(device float* o, uint i [[thread_position_in_grid]]) { o[i] = i; }"
    )
    x = torch.zeros(3, device="mps")
    library.f(x)
    assert x.tolist() == [0, 1, 2]
    assert dir(library) == ["broken", "f"]
    with pytest.raises(RuntimeError, match=r"function state object for: broken, error: .*'nonsense'"):
        _ = library.broken


def test_text_without_a_kernel_is_refused() -> None:
    with pytest.raises(SyntaxError, match="Failed to create metal library"):
        torch.mps.compile_shader("Syntax error")


def test_headers_of_the_fork() -> None:
    library = torch.mps.compile_shader(
        "#include <c10/metal/utils.h>\n"
        "kernel void f(device float* o, uint i [[thread_position_in_grid]]) { o[i] = c10::metal::max(float(i), NAN); }"
    )
    x = torch.zeros(2, device="mps")
    library.f(x)
    assert x.isnan().all()


def test_host_alias_shares_the_bytes() -> None:
    x = torch.arange(3.0).to("mps")
    alias = torch.empty(0).set_(torch._C._mps_host_alias_storage(x.untyped_storage()))
    alias += 1
    assert x.cpu().tolist() == [1, 2, 3]
    assert aten_overlay.start().host_address(x.data_ptr()) == alias.data_ptr()
