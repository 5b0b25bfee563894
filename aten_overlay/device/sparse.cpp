// Sparse COO tensors on the device: what only arranges indices and values is the CPU's own code, which works on tensors of
// any device; all else runs on copies on the CPU, and what it writes to is written back.
#include "host_call.h"

#include <torch/library.h>

namespace porter {
namespace {

constexpr auto kSparseHost = c10::DispatchKey::SparseCPU;

constexpr const char* kArranging[] = {
    "_sparse_coo_tensor_with_dims", "_sparse_coo_tensor_with_dims_and_tensors", "empty.memory_format", "empty_like",
    "sparse_resize_", "sparse_resize_and_clear_", "sparse_dim", "dense_dim", "_nnz", "is_coalesced", "_coalesced_",
    "_indices", "_values", "indices", "values", "copy_sparse_to_sparse_", "copy_", "clone", "zero_",
};

void arrange(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  op.redispatchBoxed(c10::DispatchKeySet(kSparseHost), stack);
}

void run_on_copies(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  TORCH_CHECK_NOT_IMPLEMENTED(op.hasComputedKernelForDispatchKey(kSparseHost), "Could not run '",
      c10::toString(op.operator_name()), "' with arguments from the 'SparseMPS' backend.");
  run_counted(op, stack, kSparseHost);
}

TORCH_LIBRARY_IMPL(_, SparseMPS, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_copies>());
}

TORCH_LIBRARY_IMPL(aten, SparseMPS, m) {
  for (const char* name : kArranging) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&arrange>());
  }
}

}  // namespace
}  // namespace porter
