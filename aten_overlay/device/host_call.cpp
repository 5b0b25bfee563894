#include "host_call.h"

#include "device.h"
#include "memory/memory.h"

#include <ATen/ops/_to_cpu.h>
#include <ATen/ops/copy_sparse_to_sparse.h>

#include <algorithm>
#include <cstring>

namespace porter {
namespace {

using at::Tensor;
using c10::Storage;

// Whether a tensor is a strided view of bytes: sparse ones, and zeros that have no bytes, are copied instead.
bool has_bytes(const Tensor& tensor) {
  return tensor.layout() == c10::kStrided && tensor.has_storage() && !tensor._is_zerotensor();
}

// Another tensor over `storage` with the shape and the bits of this one.
Tensor over(Storage storage, const Tensor& tensor, c10::DispatchKey key) {
  auto made = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), tensor.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  made._set_conj(tensor.is_conj());
  made._set_neg(tensor.is_neg());
  return made;
}

bool same_shape(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() && a.storage_offset() == b.storage_offset();
}

void copy_bytes(const Storage& device, const Storage& host) {
  if (host.nbytes() != 0) {
    std::memcpy(porter_host_address(device.mutable_data()), host.data(), host.nbytes());
  }
}

template <class List, class Change>
c10::IValue each(List list, Change change) {
  for (size_t i = 0; i < list.size(); i++) {
    list[i] = change(list[i]);
  }
  return c10::IValue(std::move(list));
}

}  // namespace

void HostCall::run(const c10::OperatorHandle& op, torch::jit::Stack* stack, c10::DispatchKey key) {
  finish_current_stream();
  HostCall call;
  const torch::jit::Stack given(stack->end() - static_cast<ptrdiff_t>(op.schema().arguments().size()), stack->end());
  const auto change = [stack](size_t count, auto changed) {
    const auto first = stack->end() - static_cast<ptrdiff_t>(count);
    std::transform(first, stack->end(), first, changed);
  };
  change(op.schema().arguments().size(), [&](const c10::IValue& value) { return call.argument(value); });
  op.redispatchBoxed(c10::DispatchKeySet(key), stack);
  call.take_resizes_over();
  call.copy_back(op.schema(), given);
  change(op.schema().returns().size(), [&](const c10::IValue& value) { return call.result(value); });
}

c10::IValue HostCall::argument(const c10::IValue& value) {
  if (value.isTensor()) {
    return host_of(value.toTensor());
  }
  if (value.isTensorList()) {
    return each(value.toTensorList().copy(), [&](const Tensor& t) { return host_of(t); });
  }
  if (value.isOptionalTensorList()) {
    return each(value.toOptionalTensorList().copy(), [&](const std::optional<Tensor>& t) {
      return t ? std::make_optional(host_of(*t)) : t;
    });
  }
  if (value.isDevice()) {
    target_ = value.toDevice();
    return c10::Device(c10::kCPU);
  }
  return value;
}

c10::IValue HostCall::result(const c10::IValue& value) {
  if (value.isTensor()) {
    return device_of(value.toTensor());
  }
  if (value.isTensorList()) {
    return each(value.toTensorList().copy(), [&](const Tensor& t) { return device_of(t); });
  }
  return value;
}

Tensor HostCall::host_of(const Tensor& tensor) {
  if (!tensor.defined()) {
    return tensor;
  }
  const auto known = std::find_if(
      tensors_.begin(), tensors_.end(), [&](const Tensors& pair) { return pair.device.is_same(tensor); });
  if (known != tensors_.end()) {
    return known->host;
  }
  Tensor host = tensor;
  if (tensor.device().type() == kDevice.type() && has_bytes(tensor)) {
    check_read(tensor);
    host = over(host_of(tensor.storage()), tensor, c10::DispatchKey::CPU);
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
      host.unsafeGetTensorImpl()->set_wrapped_number(true);
    }
  } else if (!tensor.device().is_cpu()) {
    host = at::_to_cpu({tensor})[0];
  }
  tensors_.push_back({tensor, host});
  return host;
}

Storage HostCall::host_of(const Storage& storage) {
  const auto known = std::find_if(
      storages_.begin(), storages_.end(), [&](const Storages& pair) { return pair.device.is_alias_of(storage); });
  if (known != storages_.end()) {
    return known->host;
  }
  void* bytes = porter_host_address(storage.mutable_data());
  auto* own = c10::GetAllocator(c10::kCPU);
  Storage host(Storage::use_byte_size_t(), storage.nbytes(), c10::DataPtr(bytes, c10::kCPU), own, storage.resizable());
  storages_.push_back({storage, host, bytes});
  return host;
}

// The argument that a result is, a view of an argument where it is one, else a new tensor.
Tensor HostCall::device_of(const Tensor& tensor) {
  const auto known = std::find_if(
      tensors_.begin(), tensors_.end(), [&](const Tensors& pair) { return pair.host.is_same(tensor); });
  if (known != tensors_.end()) {
    return known->device;
  }
  if (!tensor.defined() || !tensor.device().is_cpu() || target_.is_cpu()) {
    return tensor;
  }
  if (!has_bytes(tensor)) {
    return tensor.to(target_);
  }
  check_type(tensor.scalar_type());
  return over(device_of(tensor.storage()), tensor, c10::DispatchKey::MPS);
}

Storage HostCall::device_of(const Storage& storage) {
  const auto known = std::find_if(
      storages_.begin(), storages_.end(), [&](const Storages& pair) { return pair.host.is_alias_of(storage); });
  if (known != storages_.end()) {
    return known->device;
  }
  const size_t size = storage.nbytes();
  Storage device(Storage::use_byte_size_t(), size, allocator()->allocate(size), allocator(), /*resizable=*/true);
  copy_bytes(device, storage);
  storages_.push_back({device, storage, storage.data()});
  return device;
}

// What the kernel resized has bytes of its own by now.
void HostCall::take_resizes_over() {
  for (const Storages& pair : storages_) {
    if (pair.host.data() != pair.bytes) {
      resize_bytes(pair.device.unsafeGetStorageImpl(), pair.host.nbytes());
      copy_bytes(pair.device, pair.host);
    }
  }
  for (const Tensors& pair : tensors_) {
    if (!pair.device.defined() || pair.device.device().type() != kDevice.type() || !has_bytes(pair.device)) {
      continue;
    }
    auto* device = pair.device.unsafeGetTensorImpl();
    const Storage storage = device_of(pair.host.storage());
    if (!storage.is_alias_of(pair.device.storage())) {
      device->set_storage_keep_dtype(storage);
    }
    if (!same_shape(pair.device, pair.host)) {
      device->set_sizes_and_strides(pair.host.sizes(), pair.host.strides(), pair.host.storage_offset());
    }
  }
}

// Arguments that the kernel got as copies: only here does the schema say what is written.
void HostCall::copy_back(const c10::FunctionSchema& schema, const torch::jit::Stack& arguments) {
  for (size_t i = 0; i < arguments.size(); i++) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (alias == nullptr || !alias->isWrite() || !arguments[i].isTensor() || !arguments[i].toTensor().is_sparse()) {
      continue;
    }
    Tensor device = arguments[i].toTensor();
    at::copy_sparse_to_sparse_(device, host_of(device));
  }
}

}  // namespace porter
