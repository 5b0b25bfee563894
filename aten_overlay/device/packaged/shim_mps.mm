// What a package that AOTInductor compiled for mps calls of PyTorch's MPS build: its kernels, and memory for its constants.
// torch/csrc/inductor/aoti_torch/c/shim_mps.h declares them.

#include <ATen/core/Tensor.h>
#include <ATen/mps/MPSStream.h>
#include <ATen/native/mps/MetalShaderLibrary.h>
#include <c10/core/Allocator.h>
#include <torch/csrc/inductor/aoti_torch/c/shim_mps.h>
#include <torch/csrc/inductor/aoti_torch/utils.h>

#include <cstring>

extern "C" void* porter_host_address(void* address);

namespace {

using at::native::mps::DynamicMetalShaderLibrary;
using at::native::mps::MetalKernelFunction;

MetalKernelFunction& kernel_of(AOTIMetalKernelFunctionHandle handle) {
  return *reinterpret_cast<MetalKernelFunction*>(handle);
}

char* bytes_of(void* buffer) {
  return static_cast<char*>(porter_host_address(buffer));
}

// The host reads and writes what kernels have been encoded for.
void wait() {
  at::mps::getCurrentMPSStream()->synchronize(at::mps::SyncType::COMMIT_AND_WAIT);
}

} // namespace

// Each converts what it throws into a code and a message that the package raises.
#define PORTER_SHIM(...) AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE(__VA_ARGS__)

AOTITorchError aoti_torch_mps_create_shader_library(const char* source, AOTIMetalShaderLibraryHandle* library) {
  PORTER_SHIM({ *library = reinterpret_cast<AOTIMetalShaderLibraryHandle>(new DynamicMetalShaderLibrary(source)); });
}

AOTITorchError aoti_torch_mps_delete_shader_library(AOTIMetalShaderLibraryHandle library) {
  PORTER_SHIM({ delete reinterpret_cast<DynamicMetalShaderLibrary*>(library); });
}

AOTITorchError aoti_torch_mps_get_kernel_function(
    AOTIMetalShaderLibraryHandle library,
    const char* name,
    AOTIMetalKernelFunctionHandle* function) {
  PORTER_SHIM({
    auto* kernel = reinterpret_cast<DynamicMetalShaderLibrary*>(library)->getCachedKernelFunctionPtr(name);
    *function = reinterpret_cast<AOTIMetalKernelFunctionHandle>(kernel);
  });
}

AOTITorchError aoti_torch_mps_start_encoding(AOTIMetalKernelFunctionHandle function) {
  PORTER_SHIM({ kernel_of(function).startEncoding(); });
}

AOTITorchError aoti_torch_mps_set_arg_tensor(
    AOTIMetalKernelFunctionHandle function,
    unsigned index,
    AtenTensorHandle tensor) {
  PORTER_SHIM({
    kernel_of(function).setArg(index, *torch::aot_inductor::tensor_handle_to_tensor_pointer(tensor));
  });
}

AOTITorchError aoti_torch_mps_set_arg_int(AOTIMetalKernelFunctionHandle function, unsigned index, int64_t value) {
  PORTER_SHIM({ kernel_of(function).setArg(index, value); });
}

AOTITorchError aoti_torch_mps_dispatch_single(AOTIMetalKernelFunctionHandle function, uint64_t length) {
  PORTER_SHIM({ kernel_of(function).dispatch(length); });
}

AOTITorchError aoti_torch_mps_dispatch_single_with_group_size(
    AOTIMetalKernelFunctionHandle function,
    uint64_t length,
    uint64_t group_size) {
  PORTER_SHIM({ kernel_of(function).dispatch(length, group_size); });
}

AOTITorchError aoti_torch_mps_dispatch_array(
    AOTIMetalKernelFunctionHandle function,
    const uint64_t* length,
    size_t dimensions) {
  PORTER_SHIM({ kernel_of(function).dispatch(c10::ArrayRef<uint64_t>(length, dimensions)); });
}

AOTITorchError aoti_torch_mps_dispatch_array_with_group_size(
    AOTIMetalKernelFunctionHandle function,
    const uint64_t* length,
    size_t dimensions,
    const uint64_t* group_size,
    size_t group_dimensions) {
  PORTER_SHIM({
    kernel_of(function).dispatch(
        c10::ArrayRef<uint64_t>(length, dimensions), c10::ArrayRef<uint64_t>(group_size, group_dimensions));
  });
}

AOTITorchError aoti_torch_mps_malloc(void** buffer, size_t size) {
  PORTER_SHIM({ *buffer = size ? c10::GetAllocator(c10::kMPS)->raw_allocate(size) : nullptr; });
}

AOTITorchError aoti_torch_mps_free(void* buffer) {
  PORTER_SHIM({
    if (buffer != nullptr) {
      c10::GetAllocator(c10::kMPS)->raw_deallocate(buffer);
    }
  });
}

AOTITorchError aoti_torch_mps_memcpy(
    void* buffer,
    size_t offset,
    size_t read,
    size_t size,
    uint8_t* constants) {
  PORTER_SHIM({
    wait();
    std::memcpy(bytes_of(buffer) + offset, constants + read, size);
  });
}

AOTITorchError aoti_torch_mps_copy_buffer(
    void* source,
    void* target,
    size_t size,
    size_t source_offset,
    size_t target_offset) {
  PORTER_SHIM({
    wait();
    std::memcpy(bytes_of(target) + target_offset, bytes_of(source) + source_offset, size);
  });
}

void aoti_torch_mps_shared_callback(AOTIMetalKernelFunctionHandle function, void* user_data) {
  (*static_cast<std::function<void(AOTIMetalKernelFunctionHandle)>*>(user_data))(function);
}

AOTITorchError aoti_torch_mps_run_command_block(
    AOTIMetalKernelFunctionHandle function,
    aoti_torch_mps_command_block_callback_t callback,
    void* user_data) {
  PORTER_SHIM({ kernel_of(function).runCommandBlock([&] { callback(function, user_data); }); });
}
