// Which bytes of a storage a tensor is that host code binds: host code names a buffer and an offset, no tensor. It can only
// mean a tensor that the running operators were given, or that they made by other operators: those are kept as they come.
// Outside of operators, as in a function that an extension binds with pybind11, it means one that an operator made before.
#include "device.h"
#include "metal/include/porter_metal_abi.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace porter {
namespace {

using Kept = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

// What the operators that run on this thread have to do with, an element for each of them.
thread_local std::vector<std::vector<Kept>> running;

// What operators have made that no other was running around, by storage.
std::mutex made_guard;
std::unordered_map<const void*, std::vector<Kept>> made;
size_t made_count = 0;
constexpr size_t kMostMade = 4096;  // until those that are gone are left out

template <class Take>
void visit_tensors(const c10::IValue& value, Take take) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (tensor.defined() && tensor.device().type() == kDevice.type() && tensor.layout() == at::kStrided) {
      take(tensor);
    }
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      visit_tensors(tensor, take);
    }
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      visit_tensors(element, take);
    }
  }
}

void keep(const c10::IValue& value, std::vector<Kept>& kept) {
  visit_tensors(value, [&](const at::Tensor& tensor) { kept.emplace_back(tensor.getIntrusivePtr()); });
}

void forget_gone(std::vector<Kept>& kept) {
  std::erase_if(kept, [](const Kept& each) { return each.expired(); });
}

void remember(const c10::IValue& value) {
  const std::lock_guard<std::mutex> lock(made_guard);
  visit_tensors(value, [](const at::Tensor& tensor) {
    if (!tensor.has_storage()) {
      return;
    }
    made[tensor.storage().data()].emplace_back(tensor.getIntrusivePtr());
    if (++made_count % kMostMade == 0) {
      for (auto& [base, kept] : made) {
        forget_gone(kept);
      }
      std::erase_if(made, [](const auto& each) { return each.second.empty(); });
    }
  });
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  std::vector<Kept>& kept = running.emplace_back();
  for (const c10::IValue& input : function.inputs()) {
    keep(input, kept);
  }
  return nullptr;
}

void end(const at::RecordFunction& function, at::ObserverContext*) {
  if (!running.empty()) {
    running.pop_back();
  }
  for (const c10::IValue& output : function.outputs()) {
    if (running.empty()) {
      remember(output);
    } else {
      keep(output, running.back());
    }
  }
}

struct Span {
  size_t low, high;
  uint64_t type;  // as pm_buffer has it
};

uint64_t type_number(caffe2::TypeMeta type) {
  switch (c10::typeMetaToScalarType(type)) {
    case at::kBool: return 1 + PM_BOOL;
    case at::kChar: return 1 + PM_CHAR;
    case at::kByte: return 1 + PM_UCHAR;
    case at::kShort: return 1 + PM_SHORT;
    case at::kUInt16: return 1 + PM_USHORT;
    case at::kInt: return 1 + PM_INT;
    case at::kUInt32: return 1 + PM_UINT;
    case at::kLong: return 1 + PM_LONG;
    case at::kUInt64: return 1 + PM_ULONG;
    case at::kHalf: return 1 + PM_HALF;
    case at::kFloat: return 1 + PM_FLOAT;
    case at::kBFloat16: return 1 + PM_BFLOAT;
    default: return 0;
  }
}

// The bytes of its storage that a tensor may touch.
Span span_of(const c10::TensorImpl& tensor) {
  const size_t item = tensor.itemsize(), low = tensor.storage_offset() * item;
  if (tensor.numel() == 0) {
    return {low, low, 0};
  }
  size_t last = 0;
  for (int64_t d = 0; d < tensor.dim(); d++) {
    last += (tensor.size(d) - 1) * tensor.stride(d);
  }
  return {low, low + (last + 1) * item, type_number(tensor.dtype())};
}

template <class Visit>
void visit_kept(const std::vector<Kept>& kept, const void* base, Visit visit) {
  for (const Kept& each : kept) {
    const auto tensor = each.lock();
    if (tensor && tensor->has_storage() && tensor->storage().data() == base) {
      visit(span_of(*tensor));
    }
  }
}

template <class Visit>
void visit_spans(const void* base, Visit visit) {
  for (const std::vector<Kept>& kept : running) {
    visit_kept(kept, base, visit);
  }
  if (running.empty()) {
    const std::lock_guard<std::mutex> lock(made_guard);
    if (const auto found = made.find(base); found != made.end()) {
      forget_gone(found->second);
      visit_kept(found->second, base, visit);
    }
  }
}

}  // namespace
}  // namespace porter

extern "C" {

// From now on operators that run say what tensors they have.
void porter_watch_slices() {
  using namespace porter;
  static const auto handle = at::addGlobalCallback(
      at::RecordFunctionCallback(&begin, &end).needsInputs(true).needsOutputs(true).scopes({at::RecordScope::FUNCTION}));
  (void)handle;
}

// The bytes from `offset` on of the storage at `base` that are a tensor's; 0 where none is known to start there. Host code may
// bind the start of a storage and hand over offsets of its own: then a tensor starts elsewhere, at none of the `bound` offsets.
// The type is the tensors' that start there, where they agree.
size_t porter_slice_extent(const void* base, size_t offset, const size_t* bound, size_t count, uint64_t* type) {
  size_t extent = 0;
  bool elsewhere = false, first = true;
  *type = 0;
  porter::visit_spans(base, [&](porter::Span span) {
    if (span.low == offset) {
      extent = std::max(extent, span.high - span.low);
      *type = first || *type == span.type ? span.type : 0;
      first = false;
    } else if (offset == 0 && std::find(bound, bound + count, span.low) == bound + count) {
      elsewhere = true;
    }
  });
  *type = elsewhere ? 0 : *type;
  return elsewhere ? 0 : extent;
}

}  // extern "C"
