"""The embedded fork's headers have what host code and kernels of the newest PyTorch are written with, and it works."""

from __future__ import annotations

import ctypes
from pathlib import Path

import torch

from aten_overlay.metal import build
from aten_overlay.metal.launch import Library
from porter.core.checkout import EMBEDDED_FORK
from porter.core.layout import INDEXING, KERNELS, NATIVE_FUNCTIONS, OPERATIONS
from porter.verdict.result import VerifyTarget
from porter.verdict.verify import verify

OPTIONS = build.Options(include=(EMBEDDED_FORK,), optimization=build.QUICK)

ROWS = """
- func: addcmul.out(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1, Tensor(a!) out) -> Tensor(a!)
  structured: True
  structured_inherits: TensorIteratorBase
  device_check: NoCheck
  dispatch:
    CPU, CUDA, MPS: addcmul_out
  tags: pointwise

- func: addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor
  structured_delegate: addcmul.out
  device_check: NoCheck
  variants: method, function
  tags: pointwise

- func: addcmul_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)
  structured_delegate: addcmul.out
  device_check: NoCheck
  variants: method
  tags: pointwise

- func: trace(Tensor self) -> Tensor
  variants: method, function
  dispatch:
    CPU: trace_cpu
    CUDA: trace_cuda
    MPS: trace_mps
  autogen: trace.out
"""
TERNARY = """#include <c10/metal/indexing.h>

struct addcmul_functor {
  template <typename T, typename A>
  inline T operator()(const T a, const T b, const T c, const A value) {
    return a + static_cast<T>(value) * b * c;
  }
};

REGISTER_OPMATH_TERNARY_ALPHA_OP(addcmul, float, float, float);
REGISTER_OPMATH_TERNARY_ALPHA_OP(addcmul, half, float, half);
REGISTER_OPMATH_TERNARY_ALPHA_OP(addcmul, bfloat, float, bfloat);
REGISTER_TERNARY_ALPHA_OP(addcmul, int, int, int);
"""
TERNARY_HOST = """#include <ATen/OpMathType.h>
#include <ATen/TensorIterator.h>
#include <ATen/native/PointwiseOps.h>
#include <ATen/native/mps/MetalShaderLibrary.h>

namespace at::native {

static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();

static void addcmul_mps_kernel(TensorIteratorBase& iter, const Scalar& value) {
  lib.exec_ternary_kernel(iter, "addcmul", value, at::toOpMathType(iter.common_dtype()));
}

REGISTER_DISPATCH(addcmul_stub, &addcmul_mps_kernel)

} // namespace at::native
"""
TRACE = """#include <c10/metal/error.h>
#include <metal_stdlib>

template <typename T, typename Index>
kernel void trace(
    device T* output [[buffer(0)]],
    constant T* input [[buffer(1)]],
    constant Index* size_step [[buffer(2)]],
    device c10::metal::ErrorMessages* errors [[buffer(3)]],
    constant float& start [[buffer(4)]]) {
  float sum = start;
  for (Index i = 0; i < size_step[0]; ++i) {
    sum += input[i * size_step[1]];
  }
  if (size_step[0] > 1000) {
    TORCH_REPORT_ERROR(errors, "a diagonal of ", long(size_step[0]));
  }
  output[0] = static_cast<T>(sum);
}

#define REGISTER_TRACE(T, INDEX, SUFFIX)                                               \\
  template [[host_name("trace_" #T SUFFIX)]] kernel void trace<T, INDEX>(              \\
      device T*, constant T*, constant INDEX*, device c10::metal::ErrorMessages*, constant float&)
REGISTER_TRACE(float, uint, "_u32");
REGISTER_TRACE(float, ulong, "_u64");
"""
TRACE_HOST = """#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/mps/MPSProfiler.h>
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/trace_native.h>
#include <fmt/format.h>

namespace at::native {

static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();

Tensor trace_mps(const Tensor& self) {
  using namespace mps;
  Tensor result = at::empty({}, self.options());
  const Tensor diagonal = self.diagonal();
  const bool use32 = offsetsFitIn<uint32_t>(self);
  const auto kernel = fmt::format("trace_{}{}", scalarToMetalTypeString(self), mtlIdxSuffix(use32));
  const auto pipeline = lib.getPipelineStateForFunc(kernel);
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      getMPSProfiler().beginProfileKernel(pipeline, kernel, {self}, stream);
      id<MTLComputeCommandEncoder> encoder = stream->commandEncoder();
      [encoder setComputePipelineState:pipeline];
      mtlDispatchByIndexWidth<uint32_t, uint64_t>(use32, [&](auto index) {
        using index_t = typename decltype(index)::type;
        const std::array<index_t, 2> size_step{
            static_cast<index_t>(diagonal.size(0)), static_cast<index_t>(diagonal.stride(0))};
        mtl_setArgs(encoder, result, diagonal, size_step, stream->getErrorBuffer(), 0.0);
      });
      mtl_dispatch1DJob(encoder, pipeline, 1);
      getMPSProfiler().endProfileKernel(pipeline, stream);
    }
  });
  return result;
}

} // namespace at::native
"""
TEXTS = {
    f"{KERNELS}/Pointwise.metal": TERNARY,
    f"{OPERATIONS}/Pointwise.mm": TERNARY_HOST,
    f"{KERNELS}/Trace.metal": TRACE,
    f"{OPERATIONS}/Trace.mm": TRACE_HOST,
    NATIVE_FUNCTIONS: (EMBEDDED_FORK / NATIVE_FUNCTIONS).read_text() + ROWS,
}
ADDCMUL = VerifyTarget("addcmul", kernels=("addcmul",), stubs=("addcmul_stub",))


def test_three_operands_and_a_scalar() -> None:
    tests = "(test_output_match or test_layouts or test_out_) and (float32 or float16)"
    verdict = verify(EMBEDDED_FORK, TEXTS, ADDCMUL, tests)
    assert verdict.ok and verdict.kernel_calls > 20, verdict.failures


def test_three_operands_of_which_one_is_read_with_anothers_strides() -> None:
    header = (EMBEDDED_FORK / INDEXING).read_text()
    old = "offset_from_coord(pos, third_strides, ndim)"
    assert header.count(old) == 4
    wrong = {**TEXTS, INDEXING: header.replace(old, old.replace("third", "second"))}
    assert not verify(EMBEDDED_FORK, wrong, ADDCMUL, "(test_output_match or test_layouts) and float32").ok


def test_indices_of_either_width_errors_and_traces_of_a_stream() -> None:
    verdict = verify(EMBEDDED_FORK, TEXTS, VerifyTarget("trace", kernels=("trace",)), "test_output_match and float32")
    assert verdict.failures == ()
    assert verdict.kernel_calls > 0


def test_errors_are_written_where_the_stream_reads_them(tmp_path: Path) -> None:
    class Message(ctypes.Structure):
        _fields_ = [
            ("file", ctypes.c_char * 128), ("func", ctypes.c_char * 128), ("message", ctypes.c_char * 250),
            ("line", ctypes.c_uint32),
        ]  # fmt: skip

    class Messages(ctypes.Structure):
        _fields_ = [("count", ctypes.c_uint32), ("messages", Message * 30)]

    source = tmp_path / "report.metal"
    source.write_text(
        "#include <c10/metal/error.h>\n#include <metal_stdlib>\n"
        "kernel void report(device c10::metal::ErrorMessages* errors [[buffer(0)]], constant long& number [[buffer(1)]],"
        " uint index [[thread_position_in_grid]]) {\n"
        '  TORCH_REPORT_ERROR(errors, "number ", number, " is wrong");\n}\n'
    )
    library = Library(build.compile_kernels(source, ["report"], OPTIONS))
    for number in (0, 7, 10, -1, -345, 2**63 - 1, -(2**63)):
        errors = Messages()
        library.run("report", [errors, ctypes.c_int64(number)], [31])
        assert errors.count == 31
        assert {each.message.decode() for each in errors.messages} == {f"number {number} is wrong"}
        assert {(each.func, each.line) for each in errors.messages} == {(b"report", 4)}


def test_results_of_another_type_are_cast_by_the_kernel_that_writes_them(tmp_path: Path) -> None:
    source = tmp_path / "less.metal"
    source.write_text(
        "#include <c10/metal/indexing.h>\n#include <metal_stdlib>\nusing namespace metal;\n"
        "struct less_functor {\n  template <typename T>\n"
        "  inline bool operator()(const T a, const T b) {\n    return a < b;\n  }\n};\n"
        "REGISTER_BINARY_CASTOUT_OP(less, float, bool);\n"
    )
    library = Library(build.compile_kernels(source, ["less_strided_castout_bool_float"], OPTIONS))
    a, b, out = torch.tensor([[1.0, 5.0], [3.0, 2.0]]), torch.tensor([2.0, 4.0]).half(), torch.zeros(2, 2)
    strides = [(ctypes.c_int64 * 2)(4, 8), (ctypes.c_int64 * 2)(4, 8), (ctypes.c_int64 * 2)(2, 0)]
    types = (ctypes.c_uint32 * 4)(2, 6, 5, 6)
    library.run("less_strided_castout_bool_float", [out, a, b, (ctypes.c_int64 * 2)(2, 2), *strides, types], [4])
    assert out.tolist() == [[1, 0], [0, 1]]
