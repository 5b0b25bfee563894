"""The examples of the documents that kernels grow from, as a reader would run them: MLX's, Core AI's, PyTorch's.

Where a document cut an example short it is completed; array calls of MLX are calls of torch.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from porter.kernels import MetalKernel, MetalParameter, TorchMetalKernel

# --- MLX, custom Metal kernels: document 003 ---

EXP = """
        uint elem = thread_position_in_grid.x;
        T tmp = inp[elem];
        out[elem] = metal::exp(tmp);
"""
EXP_STRIDED = """
        uint elem = thread_position_in_grid.x;
        // Utils from `mlx/backend/metal/kernels/utils.h` are automatically included
        uint loc = elem_to_loc(elem, inp_shape, inp_strides, inp_ndim);
        T tmp = inp[loc];
        // Output arrays are always row contiguous
        out[elem] = metal::exp(tmp);
"""


def exp_elementwise(a: torch.Tensor, source: str, contiguous: bool = True) -> tuple[torch.Tensor, str]:
    kernel = MetalKernel(name="myexp", source=source, ensure_row_contiguous=contiguous)
    outputs = kernel(
        inputs={"inp": a},
        template={"T": torch.float32},
        grid=(a.numel(), 1, 1),
        threadgroup=(256, 1, 1),
        output_shapes={"out": a.shape},
        output_dtypes={"out": a.dtype},
    )
    assert isinstance(outputs, dict)
    return outputs["out"], kernel.source


def test_003_simple_example() -> None:
    a = torch.randn(4, 16, device="mps").to(torch.float16)
    b, source = exp_elementwise(a, EXP)
    assert torch.allclose(b, torch.exp(a), rtol=2e-3)
    assert "device const half* inp [[buffer(0)]]" in source and "device half* out [[buffer(1)]]" in source
    assert "uint3 thread_position_in_grid [[thread_position_in_grid]]" in source
    assert "template <typename T>" in source and "<float>;" in source


def test_003_shapes_and_strides() -> None:
    a = torch.randn(4, 16, device="mps").to(torch.float16)[::2]
    b, source = exp_elementwise(a, EXP_STRIDED, contiguous=False)
    assert torch.allclose(b, torch.exp(a), rtol=2e-3)
    assert "inp_strides [[buffer(2)]]" in source


# --- Core AI, custom Metal kernels: document 002 ---


def torch_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Reference implementation for shape inference during export."""
    return x + y


custom_add = TorchMetalKernel(
    "vector_add",
    input_names=["x", "y"],
    result_names=["output"],
    src="output[id] = x[id] + y[id];",
    torch_defn=torch_add,
    metal_params=[
        MetalParameter("id", "uint", "thread_position_in_grid"),
    ],
)


class AddModel(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        return custom_add(
            x,
            y,
            threads_per_grid=(x.shape[0], 1, 1),
            threads_per_thread_group=(1, 1, 1),
            result_shapes=[list(x.shape)],
        )


def test_002_a_kernel_in_a_model() -> None:
    x, y = torch.randn(16), torch.randn(16)
    assert torch.equal(AddModel()(x.to("mps"), y.to("mps")).cpu(), x + y)
    assert torch.equal(AddModel()(x, y), x + y)


def test_002_export_and_decompose() -> None:
    model = AddModel().eval()
    example_inputs = (torch.randn(16), torch.randn(16))
    exported = torch.export.export(model, args=example_inputs)
    exported = exported.run_decompositions(torch.export.default_decompositions())
    called = [str(node.target) for node in exported.graph.nodes if node.op == "call_function"]
    assert len(called) == 1 and called[0].startswith("porter_kernels.vector_add_")
    assert torch.equal(exported.module()(*example_inputs), example_inputs[0] + example_inputs[1])


def torch_matmul(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.matmul(x, y)


custom_matmul = TorchMetalKernel(
    "matmul",
    input_names=["A", "B"],
    result_names=["C"],
    src="""
const uint K = A.get_extent(0);
const uint M = A.get_extent(1);
const uint N = B.get_extent(0);
if (gid.x >= N || gid.y >= M) return;
TYPE sum = 0.0f;
for (uint k = 0; k < K; ++k) {
sum += A[k, gid.y] * B[gid.x, k];
}
C[gid.x, gid.y] = sum;
""",
    torch_defn=torch_matmul,
    metal_params=[
        MetalParameter("gid", "uint2", "thread_position_in_grid"),
    ],
    # "A" is the input whose dtype determines the substitution;
    # every occurrence of "TYPE" in src is replaced with the
    # corresponding Metal type (e.g. "half", "float", "bfloat").
    template_dtypes={"A": "TYPE"},
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_002_dtype_templating(dtype: torch.dtype) -> None:
    x, y = torch.randn(5, 7).to(dtype), torch.randn(7, 3).to(dtype)
    got = custom_matmul(
        x.to("mps"), y.to("mps"), threads_per_grid=(8, 8, 1), threads_per_thread_group=(8, 8, 1), result_shapes=[[5, 3]]
    )
    assert isinstance(got, torch.Tensor) and got.dtype == dtype
    tolerance = {torch.float32: 1e-5, torch.float16: 2e-2}[dtype]
    assert torch.allclose(got.cpu().double(), x.double() @ y.double(), atol=tolerance)


def torch_sincos(x: torch.Tensor) -> list[torch.Tensor]:
    return [torch.sin(x), torch.cos(x)]


sincos_kernel = TorchMetalKernel(
    "sincos",
    input_names=["x"],
    result_names=["out_sin", "out_cos"],
    src="out_sin[id] = sin(x[id]); out_cos[id] = cos(x[id]);",
    torch_defn=torch_sincos,
    metal_params=[MetalParameter("id", "uint", "thread_position_in_grid")],
)


class SinCosModel(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        results = sincos_kernel(
            x,
            threads_per_grid=(x.shape[0], 1, 1),
            threads_per_thread_group=(1, 1, 1),
            result_shapes=[list(x.shape), list(x.shape)],
        )
        return results[0] + results[1]  # sin(x) + cos(x)


def test_002_several_results() -> None:
    x = torch.randn(16)
    assert torch.allclose(SinCosModel()(x.to("mps")).cpu(), torch.sin(x) + torch.cos(x))
    assert torch.allclose(torch.export.export(SinCosModel(), (x,)).module()(x), torch.sin(x) + torch.cos(x))


# --- PyTorch, debugging with torch.mps.compile_shader: document 000; its quick notes: document 001 ---

DOUBLE = """
#include <metal_stdlib>
using namespace metal;
kernel void my_kernel(
const device float* input [[buffer(0)]],
device float* output [[buffer(1)]],
uint tid [[thread_position_in_grid]]) {
output[tid] = input[tid] * 2.0;
}
"""


def test_000_debugging_with_compile_shader() -> None:
    lib = torch.mps.compile_shader(DOUBLE)
    inp = torch.tensor([1.0, 2.0, 3.0], device="mps")
    out = torch.zeros(3, device="mps")
    lib.my_kernel(inp, out, threads=[3, 1, 1], group_size=[3, 1, 1])
    torch.mps.synchronize()
    assert str(out) == "tensor([2., 4., 6.], device='mps:0')"


def test_000_threads_are_those_of_the_grid() -> None:
    lib = torch.mps.compile_shader("""
      kernel void groups(device uint* out, uint2 group [[threadgroup_position_in_grid]],
                         uint2 size [[threads_per_threadgroup]], uint2 count [[threadgroups_per_grid]],
                         uint index [[thread_index_in_threadgroup]]) {
        if (index == 0) out[group.y * count.x + group.x] = size.x;
      }""")
    num_tgs, num_slices, TG_SIZE = 5, 3, 256
    out = torch.zeros(num_tgs * num_slices, dtype=torch.int32, device="mps")
    lib.groups(out, threads=[num_tgs * TG_SIZE, num_slices, 1], group_size=[TG_SIZE, 1, 1])
    assert out.tolist() == [256] * 15


def test_000_scalars_as_tensors_of_one_element() -> None:
    lib = torch.mps.compile_shader("""
      kernel void my_kernel(device const int* data, device int* output, constant int& slice_size,
                            uint i [[thread_position_in_grid]]) { output[i] = data[i] % slice_size; }""")
    data = torch.arange(2048, dtype=torch.int32, device="mps")
    output = torch.zeros_like(data)
    slice_size = torch.tensor([1024], dtype=torch.int32, device="mps")
    lib.my_kernel(data, output, slice_size, threads=[1024, 1, 1], group_size=[256, 1, 1])
    assert torch.equal(output.cpu(), torch.cat((torch.arange(1024), torch.zeros(1024))).int())


def test_000_a_pipeline_stage_by_stage() -> None:
    lib = torch.mps.compile_shader("""
      #include <metal_stdlib>
      using namespace metal;
      kernel void histogram(device const int* keys, device atomic_int* hist, uint i [[thread_position_in_grid]]) {
        atomic_fetch_add_explicit(&hist[keys[i]], 1, memory_order_relaxed);
      }""")
    keys = torch.randint(0, 16, (1000,), dtype=torch.int32)
    hist = torch.zeros(16, dtype=torch.int32, device="mps")
    lib.histogram(keys.to("mps"), hist, threads=[1000, 1, 1], group_size=[256, 1, 1])
    torch.mps.synchronize()
    assert torch.equal(hist.cpu(), torch.bincount(keys, minlength=16).int()), "Histogram mismatch!"


def test_001_quick_notes() -> None:
    source = "kernel void axpy(device float* y, device const float* x, constant float& a, constant int& n," \
             " uint i [[thread_position_in_grid]]) { if (int(i) < n) y[i] += a * x[i]; }"  # fmt: skip
    lib = torch.mps.compile_shader(source)
    x, y = torch.arange(8.0, device="mps"), torch.ones(8, device="mps")
    lib.axpy(y, x, 2.0, 6, arg_casts={3: "int32"})  # as many threads as the first tensor has elements
    assert y.tolist() == [1, 3, 5, 7, 9, 11, 1, 1]
    assert lib.axpy.max_threads_per_threadgroup == 1024 and lib.axpy.thread_execution_width == 32
