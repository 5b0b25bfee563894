// Copies to, from and within the device, through the host's view of its bytes.
#include "device.h"
#include "memory/memory.h"
#include "stream.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/native/Copy.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/from_blob.h>
#include <torch/library.h>

namespace porter {

at::Tensor host_view(const at::Tensor& tensor) {
  if (tensor.device().type() != kDevice.type()) {
    return tensor;
  }
  finish_current_stream();
  void* bytes = porter_host_address(tensor.unsafeGetTensorImpl()->mutable_data());
  const auto options = tensor.options().device(c10::kCPU).requires_grad(false);
  auto view = at::from_blob(bytes, tensor.sizes(), tensor.strides(), options);
  view._set_conj(tensor.is_conj());
  view._set_neg(tensor.is_neg());
  return view;
}

namespace {

using at::Tensor;

void wait_for_read(const Tensor& source, const Tensor& destination) {
  check_read(source);
  if (source.device().type() == kDevice.type() && destination.device().type() != kDevice.type()) {
    wait_for_current_stream();
    check_written(source);
  }
}

// What copies nothing, as an expanded tensor onto itself.
bool is_same_data(const Tensor& self, const Tensor& source) {
  return self.is_alias_of(source) && self.storage_offset() == source.storage_offset() &&
      self.sizes().equals(source.sizes()) && self.strides().equals(source.strides()) &&
      self.scalar_type() == source.scalar_type() && self.is_conj() == source.is_conj() &&
      self.is_neg() == source.is_neg();
}

Tensor& copy(Tensor& self, const Tensor& source, bool) {
  if (is_same_data(self, source)) {
    return self;
  }
  at::assert_no_partial_overlap(self, source);  // views on the host share no storage, by which iterators tell
  wait_for_read(source, self);
  host_view(self).copy_(host_view(source));
  if (self.device() != source.device()) {
    porter_end_encoder();  // an encoder of its own copies to and from the host
  }
  return self;
}

Tensor copy_from(const Tensor& source, const Tensor& self, bool) {
  wait_for_read(source, self);
  host_view(self).copy_(host_view(source));
  return self;
}

Tensor copy_from_and_resize(const Tensor& source, const Tensor& self) {
  at::native::resize_output(self, source.sizes());
  return copy_from(source, self, false);
}

at::Scalar local_scalar(const Tensor& self) {
  check_read(self);
  wait_for_current_stream();
  check_written(self);
  return at::_local_scalar_dense(host_view(self));
}

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("copy_", TORCH_FN(copy));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar));
}

// What ATen's own copy_ comes to where an override hands a copy down to it.
void copy_operands(at::TensorIterator& iterator, bool) {
  wait_for_read(iterator.tensor(1), iterator.tensor(0));
  host_view(iterator.tensor(0)).copy_(host_view(iterator.tensor(1)));
}

}  // namespace
}  // namespace porter

namespace at::native {
REGISTER_MPS_DISPATCH(copy_stub, &porter::copy_operands)
}  // namespace at::native
