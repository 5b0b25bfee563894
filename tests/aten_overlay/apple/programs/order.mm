// Launches that touch the same bytes: with nothing to order them, and with what does.
#include <Metal/Metal.h>

#include <stdexcept>
#include <string>

#include "metal_api/porter_metal.h"

static const char* kSource = R"(
#include <metal_stdlib>
using namespace metal;
kernel void raise(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] += 1; }
kernel void read_next(device float* out [[buffer(0)]], device const float* x [[buffer(1)]],
                      uint i [[thread_position_in_grid]]) {
  out[i] = x[i + 1];
}
)";

namespace {

struct Fixture {
  id<MTLDevice> device = MTLCreateSystemDefaultDevice();
  id<MTLCommandQueue> queue = [device newCommandQueue];
  id<MTLCommandQueue> other_queue = [device newCommandQueue];
  id<MTLCommandBuffer> commands = [queue commandBuffer];
  id<MTLLibrary> library = [device newLibraryWithSource:@(kSource) options:nil error:nil];
  id<MTLBuffer> x = [device newBufferWithLength:32 options:MTLResourceStorageModeShared];
  id<MTLBuffer> out = [device newBufferWithLength:32 options:MTLResourceStorageModeShared];

  Fixture() {
    porter_keep_errors((void*)other_queue);
  }
  id<MTLComputeCommandEncoder> encode(id<MTLCommandBuffer> to, MTLDispatchType type = MTLDispatchTypeSerial) {
    return [to computeCommandEncoderWithDispatchType:type];
  }
  void use(id<MTLComputeCommandEncoder> encoder, NSString* name) {
    id<MTLFunction> function = [library newFunctionWithName:name];
    [encoder setComputePipelineState:[device newComputePipelineStateWithFunction:function error:nil]];
  }
  void raise(id<MTLComputeCommandEncoder> encoder, id<MTLBuffer> buffer, NSUInteger first = 0, NSUInteger count = 4) {
    use(encoder, @"raise");
    [encoder setBuffer:buffer offset:first * 4 atIndex:0];
    [encoder dispatchThreads:MTLSizeMake(count, 1, 1) threadsPerThreadgroup:MTLSizeMake(count, 1, 1)];
  }
  void read(id<MTLComputeCommandEncoder> encoder, id<MTLBuffer> buffer) {
    use(encoder, @"read_next");
    [encoder setBuffer:out offset:0 atIndex:0];
    [encoder setBuffer:buffer offset:0 atIndex:1];
    [encoder dispatchThreads:MTLSizeMake(4, 1, 1) threadsPerThreadgroup:MTLSizeMake(4, 1, 1)];
  }
};

// Two launches of one concurrent encoder.
template <typename Between>
void concurrently(Fixture& f, bool reads_first, Between between) {
  id<MTLComputeCommandEncoder> encoder = f.encode(f.commands, MTLDispatchTypeConcurrent);
  reads_first ? f.read(encoder, f.x) : f.raise(encoder, f.x);
  between(encoder);
  reads_first ? f.raise(encoder, f.x) : f.read(encoder, f.x);
  [encoder endEncoding];
  [f.commands commit];
  [f.commands waitUntilCompleted];
}

// A write through one buffer and a read through another, each in an encoder of its own.
template <typename Between>
void through(Fixture& f, id<MTLBuffer> written, id<MTLBuffer> read, Between between) {
  id<MTLComputeCommandEncoder> encoder = f.encode(f.commands);
  f.raise(encoder, written);
  between(encoder, nil);
  [encoder endEncoding];
  encoder = f.encode(f.commands);
  between(nil, encoder);
  f.read(encoder, read);
  [encoder endEncoding];
  [f.commands commit];
  [f.commands waitUntilCompleted];
}

// A write of one queue and a read of another.
template <typename After, typename Before>
void on_two_queues(Fixture& f, After after, Before before) {
  id<MTLComputeCommandEncoder> encoder = f.encode(f.commands);
  f.raise(encoder, f.x);
  [encoder endEncoding];
  after(f.commands);
  [f.commands commit];
  id<MTLCommandBuffer> second = [f.other_queue commandBuffer];
  before(second);
  encoder = f.encode(second);
  f.read(encoder, f.x);
  [encoder endEncoding];
  [second commit];
  [second waitUntilCompleted];
  if (NSError* error = [second error]) {
    throw std::runtime_error([[error localizedDescription] UTF8String]);
  }
}

const auto nothing = [](auto...) {};

void run(Fixture& f, const std::string& name) {
  id<MTLBuffer> alias = [f.device newBufferWithBytesNoCopy:[f.x contents] length:32 options:0 deallocator:nil];
  id<MTLBuffer> untracked = [f.device newBufferWithLength:32 options:MTLResourceHazardTrackingModeUntracked];
  id<MTLFence> fence = [f.device newFence];
  id<MTLSharedEvent> event = [f.device newSharedEvent];
  const auto fenced = [=](id<MTLComputeCommandEncoder> ending, id<MTLComputeCommandEncoder> starting) {
    [ending updateFence:fence];
    [starting waitForFence:fence];
  };
  if (name == "write_then_read") {
    concurrently(f, false, nothing);
  } else if (name == "read_then_write") {
    concurrently(f, true, nothing);
  } else if (name == "barrier") {
    concurrently(f, true, [](id<MTLComputeCommandEncoder> e) { [e memoryBarrierWithScope:MTLBarrierScopeBuffers]; });
  } else if (name == "barrier_of_textures") {
    concurrently(f, true, [](id<MTLComputeCommandEncoder> e) { [e memoryBarrierWithScope:MTLBarrierScopeTextures]; });
  } else if (name == "barrier_of_the_buffer") {
    concurrently(f, true, [&](id<MTLComputeCommandEncoder> e) {
      const id<MTLResource> resources[] = {f.x};
      [e memoryBarrierWithResources:resources count:1];
    });
  } else if (name == "barrier_of_another_buffer") {
    concurrently(f, true, [&](id<MTLComputeCommandEncoder> e) {
      const id<MTLResource> resources[] = {f.out};
      [e memoryBarrierWithResources:resources count:1];
    });
  } else if (name == "other_bytes") {
    id<MTLComputeCommandEncoder> encoder = f.encode(f.commands, MTLDispatchTypeConcurrent);
    f.raise(encoder, f.x, 0, 4);
    f.raise(encoder, f.x, 4, 4);
    [encoder endEncoding];
    [f.commands commit];
    [f.commands waitUntilCompleted];
  } else if (name == "two_reads") {
    id<MTLComputeCommandEncoder> encoder = f.encode(f.commands, MTLDispatchTypeConcurrent);
    f.read(encoder, f.x);
    id<MTLBuffer> first = f.out;
    f.out = untracked;
    f.read(encoder, f.x);
    f.out = first;
    [encoder endEncoding];
    [f.commands commit];
    [f.commands waitUntilCompleted];
  } else if (name == "one_buffer") {
    through(f, f.x, f.x, nothing);
  } else if (name == "alias") {
    through(f, alias, f.x, nothing);
  } else if (name == "alias_fenced") {
    through(f, alias, f.x, fenced);
  } else if (name == "untracked") {
    through(f, untracked, untracked, nothing);
  } else if (name == "untracked_fenced") {
    through(f, untracked, untracked, fenced);
  } else if (name == "two_queues") {
    on_two_queues(f, nothing, nothing);
  } else if (name == "two_queues_event") {
    on_two_queues(f, [=](id<MTLCommandBuffer> b) { [b encodeSignalEvent:event value:1]; },
                  [=](id<MTLCommandBuffer> b) { [b encodeWaitForEvent:event value:1]; });
  } else if (name == "two_queues_waited") {
    on_two_queues(f, nothing, [&](id<MTLCommandBuffer>) { [f.commands waitUntilCompleted]; });
  } else if (name == "no_function") {
    f.use(f.encode(f.commands), @"raise_half");
  } else {
    throw std::runtime_error("no case of that name");
  }
}

}  // namespace

extern "C" const char* try_order(const char* name) {
  static std::string answer;
  answer = "nothing";
  @autoreleasepool {
    try {
      Fixture fixture;
      run(fixture, name);
    } catch (const std::exception& error) {
      answer = error.what();
    }
  }
  return answer.c_str();
}
