"""Ports of rows whose calls may leave tensors out: one kernel for all choices."""

from pathlib import Path

from expecttest import assert_expected_inline

from porter.plan.planner import plan_operator
from tests.porter.plan.native import left_out


def test_tensors_that_may_be_left_out(tmp_path: Path) -> None:
    plan = plan_operator(left_out.copy_fork(tmp_path), left_out.NAME, programs=lambda served: left_out.centered())
    assert plan.complete
    added = [line[1:] for line in plan.changes.diff().splitlines() if line.startswith("+") and "+++" not in line]
    assert_expected_inline(
        "\n".join(added),
        """\
#include <c10/metal/reduction_utils.h>
#include <c10/metal/utils.h>
#include <metal_stdlib>

using namespace metal;

template <typename T, typename index_t>
kernel void centered(
    device T* output,
    device T* sums,
    device T* total,
    constant T* input,
    constant T* weight,
    constant index_t& width,
    constant bool& has_weight,
    constant bool& has_sums,
    constant bool& has_total,
    uint row [[threadgroup_position_in_grid]],
    uint tid [[thread_position_in_threadgroup]],
    uint group_size [[threads_per_threadgroup]]) {
  threadgroup float shared_sum[c10::metal::simdgroup_size];
  const index_t i0 = row;
  float sum = 0;
  for (index_t r0 = tid; r0 < width; r0 += group_size) {
    sum += static_cast<float>(input[i0 * width + r0]);
  }
  sum = c10::metal::threadgroup_sum(shared_sum, sum, tid, group_size);
  const float mean = sum / static_cast<float>(width);
  for (index_t j0 = tid; j0 < width; j0 += group_size) {
    output[i0 * width + j0] = static_cast<T>(
        (static_cast<float>(input[i0 * width + j0]) - mean) *
        (has_weight ? static_cast<float>(weight[i0]) : 1.0f));
  }
  if (tid == 0) {
    if (has_sums) {
      sums[i0] = static_cast<T>(sum);
    }
    if (has_total) {
      total[i0] = static_cast<T>(static_cast<float>(total[i0]) + sum);
    }
  }
}

#define REGISTER_CENTERED_(DTYPE, INDEX)                            \\
  template [[host_name("centered_" #DTYPE "_" #INDEX)]] kernel void \\
  centered<DTYPE, INDEX>(                                           \\
      device DTYPE * output,                                        \\
      device DTYPE * sums,                                          \\
      device DTYPE * total,                                         \\
      constant DTYPE * input,                                       \\
      constant DTYPE * weight,                                      \\
      constant INDEX & width,                                       \\
      constant bool& has_weight,                                    \\
      constant bool& has_sums,                                      \\
      constant bool& has_total,                                     \\
      uint row [[threadgroup_position_in_grid]],                    \\
      uint tid [[thread_position_in_threadgroup]],                  \\
      uint group_size [[threads_per_threadgroup]])

#define REGISTER_CENTERED(DTYPE)  \\
  REGISTER_CENTERED_(DTYPE, int); \\
  REGISTER_CENTERED_(DTYPE, long)

REGISTER_CENTERED(float);
REGISTER_CENTERED(half);
REGISTER_CENTERED(bfloat);
#include <ATen/mps/MPSProfiler.h>
#include <ATen/native/CanUse32BitIndexMath.h>

#ifndef PYTORCH_JIT_COMPILE_SHADERS
static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
#else
#include <ATen/native/mps/Centered_metallib.h>
#endif
  using namespace mps;

  if (output.numel() == 0) {
    return std::make_tuple(output, sums);
  }

  const bool has_total = total_opt.has_value() && total_opt->defined();
  const bool has_sums = sums.defined();
  const auto self_ = self.contiguous();
  const auto total_opt_ = has_total ? total_opt->contiguous() : self_;
  const auto weight_opt_ = has_weight ? weight_opt->contiguous() : self_;
  const int64_t width = self.size(-1);
  MPSStream* stream = getCurrentMPSStream();
  const std::string index_type = canUse32BitIndexMath(output) && canUse32BitIndexMath(sums) &&
          canUse32BitIndexMath(total_opt_) && canUse32BitIndexMath(self) && canUse32BitIndexMath(weight_opt_)
      ? "int"
      : "long";
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto computeEncoder = stream->commandEncoder();
      auto PSO = lib.getPipelineStateForFunc("centered_" + scalarToMetalTypeString(self) + "_" + index_type);
      // this function call is a no-op if MPS Profiler is not enabled
      getMPSProfiler().beginProfileKernel(PSO, "centered", {total_opt_, self_, weight_opt_});
      [computeEncoder setComputePipelineState:PSO];
      mtl_setArgs(computeEncoder,
                  output,
                  has_sums ? sums : self_,
                  total_opt_,
                  self_,
                  weight_opt_,
                  width,
                  has_weight,
                  has_sums,
                  has_total);
      const auto group_size = std::min<NSUInteger>([PSO maxTotalThreadsPerThreadgroup], (width / 32 + 1) * 32);
      [computeEncoder dispatchThreadgroups:MTLSizeMake(self.size(0), 1, 1)
                     threadsPerThreadgroup:MTLSizeMake(group_size, 1, 1)];
      getMPSProfiler().endProfileKernel(PSO);
    }
  });
  if (has_total && !total_opt_.is_same(*total_opt)) {
    total_opt->copy_(total_opt_);
  }
""",
    )
