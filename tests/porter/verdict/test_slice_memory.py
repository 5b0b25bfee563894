"""Memory that host code makes for slices: too little of it is found by the run with bounds checks alone."""

from __future__ import annotations

from porter.core.checkout import EMBEDDED_FORK
from porter.core.layout import KERNELS, NATIVE_FUNCTIONS, OPERATIONS
from porter.verdict.result import VerifyTarget
from tests.porter.verdict.test_planted_faults import reasons
from tests.porter.verdict.written_ports import Port

KERNEL_FILE = f"{KERNELS}/Largest.metal"
HOST_FILE = f"{OPERATIONS}/Largest.mm"
ROW = """
- func: amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor
  dispatch:
    MPS: amax_mps
"""
METAL = """\
#include <metal_stdlib>
using namespace metal;

inline float larger(float a, float b) {
  return isnan(a) || a > b ? a : b;
}

kernel void largest_of_slices(
    device float* partials [[buffer(0)]],
    constant float* input [[buffer(1)]],
    constant long& size [[buffer(2)]],
    constant long& slices [[buffer(3)]],
    uint place [[thread_position_in_grid]]) {
  constant float* row = input + (place / slices) * size;
  float value = -INFINITY;
  for (long i = place % slices; i < size; i += slices) {
    value = larger(value, row[i]);
  }
  partials[place] = value;
}

kernel void largest_of_partials(
    device float* output [[buffer(0)]],
    constant float* partials [[buffer(1)]],
    constant long& slices [[buffer(2)]],
    uint row [[thread_position_in_grid]]) {
  float value = -INFINITY;
  for (long i = 0; i < slices; i++) {
    value = larger(value, partials[row * slices + i]);
  }
  output[row] = value;
}
"""
HOST = """\
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/WrapDimUtils.h>
#include <ATen/native/mps/MetalShaderLibrary.h>
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/ops/empty.h>

namespace at::native {

static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();

Tensor amax_mps(const Tensor& self, IntArrayRef dim, bool keepdim) {
  TORCH_CHECK_NOT_IMPLEMENTED(self.scalar_type() == kFloat, "only float is written here");
  std::vector<int64_t> kept, reduced, sizes;
  int64_t rows = 1, size = 1;
  for (int64_t i = 0; i < self.dim(); i++) {
    bool is_reduced = dim.empty();
    for (const auto each : dim) {
      is_reduced = is_reduced || maybe_wrap_dim(each, self.dim()) == i;
    }
    (is_reduced ? reduced : kept).push_back(i);
    (is_reduced ? size : rows) *= self.size(i);
    if (!is_reduced || keepdim) {
      sizes.push_back(is_reduced ? 1 : self.size(i));
    }
  }
  kept.insert(kept.end(), reduced.begin(), reduced.end());
  const Tensor input = self.permute(kept).contiguous();
  Tensor result = at::empty(sizes, input.options());
  const int64_t slices = std::max<int64_t>(size / (32 * 256), 1);
  Tensor partials = at::empty({rows * slices}, input.options());
  const auto reduce = lib.getPipelineStateForFunc("largest_of_slices");
  const auto combine = lib.getPipelineStateForFunc("largest_of_partials");
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      id<MTLComputeCommandEncoder> encoder = stream->commandEncoder();
      [encoder setComputePipelineState:reduce];
      mps::mtl_setArgs(encoder, partials, input, size, slices);
      mps::mtl_dispatch1DJob(encoder, reduce, rows * slices);
      [encoder setComputePipelineState:combine];
      mps::mtl_setArgs(encoder, result, partials, slices);
      mps::mtl_dispatch1DJob(encoder, combine, rows);
    }
  });
  return result;
}

} // namespace at::native
"""
ROWS = (EMBEDDED_FORK / NATIVE_FUNCTIONS).read_text() + ROW
LARGEST = Port(
    VerifyTarget("amax", kernels=("largest_of_slices", "largest_of_partials")),
    {NATIVE_FUNCTIONS: ROWS, KERNEL_FILE: METAL, HOST_FILE: HOST},
)
SELECTED = "test_combined_arguments and float32"


def test_a_right_port_of_rows_in_slices_passes() -> None:
    verdict = LARGEST.verdict(SELECTED)
    assert verdict.failures == ()
    assert verdict.passed == 1


def test_memory_for_one_of_two_slices_is_found_though_values_are_right() -> None:
    short = LARGEST.edited(HOST_FILE, "at::empty({rows * slices}", "at::empty({slices == 2 ? rows : rows * slices}")
    failures = short.verdict(SELECTED).failures
    assert failures and all("with bounds checks" in failure.reason for failure in failures), failures
    assert "largest_of_slices" in reasons(short.verdict(SELECTED))
