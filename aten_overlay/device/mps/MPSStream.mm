// at::mps::MPSStream over the stand-in's Metal queue: one stream, whose commands run when they are encoded.
#include <ATen/mps/MPSAllocatorInterface.h>
#include <ATen/mps/MPSStream.h>

#include <exception>

namespace at::mps {

MPSStream::MPSStream(Stream stream) : _stream(stream) {
  _commandQueue = [MPSDevice::getInstance()->device() newCommandQueue];
  _serialQueue = dispatch_queue_create("metal gpu stream", DISPATCH_QUEUE_SERIAL);
}

MPSStream::~MPSStream() {
  [_commandEncoder release];
  [_commandBuffer release];
  [_commandQueue release];
}

MTLDevice_t MPSStream::device() const {
  return [_commandQueue device];
}

MPSCommandBuffer_t MPSStream::commandBuffer() {
  if (!_commandBuffer) {
    _commandBuffer = [[MPSCommandBuffer commandBufferFromCommandQueue:_commandQueue] retain];
  }
  return _commandBuffer;
}

// Kernels in a row share an encoder, so what one binds is still bound for the next.
MTLComputeCommandEncoder_t MPSStream::commandEncoder() {
  if (!_commandEncoder) {
    _commandEncoder = [[commandBuffer() computeCommandEncoder] retain];
  }
  return _commandEncoder;
}

void MPSStream::endKernelCoalescing() {
  if (_commandEncoder) {
    [_commandEncoder endEncoding];
    [_commandEncoder release];
    _commandEncoder = nil;
  }
}

void MPSStream::synchronize(SyncType type) {
  endKernelCoalescing();
  if (type != SyncType::NONE) {
    commit();
  }
}

void MPSStream::commit() {
  [_commandBuffer commitAndContinue];  // whoever holds it may go on encoding
}

void MPSStream::addCompletedHandler(MTLCommandBufferHandler block) {
  dispatch_sync(_serialQueue, ^() {
    @autoreleasepool {
      [commandBuffer() addCompletedHandler:block];
    }
  });
}

#ifdef PORTER_STREAM_FILLS
void MPSStream::fill(MTLBuffer_t buffer, uint8_t value, size_t length, size_t offset, SyncType type) {
  if (length == 0) {
    return;  // an empty tensor has no buffer
  }
  dispatch_sync(_serialQueue, ^() {
    @autoreleasepool {
      endKernelCoalescing();
      id<MTLBlitCommandEncoder> encoder = [commandBuffer() blitCommandEncoder];
      [encoder fillBuffer:buffer range:NSMakeRange(offset, length) value:value];
      [encoder endEncoding];
      synchronize(type);
    }
  });
}
#endif

void MPSStream::copy(MTLBuffer_t from,
                     MTLBuffer_t to,
                     size_t length,
                     size_t from_offset,
                     size_t to_offset,
                     uint64_t,
                     SyncType type) {
  dispatch_sync(_serialQueue, ^() {
    @autoreleasepool {
      endKernelCoalescing();
      id<MTLBlitCommandEncoder> encoder = [commandBuffer() blitCommandEncoder];
      [encoder copyFromBuffer:from sourceOffset:from_offset toBuffer:to destinationOffset:to_offset size:length];
      [encoder endEncoding];
      synchronize(type);
    }
  });
}

void MPSStream::copy_and_sync(MTLBuffer_t from,
                              MTLBuffer_t to,
                              size_t length,
                              size_t from_offset,
                              size_t to_offset,
                              bool non_blocking,
                              uint64_t profile) {
  copy(from, to, length, from_offset, to_offset, profile,
       non_blocking ? SyncType::COMMIT : SyncType::COMMIT_AND_WAIT);
}

void MPSStream::executeMPSGraph(MPSGraph* graph, NSDictionary* feeds, NSDictionary* results, SyncType type) {
  dispatch_sync(_serialQueue, ^() {
    @autoreleasepool {
      endKernelCoalescing();
      [graph encodeToCommandBuffer:commandBuffer()
                             feeds:feeds
                  targetOperations:nil
                 resultsDictionary:results
               executionDescriptor:nil];
      synchronize(type);
    }
  });
}

MPSStream* getDefaultMPSStream() {
  static auto* stream = new MPSStream(Stream(Stream::UNSAFE, Device(DeviceType::MPS, 0), 0));
  return stream;
}

MPSStream* getCurrentMPSStream() {
  return getDefaultMPSStream();
}

// A block of the fork's may throw; nothing may unwind through dispatch, so the exception is carried around it.
void dispatch_sync_with_rethrow(dispatch_queue_t queue, void (^block)()) {
  __block std::exception_ptr thrown;
  dispatch_sync(queue, ^() {
    try {
      block();
    } catch (...) {
      thrown = std::current_exception();
    }
  });
  if (thrown) {
    std::rethrow_exception(thrown);
  }
}

}  // namespace at::mps
