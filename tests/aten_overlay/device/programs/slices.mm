// Host code that binds buffers and offsets, as PyTorch's does: right, and with kernels that read past their tensor.
#include <ATen/core/Tensor.h>
#include <ATen/mps/MPSStream.h>
#include <torch/library.h>

#import <Metal/Metal.h>

namespace {

constexpr const char* kSource = R"(
#include <metal_stdlib>
using namespace metal;
kernel void copy(device float* out, constant float* in, constant uint& at, uint i [[thread_position_in_grid]]) {
  out[i] = in[at + i];
}
)";

id<MTLBuffer> buffer_of(const at::Tensor& tensor) {
  return __builtin_bit_cast(id<MTLBuffer>, tensor.storage().data());
}

NSUInteger offset_of(const at::Tensor& tensor) {
  return tensor.storage_offset() * tensor.element_size();
}

// `out[i] = in[at + i]`, where `in` begins `offset` bytes from the start of a buffer.
void run(const at::Tensor& out, id<MTLBuffer> in, NSUInteger offset, uint32_t at) {
  auto* stream = at::mps::getCurrentMPSStream();
  dispatch_sync(stream->queue(), ^{
    @autoreleasepool {
      id<MTLLibrary> library = [MTLCreateSystemDefaultDevice() newLibraryWithSource:@(kSource) options:nil error:nil];
      id<MTLFunction> function = [library newFunctionWithName:@"copy"];
      id<MTLComputePipelineState> state = [MTLCreateSystemDefaultDevice() newComputePipelineStateWithFunction:function
                                                                                                        error:nil];
      id<MTLComputeCommandEncoder> encoder = stream->commandEncoder();
      [encoder setComputePipelineState:state];
      [encoder setBuffer:buffer_of(out) offset:offset_of(out) atIndex:0];
      [encoder setBuffer:in offset:offset atIndex:1];
      [encoder setBytes:&at length:sizeof(at) atIndex:2];
      [encoder dispatchThreads:MTLSizeMake(out.numel(), 1, 1) threadsPerThreadgroup:MTLSizeMake(out.numel(), 1, 1)];
      stream->synchronize(at::mps::SyncType::COMMIT_AND_WAIT);
    }
  });
}

void copies(const at::Tensor& in, const at::Tensor& out) {
  run(out, buffer_of(in), offset_of(in), 0);
}

void reads_further(const at::Tensor& in, const at::Tensor& out) {
  run(out, buffer_of(in), offset_of(in), 1);
}

// The kernel adds the offset itself.
void passes_its_offset(const at::Tensor& in, const at::Tensor& out) {
  run(out, buffer_of(in), 0, in.storage_offset());
}

// Binds a tensor that it made, smaller than what it was given.
void reads_past_its_own(const at::Tensor& in, const at::Tensor& out) {
  const at::Tensor part = in.narrow(0, 1, in.numel() - 2);
  run(out, buffer_of(part), offset_of(part), 0);
}

// Takes the stream's encoder before it is on the stream's queue (pytorch#197805).
void takes_encoder_outside(const at::Tensor& x) {
  auto* stream = at::mps::getCurrentMPSStream();
  id<MTLComputeCommandEncoder> encoder = stream->commandEncoder();
  dispatch_sync(stream->queue(), ^{
    [encoder setBuffer:buffer_of(x) offset:offset_of(x) atIndex:0];
  });
}

// Makes an encoder of its own, whether or not the stream's is open (kernels-community#1155).
void makes_second_encoder(const at::Tensor& x, bool ends_first) {
  auto* stream = at::mps::getCurrentMPSStream();
  at::mps::dispatch_sync_with_rethrow(stream->queue(), ^{
    if (ends_first) {
      stream->endKernelCoalescing();
    }
    [[stream->commandBuffer() computeCommandEncoder] endEncoding];
  });
}

// Launches the copy in the stream's encoder, and may leave what it copies to whoever bound something there last
// (pytorch#186593).
void binds(const at::Tensor& in, const at::Tensor& out, bool all) {
  auto* stream = at::mps::getCurrentMPSStream();
  at::mps::dispatch_sync_with_rethrow(stream->queue(), ^{
    @autoreleasepool {
      id<MTLDevice> device = MTLCreateSystemDefaultDevice();
      static id<MTLLibrary> library = [device newLibraryWithSource:@(kSource) options:nil error:nil];
      id<MTLFunction> function = [library newFunctionWithName:@"copy"];
      const uint32_t at = 0;
      id<MTLComputeCommandEncoder> encoder = stream->commandEncoder();
      [encoder setComputePipelineState:[device newComputePipelineStateWithFunction:function error:nil]];
      [encoder setBuffer:buffer_of(out) offset:offset_of(out) atIndex:0];
      if (all) {
        [encoder setBuffer:buffer_of(in) offset:offset_of(in) atIndex:1];
      }
      [encoder setBytes:&at length:sizeof(at) atIndex:2];
      [encoder dispatchThreads:MTLSizeMake(out.numel(), 1, 1) threadsPerThreadgroup:MTLSizeMake(out.numel(), 1, 1)];
    }
  });
}

// Fills with a byte on a queue of its own, and may forget to wait.
void fills_on_its_own_queue(const at::Tensor& out, int64_t value, bool waits) {
  @autoreleasepool {
    static id<MTLCommandQueue> queue = [MTLCreateSystemDefaultDevice() newCommandQueue];
    id<MTLCommandBuffer> commands = [queue commandBuffer];
    id<MTLBlitCommandEncoder> encoder = [commands blitCommandEncoder];
    [encoder fillBuffer:buffer_of(out)
                  range:NSMakeRange(offset_of(out), out.nbytes())
                  value:static_cast<uint8_t>(value)];
    [encoder endEncoding];
    [commands commit];
    if (waits) {
      [commands waitUntilCompleted];
    }
  }
}

}  // namespace

// As a function that no operator runs around: the tensors by their addresses.
extern "C" __attribute__((visibility("default"))) const char* read_further_directly(c10::TensorImpl* in, c10::TensorImpl* out) {
  static std::string error;
  const auto tensor = [](c10::TensorImpl* impl) {
    return at::Tensor(c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(impl));
  };
  try {
    reads_further(tensor(in), tensor(out));
    error = "";
  } catch (const std::exception& raised) {
    error = raised.what();
  }
  return error.c_str();
}

TORCH_LIBRARY(slices_test, m) {
  m.def("copies(Tensor x, Tensor(a!) out) -> ()", &copies);
  m.def("reads_further(Tensor x, Tensor(a!) out) -> ()", &reads_further);
  m.def("binds(Tensor x, Tensor(a!) out, bool all) -> ()", &binds);
  m.def("passes_its_offset(Tensor x, Tensor(a!) out) -> ()", &passes_its_offset);
  m.def("takes_encoder_outside(Tensor x) -> ()", &takes_encoder_outside);
  m.def("makes_second_encoder(Tensor x, bool ends_first) -> ()", &makes_second_encoder);
  m.def("fills_on_its_own_queue(Tensor(a!) out, int value, bool waits) -> ()", &fills_on_its_own_queue);
  m.def("reads_past_its_own(Tensor x, Tensor(a!) out) -> ()", &reads_past_its_own);
}
