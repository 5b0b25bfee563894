// What the parts of the stand-in device share: the allocator, and the host's view of a device tensor.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

namespace porter {

inline const c10::Device kDevice(c10::DeviceType::MPS, 0);

c10::Allocator* allocator();

// Host memory that the device counts as pinned: any other host memory, remembered by its address.
c10::Allocator* pinned_allocator();
bool is_pinned(const void* address);

// Raises TypeError for an element type that the device has not.
void check_type(c10::ScalarType type);

// Grows or shrinks a storage to `size` bytes, keeping what it held.
void resize_bytes(c10::StorageImpl* storage, size_t size);

// A CPU tensor over the same bytes: same sizes, strides, conjugate and negative bits. CPU tensors come back unchanged.
at::Tensor host_view(const at::Tensor& tensor);

// A CPU generator that continues the stream of a device generator, which moves on by one step.
at::Generator host_generator(const at::Generator& device_generator);

// Runs a convolution by the fork's own operators; false where the operator is none, or the fork's are not loaded.
bool run_own_convolution(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace porter
