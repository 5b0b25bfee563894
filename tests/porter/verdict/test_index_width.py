"""Kernels with indices of 64 bits run in every verdict, and faults in them or in the choice of them fail it."""

from __future__ import annotations

from itertools import chain

import pytest

from porter.core.checkout import EMBEDDED_FORK
from porter.core.layout import KERNELS, NATIVE_FUNCTIONS, OPERATIONS
from porter.verdict.build.kernel_files import pair_widths
from porter.verdict.result import VerifyTarget
from tests.porter.verdict.test_planted_faults import reasons
from tests.porter.verdict.written_ports import Port

KERNEL_FILE = f"{KERNELS}/Diagonal.metal"
HOST_FILE = f"{OPERATIONS}/Diagonal.mm"
ROW = """
- func: trace(Tensor self) -> Tensor
  dispatch:
    CPU: trace_cpu
    MPS: trace_mps
"""
METAL = """\
#include <metal_stdlib>
using namespace metal;

template <typename index_t>
kernel void diagonal(
    device float* output [[buffer(0)]],
    constant float* input [[buffer(1)]],
    constant long& size [[buffer(2)]],
    constant long& step [[buffer(3)]],
    uint lane [[thread_position_in_grid]]) {
  float sum = 0;
  for (index_t i = 0; i < index_t(size); i++) {
    sum += input[i * index_t(step)];
  }
  output[lane] = sum;
}

template [[host_name("diagonal_float_int")]] kernel void diagonal<int>(
    device float*, constant float*, constant long&, constant long&, uint);
template [[host_name("diagonal_float_long")]] kernel void diagonal<long>(
    device float*, constant float*, constant long&, constant long&, uint);
"""
HOST = """\
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/native/CanUse32BitIndexMath.h>
#include <ATen/native/mps/MetalShaderLibrary.h>
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/trace_native.h>

namespace at::native {

static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();

Tensor trace_mps(const Tensor& self) {
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix");
  TORCH_CHECK(self.scalar_type() == kFloat, "only float is written here");
  const Tensor input = self.contiguous();
  Tensor result = at::empty({}, input.options());
  const int64_t size = std::min(input.size(0), input.size(1)), step = input.size(1) + 1;
  const std::string index_type = canUse32BitIndexMath(input) ? "int" : "long";
  const auto pipeline = lib.getPipelineStateForFunc("diagonal_float_" + index_type);
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      id<MTLComputeCommandEncoder> encoder = stream->commandEncoder();
      [encoder setComputePipelineState:pipeline];
      mps::mtl_setArgs(encoder, result, input, size, step);
      mps::mtl_dispatch1DJob(encoder, pipeline, 1);
    }
  });
  return result;
}

} // namespace at::native
"""
ROWS = (EMBEDDED_FORK / NATIVE_FUNCTIONS).read_text() + ROW
TRACE = Port(
    VerifyTarget("trace", kernels=("diagonal",)), {NATIVE_FUNCTIONS: ROWS, KERNEL_FILE: METAL, HOST_FILE: HOST}
)
SELECTED = "(test_wide_indices or test_wide_operands or test_output_match_trace) and float32"


def test_a_right_port_passes_with_wide_indices() -> None:
    verdict = TRACE.verdict(SELECTED)
    assert verdict.failures == ()
    assert verdict.passed == 3


@pytest.mark.parametrize(
    ("file", "old", "new", "reason"),
    [
        (HOST_FILE, '"int" : "long"', '"int" : "int"', "diagonal_float_int runs instead of diagonal_float_long"),
        (HOST_FILE, '"long"', '"wide"', "diagonal_float_wide"),
        (HOST_FILE, "IndexMath(input)", "IndexMath(result)", "alone beyond 32 bits: diagonal_float_int alone runs"),
        (KERNEL_FILE, "index_t(step)]", "index_t(step + sizeof(index_t) / 8)]", "not close"),
        (KERNEL_FILE, "for (index_t i = 0;", "for (index_t i = sizeof(index_t) / 8;", "not close"),
    ],
)
def test_a_fault_that_only_wide_indices_show(file: str, old: str, new: str, reason: str) -> None:
    reason_list = reasons(TRACE.edited(file, old, new).verdict(SELECTED))
    assert reason in reason_list
    assert "test_output_match" not in reason_list


def test_kernels_are_paired_by_what_they_are_without_the_width() -> None:
    pairs = (("pool_float_int", "pool_float_long"), ("rows_int_int_1_0", "rows_int_long_1_0"))
    assert pair_widths([*chain(*pairs), "pool_half_int", "sum_int", "sum_long", "rows_long_int_1_1"]) == pairs
    of_vectors = ("sum_half_int_0", "sum_half_int_4", "sum_half_long_0")
    assert pair_widths(of_vectors) == (of_vectors[::2], of_vectors[1:])
