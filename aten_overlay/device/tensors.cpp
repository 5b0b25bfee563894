// Making tensors on the device: empty, strided, resized, over another's storage, and every view.
#include "device.h"

#include <ATen/EmptyTensor.h>
#include <ATen/mps/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/ResizeCommon.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

namespace porter {

using namespace at;

void check_type(ScalarType type) {
  TORCH_CHECK_TYPE(type != kDouble, "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support "
      "float64. Please use float32 instead.");
  TORCH_CHECK_TYPE(type != kComplexDouble, "Trying to convert ComplexDouble to the MPS backend but it does not have "
      "support for that dtype.");
}

namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::MPS);
constexpr size_t kMostDimensions = 16;

void check_request(IntArrayRef size, ScalarType type, std::optional<Layout> layout) {
  TORCH_CHECK_NOT_IMPLEMENTED(layout_or_default(layout) == kStrided, "only strided tensors are supported on MPS");
  TORCH_CHECK(size.size() <= kMostDimensions, "MPS supports tensors with dimensions <= 16, but got ", size.size(), ".");
  check_type(type);
}

// Whether the values of new memory are the same in each run: see torch.utils.deterministic.fill_uninitialized_memory.
bool fills_new_memory() {
  return globalContext().deterministicAlgorithms() && globalContext().deterministicFillUninitializedMemory();
}

Tensor fill_new(const TensorBase& made) {
  Tensor tensor(made);
  return fills_new_memory() ? native::fill_empty_deterministic_(tensor) : tensor;
}

TensorBase make_empty(
    IntArrayRef size, ScalarType type, std::optional<Layout> layout, std::optional<MemoryFormat> format) {
  check_request(size, type, layout);
  return fill_new(at::detail::empty_generic(size, allocator(), kKeys, type, format));
}

TensorBase make_strided(IntArrayRef size, IntArrayRef stride, ScalarType type, std::optional<Layout> layout) {
  check_request(size, type, layout);
  return fill_new(at::detail::empty_strided_generic(size, stride, allocator(), kKeys, type));
}

Tensor empty(IntArrayRef size, std::optional<ScalarType> type, std::optional<Layout> layout, std::optional<Device>,
    std::optional<bool>, std::optional<MemoryFormat> format) {
  return make_empty(size, dtype_or_default(type), layout, format);
}

Tensor empty_strided(IntArrayRef size, IntArrayRef stride, std::optional<ScalarType> type, std::optional<Layout> layout,
    std::optional<Device>, std::optional<bool>) {
  return make_strided(size, stride, dtype_or_default(type), layout);
}

const Tensor& resize(const Tensor& self, c10::SymIntArrayRef size, std::optional<MemoryFormat> format) {
  const auto wanted = C10_AS_INTARRAYREF_SLOW(size);
  const size_t bytes = at::detail::computeStorageNbytesContiguous(wanted, self.itemsize(), self.storage_offset());
  const size_t before = self.storage().nbytes();
  if (c10::multiply_integers(wanted) == 0 || bytes <= before) {
    return native::resize_(self, wanted, format);
  }
  resize_bytes(self.storage().unsafeGetStorageImpl(), bytes);
  native::resize_(self, wanted, format);
  return fills_new_memory() ? native::fill_resize_deterministic_(self, static_cast<int64_t>(before)) : self;
}

Tensor& set_storage_view(
    Tensor& self, Storage storage, c10::SymInt offset, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  TORCH_CHECK(storage.device_type() == kDevice.type(), "expected a storage on mps, not on ", storage.device());
  return native::set_storage_cpu_(
      self, std::move(storage), offset.expect_int(), C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}

Tensor& set_storage(Tensor& self, Storage storage) {
  const auto elements = static_cast<int64_t>(storage.nbytes() / self.dtype().itemsize());
  return set_storage_view(self, std::move(storage), 0, {c10::SymInt(elements)}, {});
}

Tensor& set_tensor(Tensor& self, const Tensor& source) {
  return set_storage_view(
      self, source.storage(), source.sym_storage_offset(), source.sym_sizes(), source.sym_strides());
}

Tensor& set_nothing(Tensor& self) {
  Storage nothing(Storage::use_byte_size_t(), 0, allocator()->allocate(0), allocator(), /*resizable=*/true);
  return set_storage_view(self, std::move(nothing), 0, {c10::SymInt(0)}, {});
}

Tensor as_strided(
    const Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<c10::SymInt> offset) {
  const auto start = offset ? std::make_optional(offset->expect_int()) : std::nullopt;
  return native::as_strided_tensorimpl(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), start);
}

Tensor view(const Tensor& self, c10::SymIntArrayRef size) {
  return native::view(self, C10_AS_INTARRAYREF_SLOW(size));
}

Tensor reshape_alias(const Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  return native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("resize_", TORCH_FN(resize));
  m.impl("set_", TORCH_FN(set_nothing));
  m.impl("set_.source_Tensor", TORCH_FN(set_tensor));
  m.impl("set_.source_Storage", TORCH_FN(set_storage));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage_view));
  m.impl("as_strided", TORCH_FN(as_strided));
  m.impl("view", TORCH_FN(view));
  m.impl("_reshape_alias", TORCH_FN(reshape_alias));
  m.impl("unfold", TORCH_FN(native::unfold));
  m.impl("view_as_real", TORCH_FN(native::view_as_real));
  m.impl("view_as_complex", TORCH_FN(native::view_as_complex));
}

}  // namespace
}  // namespace porter

// What generated registrations and a fork's host code call, and only Apple builds of libtorch define.
namespace at::detail {

TensorBase empty_mps(IntArrayRef size, std::optional<ScalarType> type, std::optional<Layout> layout,
    std::optional<Device>, std::optional<bool>, std::optional<MemoryFormat> format) {
  return porter::make_empty(size, dtype_or_default(type), layout, format);
}

TensorBase empty_mps(IntArrayRef size, const TensorOptions& options) {
  const auto type = typeMetaToScalarType(options.dtype());
  return porter::make_empty(size, type, options.layout_opt(), options.memory_format_opt());
}

TensorBase empty_strided_mps(IntArrayRef size, IntArrayRef stride, ScalarType type, std::optional<Device>) {
  return porter::make_strided(size, stride, type, std::nullopt);
}

TensorBase empty_strided_mps(IntArrayRef size, IntArrayRef stride, const TensorOptions& options) {
  return porter::make_strided(size, stride, typeMetaToScalarType(options.dtype()), options.layout_opt());
}

}  // namespace at::detail
