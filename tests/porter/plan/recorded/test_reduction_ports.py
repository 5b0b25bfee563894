"""Ports of reductions over dimensions that an argument names: one kernel for all of their cases."""

from dataclasses import replace
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core.errors import PorterError
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.loops.program import Programs
from porter.metal.codegen.canonicalize import prepare
from porter.metal.codegen.host_values import Names
from porter.plan.planner import plan_operator
from porter.plan.recorded.corrections import create_results
from tests.porter.plan.recorded import fork


def added(folder: Path, programs: Programs, file: str) -> str:
    """The lines that a port adds to a file, without those of the macros that instantiate kernels."""
    plan = plan_operator(fork.copy_fork(folder), "largest", programs=lambda served: programs)
    assert plan.complete
    part = next(part for part in plan.changes.diff().split("diff --git") if part.startswith(f" a/{file}"))
    lines = (line[1:] for line in part.splitlines() if line.startswith("+") and not line.endswith("\\"))
    return "\n".join(line for line in lines if not line.startswith("++"))


def test_a_kernel_goes_over_the_sizes_and_strides_of_dimensions(tmp_path: Path) -> None:
    assert_expected_inline(
        added(tmp_path, fork.largest(), "aten/src/ATen/native/mps/kernels/Turns.metal"),
        """\
#include <c10/metal/reduction_utils.h>
#include <c10/metal/utils.h>
#include <metal_stdlib>

using namespace metal;

// Neighboring elements, which are read at once
template <typename T, int N>
struct alignas(N * sizeof(T)) neighbors {
  T at[N];
};

// The offset of an element by its index, which is not divided by the size of
// the last dimension
template <typename index_t>
inline index_t strided_offset(
    index_t index,
    constant long* sizes,
    constant long* strides,
    uint ndim) {
  index_t offset = 0;
  for (uint i = 0; i + 1 < ndim; i++) {
    const index_t outer = index / index_t(sizes[i]);
    offset += (index - outer * index_t(sizes[i])) * index_t(strides[i]);
    index = outer;
  }
  return offset + index * index_t(strides[ndim - 1]);
}

template <typename T, typename index_t, int N>
kernel void largest(
    device T* output,
    device float* partials,
    constant T* input,
    constant long* kept_sizes,
    constant long* kept_strides,
    constant long* reduced_sizes,
    constant long* reduced_strides,
    constant uint2& ndim,
    constant index_t& reduced_size,
    constant uint& slices,
    uint2 position [[thread_position_in_grid]],
    uint2 grid_size [[threads_per_grid]],
    uint2 tid [[thread_position_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  threadgroup float shared_largest[c10::metal::simdgroup_size];
  const index_t row = position.y;
  input += strided_offset(row, kept_sizes, kept_strides, ndim.x);
  float largest = -INFINITY;
  constexpr index_t count = N ? N : 1; // of the elements of a turn
  const index_t step = grid_size.x * count;
  const index_t turns = (reduced_size + step - 1 - position.x * count) / step;
#pragma unroll(N == 1 ? 8 : 4)
  for (index_t turn = 0; turn < turns; turn++) {
    const index_t first = position.x * count + turn * step;
    const auto elements = *reinterpret_cast<constant neighbors<T, count>*>(
        input +
        strided_offset(first, reduced_sizes, reduced_strides, N ? 1 : ndim.y));
    for (index_t i = 0; i < count; i++) {
      largest = c10::metal::max(largest, static_cast<float>(elements.at[i]));
    }
  }
  if (group_size.x > 1) {
    largest = c10::metal::threadgroup_max(
        shared_largest + tid.y, largest, tid.x, group_size.x);
  }
  if (tid.x == 0) {
    if (slices > 1) {
      partials[row * slices + position.x / group_size.x] = largest;
    } else {
      output[row] = static_cast<T>(largest);
    }
  }
}

      uint2 group_size [[threads_per_threadgroup]])

  REGISTER_LARGEST_(DTYPE, long, 0)

REGISTER_LARGEST(float);
REGISTER_LARGEST(half);
REGISTER_LARGEST(bfloat);

template <typename T>
kernel void largest_combine(
    device T* output,
    constant float* partials,
    constant uint& slices,
    uint group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const long row = group;
  float largest = -INFINITY;
  for (uint slice = lane; slice < slices; slice += c10::metal::simdgroup_size) {
    largest = c10::metal::max(largest, partials[row * slices + slice]);
  }
  largest = c10::metal::simd_max(largest);
  if (lane == 0) {
    output[row] = static_cast<T>(largest);
  }
}

      uint lane [[thread_index_in_simdgroup]])

REGISTER_LARGEST_COMBINE(float);
REGISTER_LARGEST_COMBINE(half);
REGISTER_LARGEST_COMBINE(bfloat);""",
    )


def test_host_code_merges_dimensions_and_copies_no_input(tmp_path: Path) -> None:
    assert_expected_inline(
        added(tmp_path, fork.largest(), "aten/src/ATen/native/mps/operations/Turns.mm"),
        """\
#include <ATen/AccumulateType.h>
#include <ATen/ceil_div.h>
#include <ATen/core/DimVector.h>
#include <ATen/mps/MPSProfiler.h>
#include <ATen/native/CanUse32BitIndexMath.h>
#include <ATen/native/ReduceOpsUtils.h>

#ifndef PYTORCH_JIT_COMPILE_SHADERS
static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
#else
#include <ATen/native/mps/Turns_metallib.h>
#endif

namespace {
// Some dimensions of a tensor, the innermost first; those that one stride goes over are one.
struct MergedDims {
  DimVector sizes{1};
  DimVector strides{0};
};
} // namespace

static MergedDims merge_dims(const Tensor& tensor, const DimMask& mask) {
  MergedDims dims;
  for (int64_t dim = tensor.dim() - 1; dim >= 0; dim--) {
    if (!mask[dim] || tensor.size(dim) == 1) {
      continue;
    }
    if (dims.sizes.back() == 1) {
      dims.sizes.back() = tensor.size(dim);
      dims.strides.back() = tensor.stride(dim);
    } else if (tensor.stride(dim) == dims.sizes.back() * dims.strides.back()) {
      dims.sizes.back() *= tensor.size(dim);
    } else {
      dims.sizes.push_back(tensor.size(dim));
      dims.strides.push_back(tensor.stride(dim));
    }
  }
  return dims;
}

// How many neighboring elements one turn of a thread reads; none where elements have several dimensions.
static int64_t count_neighbors(const Tensor& tensor, const MergedDims& kept, const MergedDims& reduced) {
  const int64_t size = reduced.sizes[0];
  int64_t multiple = tensor.storage_offset() | size;
  for (const auto stride : kept.strides) {
    multiple |= stride;
  }
  const bool is_aligned = reduced.strides[0] == 1 && multiple % 4 == 0;
  // A thread has a short row alone; a simdgroup shares one that has neighbors for all lanes.
  return reduced.sizes.size() > 1 ? 0 : is_aligned && (size <= 32 || size >= 4 * 32) ? 4 : 1;
}

namespace {
// How the threads of a grid share rows of elements: a thread, a simdgroup or a threadgroup has a row, or a slice of
// one. Another kernel combines the slices.
struct RowThreads {
  int64_t lanes;
  uint32_t slices;
};
} // namespace

// 32-bit indices up to this one stay in range where the width of a grid is added to them.
constexpr int64_t kLargestRowIndex = 1 << 30;

static RowThreads share_rows(int64_t rows, int64_t length, bool are_adjacent = false, int64_t group_size = 256) {
  constexpr int64_t kSimdSize = 32;
  constexpr int64_t kManyThreads = 512 * 1024;
  // Neighboring threads read neighboring elements: of one row or, where rows are adjacent, of several.
  const bool has_thread = length <= kSimdSize || (are_adjacent && rows * length >= 64 * 1024);
  const bool has_simdgroup = length <= 1024 || (length <= 8192 && rows * kSimdSize >= kManyThreads);
  // Lanes of a threadgroup have 16 elements at least, which are worth combining.
  const int64_t most_lanes = std::min(group_size, at::ceil_div(length, 16 * kSimdSize) * kSimdSize);
  const int64_t lanes = has_thread ? 1 : has_simdgroup ? kSimdSize : most_lanes;
  // A thread has 32 elements at least, which are worth a second launch, and 256 at most, for sums to be accurate.
  const int64_t most = length / (32 * lanes);
  const int64_t least = at::ceil_div(length, 256 * lanes);
  const auto slices = std::max<int64_t>({1, least, std::min(most, kManyThreads / (rows * lanes))});
  return {lanes, static_cast<uint32_t>(slices)};
}

static void dispatch_rows(id<MTLComputeCommandEncoder> encoder,
                          id<MTLComputePipelineState> PSO,
                          int64_t rows,
                          const RowThreads& threads) {
  const auto lanes = std::min<NSUInteger>([PSO maxTotalThreadsPerThreadgroup], threads.lanes);
  [encoder dispatchThreads:MTLSizeMake(threads.slices * lanes, rows, 1)
      threadsPerThreadgroup:MTLSizeMake(lanes, lanes > 32 ? 1 : 256 / lanes, 1)];
}
  using namespace mps;

  if (out.numel() == 0) {
    return out;
  }

  const auto out_contiguous = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
  const auto mask = make_dim_mask(dim, self.dim());
  const auto kept = merge_dims(self, ~mask);
  const auto reduced = merge_dims(self, mask);
  const std::array<uint32_t, 2> ndim = {static_cast<uint32_t>(kept.sizes.size()),
                                        static_cast<uint32_t>(reduced.sizes.size())};
  const int64_t reduced_size = c10::multiply_integers(reduced.sizes);
  const auto threads = share_rows(
      out.numel(), reduced_size, /*are_adjacent=*/kept.sizes[0] >= 32 && kept.strides[0] < reduced.strides[0]);
  const auto partials = threads.slices > 1
      ? at::empty({out.numel(), threads.slices}, out_contiguous.options().dtype(kFloat))
      : out_contiguous;
  MPSStream* stream = getCurrentMPSStream();
  const std::string index_type =
      canUse32BitIndexMath(out, kLargestRowIndex) && canUse32BitIndexMath(self, kLargestRowIndex) ? "int" : "long";
  const auto count = index_type == "int" ? count_neighbors(self, kept, reduced) : 0;
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto computeEncoder = stream->commandEncoder();
      auto PSO = lib.getPipelineStateForFunc("largest_" + scalarToMetalTypeString(self) + "_" + index_type + "_" +
                                             std::to_string(count));
      // this function call is a no-op if MPS Profiler is not enabled
      getMPSProfiler().beginProfileKernel(PSO, "largest", {self}, stream);
      [computeEncoder setComputePipelineState:PSO];
      mtl_setArgs(computeEncoder,
                  out_contiguous,
                  partials,
                  self,
                  kept.sizes,
                  kept.strides,
                  reduced.sizes,
                  reduced.strides,
                  ndim,
                  reduced_size,
                  threads.slices);
      dispatch_rows(computeEncoder, PSO, out.numel(), threads);
      getMPSProfiler().endProfileKernel(PSO, stream);
      if (threads.slices > 1) {
        auto combinePSO = lib.getPipelineStateForFunc("largest_combine_" + scalarToMetalTypeString(self));
        getMPSProfiler().beginProfileKernel(combinePSO, "largest_combine", {partials}, stream);
        [computeEncoder setComputePipelineState:combinePSO];
        mtl_setArgs(computeEncoder, out_contiguous, partials, threads.slices);
        [computeEncoder dispatchThreadgroups:MTLSizeMake(out.numel(), 1, 1)
                       threadsPerThreadgroup:MTLSizeMake(32, 1, 1)];
        getMPSProfiler().endProfileKernel(combinePSO, stream);
      }
    }
  });
  if (!out_contiguous.is_same(out)) {
    out.copy_(out_contiguous);
  }
""",
    )


def test_threads_find_the_first_index_of_the_largest_together(tmp_path: Path) -> None:
    made = added(tmp_path, fork.largest_index(), "aten/src/ATen/native/mps/kernels/Turns.metal")
    assert_expected_inline(
        made[made.index("  float extreme") : made.index("REGISTER")],
        """\
  float extreme = -INFINITY;
  index_t best = ::metal::numeric_limits<index_t>::max();
  constexpr index_t count = N ? N : 1; // of the elements of a turn
  const index_t step = grid_size.x * count;
  const index_t turns = (reduced_size + step - 1 - position.x * count) / step;
#pragma unroll(N == 1 ? 8 : 4)
  for (index_t turn = 0; turn < turns; turn++) {
    const index_t first = position.x * count + turn * step;
    const auto elements = *reinterpret_cast<constant neighbors<T, count>*>(
        input +
        strided_offset(first, reduced_sizes, reduced_strides, N ? 1 : ndim.y));
    for (index_t i = 0; i < count; i++) {
      const index_t r0 = first + i;
      const float value = elements.at[i];
      if (value > extreme || best == ::metal::numeric_limits<index_t>::max() ||
          (isnan(value) && !isnan(extreme))) {
        extreme = value;
        best = r0;
      }
    }
  }
  if (group_size.x > 1) {
    const float row_extreme = c10::metal::threadgroup_max(
        shared_row_extreme + tid.y, extreme, tid.x, group_size.x);
    best = c10::metal::threadgroup_min(
        shared_best + tid.y,
        extreme == row_extreme || isnan(extreme)
            ? best
            : ::metal::numeric_limits<index_t>::max(),
        tid.x,
        group_size.x);
    extreme = row_extreme;
  }
  if (tid.x == 0) {
    if (slices > 1) {
      partial_extreme[row * slices + position.x / group_size.x] = extreme;
      partial_best[row * slices + position.x / group_size.x] = best;
    } else {
      output[row] = static_cast<long>(best);
    }
  }
}

      uint2 group_size [[threads_per_threadgroup]])

  """,
    )


def test_a_case_that_reads_other_elements_stays_as_it_is(tmp_path: Path) -> None:
    cases = fork.largest().cases
    call = replace(cases[1].example, others={"dim": (2,), "keepdim": False})
    programs = Programs("largest.out", (replace(cases[1], example=call, when=()),))
    with pytest.raises(PorterError, match="PTR372"):  # the first of several dimensions has no C++
        added(tmp_path, programs, "aten/src/ATen/native/mps/kernels/Turns.metal")


def test_a_mask_that_the_function_has_is_not_made_again(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    host = checkout.root / OPERATIONS / "Turns.mm"
    check = '  TORCH_CHECK(self.numel() > 0, "largest: no elements");\n'
    mask = "  const auto mask = make_dim_mask(dim, self.dim());\n  resize_reduction_result(out, self, mask, keepdim, type);\n"
    host.write_text(host.read_text().replace(check, check + mask))
    plan = plan_operator(checkout, "largest", programs=lambda served: fork.largest())
    assert plan.changes.diff().count("make_dim_mask(") == 1


def test_what_is_read_becomes_of_the_type_that_callers_choose(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    table, host = checkout.root / NATIVE_FUNCTIONS, checkout.root / OPERATIONS / "Turns.mm"
    chosen = "keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out"
    table.write_text(table.read_text().replace("keepdim=False, *, Tensor(a!) out", chosen))
    taken = "bool keepdim, std::optional<ScalarType> dtype, Tensor& out"
    host.write_text(host.read_text().replace("bool keepdim, Tensor& out", taken))
    made = plan_operator(checkout, "largest", programs=lambda served: fork.largest()).changes.diff()
    assert "TORCH_CHECK(!isIntegralType(out.scalar_type(), /*includeBool=*/true)," in made
    assert "const auto self_cast = self.to(out.scalar_type());" in made
    assert "merge_dims(self_cast, mask)" in made and "scalarToMetalTypeString(self_cast)" in made


def test_results_are_created_as_reductions_have_them() -> None:
    names = Names(
        {"self": "input", "dim": "dims", "keepdim": "keepdim", "result0": "output"},
        {"self": "Tensor", "dim": "int[1]?", "keepdim": "bool"},
    )
    programs = prepare(fork.largest())
    body = "Tensor output = at::empty(IntArrayRef(shape.data(), rank), input.scalar_type(), std::nullopt, kMPS);"
    created = "Tensor output = create_reduction_result(input, dims, keepdim, input.scalar_type());"
    assert create_results(body, programs, names) == created
    other = "Tensor output = at::empty(like.sizes(), input.scalar_type());"
    assert create_results(other, programs, names) == other
