#include <torch/torch.h>
#include <torch/mps.h>

#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include <algorithm>

#include "../torch-ext/torch_binding.h"

#ifdef EMBEDDED_METALLIB_HEADER
#include EMBEDDED_METALLIB_HEADER
#else
#error "kernel-builder defines EMBEDDED_METALLIB_HEADER"
#endif

namespace {

id<MTLComputePipelineState> pipeline() {
  static id<MTLComputePipelineState> state = [] {
    id<MTLDevice> device = MTLCreateSystemDefaultDevice();
    NSError* error = nil;
    id<MTLLibrary> library = EMBEDDED_METALLIB_NAMESPACE::createLibrary(device, &error);
    TORCH_CHECK(library, "$name: the Metal library cannot be loaded: ", error.localizedDescription.UTF8String);
    id<MTLFunction> function = [library newFunctionWithName:@"$function"];
    TORCH_CHECK(function, "$name: the Metal library lacks $function");
    id<MTLComputePipelineState> made = [device newComputePipelineStateWithFunction:function error:&error];
    TORCH_CHECK(made, "$name: no pipeline: ", error.localizedDescription.UTF8String);
    return made;
  }();
  return state;
}

void bind(id<MTLComputeCommandEncoder> encoder, const at::Tensor& tensor, NSUInteger index) {
  id<MTLBuffer> buffer = __builtin_bit_cast(id<MTLBuffer>, tensor.storage().data());
  [encoder setBuffer:buffer offset:tensor.storage_offset() * tensor.element_size() atIndex:index];
}

template <typename T>
[[maybe_unused]] void bind(id<MTLComputeCommandEncoder> encoder, at::IntArrayRef sizes, NSUInteger index) {
  std::vector<T> values(sizes.begin(), sizes.end());
  values.resize(std::max<size_t>(values.size(), 1), T(1));
  [encoder setBytes:values.data() length:values.size() * sizeof(T) atIndex:index];
}

template <typename T>
[[maybe_unused]] void bind(id<MTLComputeCommandEncoder> encoder, T value, NSUInteger index) {
  [encoder setBytes:&value length:sizeof(T) atIndex:index];
}

} // namespace

$signature {
$checks  TORCH_CHECK(threads.size() == 3 && group_size.size() == 3, "$name: threads and group_size are three sizes");
  if (threads[0] == 0 || threads[1] == 0 || threads[2] == 0) return;
  id<MTLComputePipelineState> state = pipeline();
  @autoreleasepool {
    dispatch_sync(torch::mps::get_dispatch_queue(), ^() {
      id<MTLCommandBuffer> commands = torch::mps::get_command_buffer();
      id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
      [encoder setComputePipelineState:state];
$bindings      const MTLSize size = MTLSizeMake(threads[0], threads[1], threads[2]);
      const MTLSize group = MTLSizeMake(
          std::min(group_size[0], threads[0]),
          std::min(group_size[1], threads[1]),
          std::min(group_size[2], threads[2]));
      [encoder dispatchThreads:size threadsPerThreadgroup:group];
      [encoder endEncoding];
      torch::mps::commit();
    });
  }
}
