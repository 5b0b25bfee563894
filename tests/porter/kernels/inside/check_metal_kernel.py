"""MetalKernel on the device: what arrives in the kernel, and what comes back."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from porter.core.errors import PorterError
from porter.kernels import MetalKernel, metal_kernel
from porter.kernels.signature import ATTRIBUTES

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
          torch.bool, torch.uint16, torch.uint32, torch.uint64, torch.complex64]  # fmt: skip


def copy(**options: Any) -> MetalKernel:
    return MetalKernel("copy", ["x"], ["out"], "uint i = thread_position_in_grid.x; out[i] = x[i];", **options)


def run(kernel: MetalKernel, *inputs: Any, **changes: Any) -> torch.Tensor:
    first = inputs[0]
    call = {
        "grid": (first.numel(), 1, 1),
        "threadgroup": (256, 1, 1),
        "output_shapes": [first.shape],
        "output_dtypes": [first.dtype],
        **changes,
    }
    (out,) = kernel(inputs=list(inputs), **call)
    assert isinstance(out, torch.Tensor)
    return out


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("count", [0, 1, 7, 8, 300])
def test_every_type_and_size(dtype: torch.dtype, count: int) -> None:
    x = torch.arange(count).to(dtype).to("mps")
    assert torch.equal(run(copy(), x).cpu(), x.cpu())


def test_strided_inputs_are_copied_unless_the_body_reads_strides() -> None:
    x = torch.arange(24.0).reshape(4, 6).to("mps").t()[1:, ::2]
    assert torch.equal(run(copy(), x).cpu(), x.cpu())
    body = "uint i = thread_position_in_grid.x; out[i] = x[elem_to_loc(i, x_shape, x_strides, x_ndim)];"
    strided = MetalKernel("strided", ["x"], ["out"], body, ensure_row_contiguous=False)
    assert torch.equal(run(strided, x).cpu(), x.cpu())


def test_positions_in_three_dimensions() -> None:
    x = torch.arange(2.0 * 3 * 5 * 4).reshape(2, 3, 5, 4).to("mps").permute(1, 3, 0, 2)
    body = """
      uint3 at = thread_position_in_grid;
      out[at.x + threads_per_grid.x * (at.y + threads_per_grid.y * at.z)] = x[elem_to_loc(at, x_shape, x_strides, x_ndim)];
    """
    kernel = MetalKernel("three", ["x"], ["out"], body, ensure_row_contiguous=False)
    got = run(kernel, x, grid=(x.shape[3], x.shape[2], x.shape[0] * x.shape[1]), threadgroup=(4, 2, 3))
    assert torch.equal(got.cpu(), x.cpu())


def test_shape_strides_rank_and_storage_offset() -> None:
    x = torch.zeros(6, 7, device="mps")[2:, 1:]
    body = (
        "out[0] = x_shape[0]; out[1] = x_shape[1]; out[2] = x_strides[0]; out[3] = x_ndim; out[4] = x_storage_offset;"
    )
    kernel = MetalKernel("describe", ["x"], ["out"], body, ensure_row_contiguous=False)
    with pytest.raises(PorterError, match="PTR218"):
        run(copy(ensure_row_contiguous=False), x)
    got = run(kernel, x, grid=(1, 1, 1), output_shapes=[(5,)], output_dtypes=[torch.int64])
    assert got.tolist() == [4, 6, 7, 2, 15]


@pytest.mark.parametrize(("number", "metal"), [(3, "int"), (True, "bool"), (0.5, "float")])
def test_numbers(number: float, metal: str) -> None:
    kernel = MetalKernel("add", ["x", "n"], ["out"], "uint i = thread_position_in_grid.x; out[i] = x[i] + n;")
    x = torch.arange(9.0, device="mps")
    assert torch.equal(run(kernel, x, number).cpu(), x.cpu() + number)
    assert f"constant const {metal}& n" in kernel.source


def test_tensors_without_dimensions_are_values() -> None:
    kernel = MetalKernel("add", ["x", "n"], ["out"], "uint i = thread_position_in_grid.x; out[i] = x[i] + n;")
    x = torch.arange(9.0, device="mps")
    for n in (torch.tensor(2.0), torch.tensor(2.0, device="mps")):
        assert torch.equal(run(kernel, x, n).cpu(), x.cpu() + 2)


def test_templates_of_types_numbers_and_bools() -> None:
    body = "uint i = thread_position_in_grid.x; out[i] = B ? T(x[i]) * N : T(0);"
    kernel = metal_kernel("scale", ["x"], ["out"], body)
    x = torch.tensor([1.5, 2.5, -1.5], device="mps")
    assert run(kernel, x, template=[("T", torch.int32), ("N", 3), ("B", True)]).tolist() == [3, 6, -3]
    assert run(kernel, x, template={"T": torch.float32, "N": -2, "B": True}).tolist() == [-3, -5, 3]
    assert run(kernel, x, template={"T": torch.float32, "N": 1, "B": False}).tolist() == [0, 0, 0]


def test_several_outputs_by_list_and_by_name() -> None:
    body = "uint i = thread_position_in_grid.x; a[i] = x[i] + 1; b[i] = x[i] * 2;"
    x = torch.arange(5.0, device="mps")
    shared: dict[str, Any] = {"grid": (5, 1, 1), "threadgroup": (5, 1, 1)}
    listed = MetalKernel("two", ["x"], ["a", "b"], body)(
        inputs=[x], output_shapes=[(5,), (5,)], output_dtypes=[torch.float32, torch.int32], **shared
    )
    named = MetalKernel("two", source=body)(
        inputs={"x": x}, output_shapes={"a": (5,), "b": (5,)},
        output_dtypes={"b": torch.int32, "a": torch.float32}, **shared,
    )  # fmt: skip
    assert isinstance(listed, list) and isinstance(named, dict)
    assert [t.tolist() for t in listed] == [[1, 2, 3, 4, 5], [0, 2, 4, 6, 8]]
    assert named["a"].tolist() == listed[0].tolist() and named["b"].tolist() == listed[1].tolist()


def test_init_value_and_atomics() -> None:
    body = "uint i = thread_position_in_grid.x; atomic_fetch_add_explicit(&out[x[i] % 3], 1, memory_order_relaxed);"
    kernel = MetalKernel("count", ["x"], ["out"], body, atomic_outputs=True)
    x = torch.arange(10, dtype=torch.int32, device="mps")
    got = run(kernel, x, output_shapes=[(3,)], output_dtypes=[torch.int32], init_value=5)
    assert got.tolist() == [9, 8, 8]


def test_a_threadgroup_is_never_larger_than_the_grid() -> None:
    body = "uint i = thread_position_in_grid.x; out[i] = threads_per_threadgroup.x;"
    x = torch.zeros(5, device="mps")
    assert run(MetalKernel("size", ["x"], ["out"], body), x).tolist() == [5] * 5


def test_the_header_stands_before_the_kernel() -> None:
    kernel = MetalKernel("h", ["x"], ["out"], "uint i = thread_position_in_grid.x; out[i] = twice(x[i]);",
                         header="inline float twice(float v) { return 2 * v; }")  # fmt: skip
    assert run(kernel, torch.ones(3, device="mps")).tolist() == [2, 2, 2]


def test_two_kernels_of_one_name_do_not_run_each_others_code() -> None:
    one, two = (MetalKernel("same", ["x"], ["out"], f"out[thread_position_in_grid.x] = {n};") for n in (1, 2))
    x = torch.zeros(2, device="mps")
    assert [run(one, x).tolist(), run(two, x).tolist(), run(one, x).tolist()] == [[1, 1], [2, 2], [1, 1]]


def test_the_source_is_printed_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = copy()
    run(kernel, torch.zeros(9, device="mps"))
    assert capsys.readouterr().out == ""
    run(kernel, torch.zeros(9, device="mps"), verbose=True)
    assert capsys.readouterr().out.strip() == kernel.source.strip() != ""


VALUES = {
    "dispatch_quadgroups_per_threadgroup": 12,
    "dispatch_simdgroups_per_threadgroup": 2,
    "dispatch_threads_per_threadgroup": (16, 3, 1),
    "grid_origin": (0, 0, 0),
    "grid_size": (40, 7, 1),
    "quadgroup_index_in_threadgroup": 7,
    "quadgroups_per_threadgroup": 12,
    "simdgroup_index_in_threadgroup": 0,
    "simdgroups_per_threadgroup": 2,
    "thread_execution_width": 32,
    "thread_index_in_quadgroup": 1,
    "thread_index_in_simdgroup": 29,
    "thread_index_in_threadgroup": 29,
    "thread_position_in_grid": (29, 4, 0),
    "thread_position_in_threadgroup": (13, 1, 0),
    "threadgroup_position_in_grid": (1, 1, 0),
    "threadgroups_per_grid": (3, 3, 1),
    "threads_per_grid": (40, 7, 1),
    "threads_per_simdgroup": 32,
    "threads_per_threadgroup": (16, 3, 1),
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_what_an_attribute_says_in_one_thread(name: str) -> None:
    body = f"""
      uint3 at = thread_position_in_grid, value = uint3({name});
      if (at.x == 29 && at.y == 4) {{ out[0] = value.x; out[1] = value.y; out[2] = value.z; }}
    """
    (out,) = MetalKernel("attribute", [], ["out"], body)(
        inputs=[], grid=(40, 7, 1), threadgroup=(16, 3, 1), output_shapes=[(3,)], output_dtypes=[torch.int32]
    )
    expected = VALUES[name]
    assert torch.as_tensor(out).tolist() == list(expected if isinstance(expected, tuple) else (expected,) * 3)


def test_a_kernel_without_inputs() -> None:
    (out,) = MetalKernel("fill", [], ["out"], "out[thread_position_in_grid.x] = 3;")(
        inputs=[], grid=(4, 1, 1), threadgroup=(4, 1, 1), output_shapes=[(4,)], output_dtypes=[torch.float32]
    )
    assert torch.as_tensor(out).tolist() == [3] * 4


def test_lazy_conjugates_arrive_as_they_read() -> None:
    x = torch.randn(5, dtype=torch.complex64).to("mps")
    assert torch.equal(run(copy(), x.conj()).cpu(), x.cpu().conj())
