// What the parts of the stand-in device share: the allocator, and the host's view of a device tensor.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

struct porter_streams;

namespace porter {

inline const c10::Device kDevice(c10::DeviceType::MPS, 0);

c10::Allocator* allocator();

// Memory of the device at the addresses by which the host finds it, for `pin_memory()`.
c10::Allocator* pinned_allocator();

// The device address behind one that `pinned_allocator` gave; null for any other.
void* find_pinned(const void* address);

// The guard that the device registers: host code may register at::mps::MPSGuardImpl in its place, which asks this one.
const c10::impl::DeviceGuardImplInterface& device_guard();

// What at::mps does for streams; null until it is loaded.
const porter_streams* loaded_streams();

// Runs what has been encoded on a stream.
void commit_stream(int64_t stream);

// Runs what has been encoded on this thread's stream, so that the host may go on in its place.
void finish_current_stream();

// The same, for what the host then reads: on a Mac it waits, and the stream's encoder has ended.
void wait_for_current_stream();

// Raises where a kernel on another queue writes a tensor of the device that this thread's stream reads now, and nothing waits
// for it: PTR269, where order is watched. Tensors of other devices pass.
void check_read(const at::Tensor& tensor);

// Raises where the host reads elements of a tensor of the device that nothing wrote since it was allocated, in memory that a
// kernel had to write to: PTR262, where launches are watched for it (porter_memory_note_writer).
void check_written(const at::Tensor& tensor);

// Raises TypeError for an element type that the device has not.
void check_type(c10::ScalarType type);

// Grows or shrinks a storage to `size` bytes, keeping what it held.
void resize_bytes(c10::StorageImpl* storage, size_t size);

// A CPU tensor over the same bytes: same sizes, strides, conjugate and negative bits. CPU tensors come back unchanged.
at::Tensor host_view(const at::Tensor& tensor);

// A CPU generator that continues the stream of a device generator, which moves on by one step.
at::Generator host_generator(const at::Generator& device_generator);

// The fork's operator that serves a convolution with these arguments; nothing where the operator is none.
const char* own_convolution(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// Runs a convolution by the fork's own operators; false where the operator is none, or the fork's are not loaded.
bool run_own_convolution(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace porter
