// Runs Metal kernels on PyTorch's stream: on its command buffer, with its encoder, in its serial queue.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/mps/MPSStream.h>
#include <torch/mps.h>

#import <Foundation/Foundation.h>
#import <Metal/Metal.h>
#ifdef EMBEDDED_METALLIB
#include "metallib.h"  // the kernels, compiled by the setup.py of `porter extension new --metallib`
#endif

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace $name {

// The Metal buffer that a tensor lies in. The tensor starts somewhere in it: always bind it with offset_of.
inline id<MTLBuffer> buffer_of(const at::Tensor& tensor) {
  return __builtin_bit_cast(id<MTLBuffer>, tensor.storage().data());
}

// Where the tensor starts in its buffer: Metal counts bytes, PyTorch elements.
inline NSUInteger offset_of(const at::Tensor& tensor) {
  return tensor.storage_offset() * tensor.element_size();
}

// Kernels of one Metal source. Source and kernels are compiled once, when they are first used.
class Kernels {
 public:
  explicit Kernels(std::string source) : source_(std::move(source)) {}

  // The kernel of this name. Raises if the source does not compile or has no such kernel.
  id<MTLComputePipelineState> get(const std::string& name) {
    std::lock_guard<std::mutex> lock(mutex_);
    id<MTLComputePipelineState>& found = pipelines_[name];
    if (!found) {
      @autoreleasepool {
        found = compile(name);
      }
    }
    return found;
  }

 private:
  id<MTLComputePipelineState> compile(const std::string& name) {
    __block id<MTLDevice> device = nil;
    dispatch_sync(torch::mps::get_dispatch_queue(), ^{
      device = [torch::mps::get_command_buffer() device];  // PyTorch's: a Mac may have two
    });
    NSError* error = nil;
    if (!library_) {
#ifdef EMBEDDED_METALLIB
      dispatch_data_t data =
          dispatch_data_create(kMetallib, sizeof(kMetallib), nil, DISPATCH_DATA_DESTRUCTOR_DEFAULT);
      library_ = [device newLibraryWithData:data error:&error];
#else
      MTLCompileOptions* options = [[MTLCompileOptions new] autorelease];
      if (@available(macOS 15, *)) {
        options.mathMode = MTLMathModeSafe;  // Metal's default is fast math, and compile_shader's is not
      } else {
        options.fastMathEnabled = NO;
      }
      library_ = [device newLibraryWithSource:[NSString stringWithUTF8String:source_.c_str()]
                                      options:options
                                        error:&error];
#endif
      TORCH_CHECK(library_, "$name: the kernels do not compile: ", [[error localizedDescription] UTF8String]);
    }
    id<MTLFunction> function = [library_ newFunctionWithName:[NSString stringWithUTF8String:name.c_str()]];
    TORCH_CHECK(function, "$name: there is no kernel ", name);
    id<MTLComputePipelineState> made = [device newComputePipelineStateWithFunction:function error:&error];
    TORCH_CHECK(made, "$name: kernel ", name, " has no pipeline: ", [[error localizedDescription] UTF8String]);
    return made;
  }

  std::string source_;
  std::mutex mutex_;
  id<MTLLibrary> library_ = nil;
  std::map<std::string, id<MTLComputePipelineState>> pipelines_;
};

// Encodes a kernel over `threads` threads in groups of `group`; `bind` binds its arguments.
//
// The encoder is PyTorch's own: a command buffer takes one at a time, and PyTorch's may be open. Only PyTorch's serial
// queue may use it, and no exception may leave the block, because none crosses dispatch_sync on macOS.
inline void launch(id<MTLComputePipelineState> pipeline, MTLSize threads, MTLSize group,
                   const std::function<void(id<MTLComputeCommandEncoder>)>& bind) {
  const NSUInteger most = [pipeline maxTotalThreadsPerThreadgroup];
  TORCH_CHECK_VALUE(group.width * group.height * group.depth <= most, "$name: a threadgroup has at most ", most,
                    " threads");
  for (const NSUInteger length : {threads.width, threads.height, threads.depth}) {
    TORCH_CHECK_VALUE(length <= std::numeric_limits<uint32_t>::max(), "$name: ", length, " threads are too many");
  }
  if (threads.width * threads.height * threads.depth == 0) {
    return;  // Metal refuses an empty grid, and an empty tensor has no buffer
  }
  dispatch_sync(torch::mps::get_dispatch_queue(), ^{
    @autoreleasepool {
      id<MTLComputeCommandEncoder> encoder = at::mps::getCurrentMPSStream()->commandEncoder();
      [encoder setComputePipelineState:pipeline];
      bind(encoder);
      [encoder dispatchThreads:threads threadsPerThreadgroup:group];
      torch::mps::commit();  // ends the encoder, and starts the work while Python goes on
    }
  });
}

// Encodes a kernel over as many threads, with the tensors bound at 0, 1, 2 and so on.
inline void launch(id<MTLComputePipelineState> pipeline, const std::vector<at::Tensor>& tensors, int64_t threads) {
  const auto group = std::clamp<NSUInteger>(threads, 1, [pipeline maxTotalThreadsPerThreadgroup]);
  launch(pipeline, MTLSizeMake(threads, 1, 1), MTLSizeMake(group, 1, 1), [&](id<MTLComputeCommandEncoder> encoder) {
    NSUInteger index = 0;
    for (const at::Tensor& tensor : tensors) {
      [encoder setBuffer:buffer_of(tensor) offset:offset_of(tensor) atIndex:index++];
    }
  });
}

}  // namespace $name
