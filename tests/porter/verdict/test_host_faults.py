"""Faults in host code and in kernels that synchronize: only running both can find them."""

from __future__ import annotations

import pytest

from porter.core.checkout import EMBEDDED_FORK
from porter.core.layout import KERNELS, MPS, NATIVE_FUNCTIONS, OPERATIONS
from porter.verdict.result import VerifyTarget
from tests.porter.verdict.test_planted_faults import reasons
from tests.porter.verdict.written_ports import Port

LIBRARY = f"{MPS}/MetalShaderLibrary.mm"
REDUCTION = f"{KERNELS}/TraceKernel.metal"
ROW = """
- func: trace(Tensor self) -> Tensor
  variants: method, function
  dispatch:
    CPU: trace_cpu
    CUDA: trace_cuda
    MPS: trace_mps
  autogen: trace.out
"""
KERNEL = """\
#include <metal_stdlib>
using namespace metal;

// One threadgroup adds up a diagonal whose elements lie `step` apart.
template <typename T>
kernel void trace(
    device T* output [[buffer(0)]],
    constant T* input [[buffer(1)]],
    constant uint2& size_step [[buffer(2)]],
    uint lane [[thread_position_in_threadgroup]],
    uint lanes [[threads_per_threadgroup]]) {
  threadgroup float partial[256];
  float sum = 0;
  for (uint i = lane; i < size_step.x; i += lanes) {
    sum += input[i * size_step.y];
  }
  partial[lane] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint half_of = lanes / 2; half_of > 0; half_of /= 2) {
    if (lane < half_of) {
      partial[lane] += partial[lane + half_of];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (lane == 0) {
    output[0] = static_cast<T>(partial[0]);
  }
}

#define REGISTER_TRACE(T) \\
  template [[host_name("trace_" #T)]] kernel void trace<T>(device T*, constant T*, constant uint2&, uint, uint)
REGISTER_TRACE(float);
REGISTER_TRACE(half);
"""
HOST = """\
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/native/mps/MetalShaderLibrary.h>
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/trace_native.h>

namespace at::native {

static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();

Tensor trace_mps(const Tensor& self) {
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix");
  Tensor result = at::empty({}, self.options());
  const Tensor diagonal = self.diagonal();
  const auto pipeline = lib.getPipelineStateForFunc("trace_" + mps::scalarToMetalTypeString(self));
  const std::array<uint32_t, 2> size_step{
      static_cast<uint32_t>(diagonal.size(0)), static_cast<uint32_t>(diagonal.stride(0))};
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      id<MTLComputeCommandEncoder> encoder = stream->commandEncoder();
      [encoder setComputePipelineState:pipeline];
      mps::mtl_setArgs(encoder, result, diagonal, size_step);
      [encoder dispatchThreads:MTLSizeMake(256, 1, 1) threadsPerThreadgroup:MTLSizeMake(256, 1, 1)];
    }
  });
  return result;
}

} // namespace at::native
"""


@pytest.fixture
def trace() -> Port:
    """An operator new to the fork, whose kernel reduces over a threadgroup."""
    rows = (EMBEDDED_FORK / NATIVE_FUNCTIONS).read_text()
    texts = {NATIVE_FUNCTIONS: rows + ROW, REDUCTION: KERNEL, f"{OPERATIONS}/Trace.mm": HOST}
    return Port(VerifyTarget("trace", kernels=("trace",)), texts)


def test_a_reduction_over_a_threadgroup(trace: Port) -> None:
    verdict = trace.verdict("test_output_match and float32")
    assert verdict.failures == ()
    assert verdict.backend == "host" and verdict.kernel_calls > 0


def test_a_missing_barrier(trace: Port) -> None:
    barrier = "    threadgroup_barrier(mem_flags::mem_threadgroup);\n  }\n  if (lane == 0)"
    wrong = trace.edited(REDUCTION, barrier, "  }\n  if (lane == 0)")
    assert "are not close" in reasons(wrong.verdict("test_output_match and float32"))


def test_an_encoder_that_binds_at_the_wrong_index(atan2: Port) -> None:
    wrong = atan2.edited(
        LIBRARY, "bind_operand(encoder, iter, 2, other, 2);", "bind_operand(encoder, iter, 2, other, 9);"
    )
    told = reasons(wrong.verdict("test_output_match and float32"))
    assert "PTR124: kernel `atan2_" in told
    assert "argument `other` at buffer index 2: nothing is bound there" in told


def test_an_encoder_that_ignores_a_storage_offset(atan2: Port) -> None:
    wrong = atan2.edited(LIBRARY, "offset:offset atIndex:index", "offset:0 atIndex:index")
    told = reasons(wrong.verdict("test_layouts and float32"))
    assert "test_layouts_atan2_mps_float32" in told


def test_host_code_that_does_not_compile(atan2: Port) -> None:
    wrong = atan2.edited(LIBRARY, "const auto* start =", "const auto* begin =")
    verdict = wrong.verdict("test_output_match and float32")
    assert "PTR166" in reasons(verdict)
    assert f"{LIBRARY}:72" in reasons(verdict)


def test_a_kernel_that_never_ends(trace: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTER_TEST_SECONDS", "1")
    wrong = trace.edited(
        REDUCTION, "  float sum = 0;\n", "  float sum = 0;\n  volatile uint turn = 1;\n  while (turn) {}\n"
    )
    told = reasons(wrong.verdict("test_output_match and float32"))
    assert "PTR175 test_output_match_trace_mps_float32 took longer than 1 s and was ended" in told
    assert "kernel `trace_float` was running" in told


def test_host_code_that_hangs(atan2: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTER_TEST_SECONDS", "1")
    wrong = atan2.edited(LIBRARY, "bind_operand(encoder, iter, 2, other, 2);", "for (volatile int turn = 1; turn;) {}")
    told = reasons(wrong.verdict("test_output_match and float32"))
    assert "PTR175 test_output_match_atan2_mps_float32 took longer than 1 s and was ended" in told
    assert "was running" not in told
