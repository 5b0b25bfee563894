// at::mps::MPSStream over the stand-in's Metal queues. The commands of the default stream run when they are encoded, those of
// the pool's streams when they are committed: work on two streams is ordered by events alone.
#include <ATen/mps/MPSAllocatorInterface.h>
#include <ATen/mps/MPSStream.h>
#ifdef PORTER_STREAM_ERRORS
#include <c10/metal/error.h>
#endif

#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>

#include "apple/metal_api/porter_metal.h"
#include "device/stream.h"
#include "streams.h"

namespace at::mps {

MPSStream::MPSStream(Stream stream) : _stream(stream) {
  TORCH_CHECK(stream.device_type() == DeviceType::MPS, "an MPS stream was expected, not ", stream);
  _commandQueue = [MPSDevice::getInstance()->device() newCommandQueue];
  stream.id() == 0 ? porter_run_at_once((void*)_commandQueue) : porter_keep_errors((void*)_commandQueue);
  _serialQueue = dispatch_queue_create("metal gpu stream", DISPATCH_QUEUE_SERIAL);
}

MPSStream::~MPSStream() {
  [_commandEncoder release];
  [_commandBuffer release];
  [_commandQueue release];
#ifdef PORTER_STREAM_ERRORS
  [_errorBuffer release];
#endif
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

// Kernels in a row share an encoder, so what one binds is still bound for the next. Upstream asserts the queue since 2.15:
// another thread may end the encoder meanwhile (pytorch#197805).
MTLComputeCommandEncoder_t MPSStream::commandEncoder() {
  TORCH_CHECK(!porter_order_is_watched() || porter_runs_on(_serialQueue),
              "PTR278: a stream's command encoder was taken outside of the stream's queue: another thread may end it; "
              "take it within dispatch_sync(stream->queue(), ...)");
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
  switch (type) {
    case SyncType::NONE:
      return;
    case SyncType::COMMIT_AND_WAIT: {
      id<MTLCommandBuffer> last = [[_commandBuffer rootCommandBuffer] retain];
      commit();
      [last waitUntilCompleted];
      [last release];
#ifdef PORTER_STREAM_ERRORS
      checkLastError();
#endif
      return;
    }
    default:
      commit();
  }
}

void MPSStream::commit() {
  if (_stream.id() == 0) {  // what fails on the default stream has been thrown where it was encoded
    [_commandBuffer commitAndContinue];  // whoever holds it may go on encoding
    return;
  }
#ifdef PORTER_COMMAND_BUFFER_ERRORS
  if (_commandBuffer) {
    addErrorHandler();
  }
  [_commandBuffer commitAndContinue];
#else
  id<MTLCommandBuffer> committed = [[[_commandBuffer rootCommandBuffer] retain] autorelease];
  [_commandBuffer commitAndContinue];
  NSError* error = [committed error];
  TORCH_CHECK(!error, [[error localizedDescription] UTF8String]);
#endif
}

#ifdef PORTER_COMMAND_BUFFER_ERRORS
void MPSStream::addErrorHandler() {
  [_commandBuffer addCompletedHandler:^(id<MTLCommandBuffer> buffer) {
    if (NSError* error = [buffer error]) {
      recordCommandBufferError({error.code == MTLCommandBufferErrorOutOfMemory, static_cast<int32_t>(error.code),
                                [error.localizedDescription UTF8String]});
    }
  }];
}

void MPSStream::recordCommandBufferError(CommandBufferError error) {
  std::lock_guard lock(_commandBufferErrorMutex);
  if (!_commandBufferError) {
    _commandBufferError = std::move(error);
  }
}
#endif

#ifdef PORTER_STREAM_ERRORS
// Made when host code first binds it: what no kernel reports to takes no memory.
MTLBuffer_t MPSStream::getErrorBuffer() {
  if (!_errorBuffer) {
    _errorBuffer = [device() newBufferWithLength:sizeof(c10::metal::ErrorMessages)
                                         options:MTLResourceStorageModeShared];
    std::memset([_errorBuffer contents], 0, sizeof(c10::metal::ErrorMessages));
  }
  return _errorBuffer;
}

// The first message of those that kernels have left since the last time.
void MPSStream::checkLastError() {
#ifdef PORTER_COMMAND_BUFFER_ERRORS
  std::optional<CommandBufferError> failed;
  {
    std::lock_guard lock(_commandBufferErrorMutex);
    failed.swap(_commandBufferError);
  }
  if (failed) {
    TORCH_CHECK_WITH(OutOfMemoryError, !failed->is_oom, failed->message);
    throw c10::AcceleratorError({__func__, __FILE__, __LINE__}, failed->code, failed->message);
  }
#endif
  auto* reported = _errorBuffer ? static_cast<c10::metal::ErrorMessages*>([_errorBuffer contents]) : nullptr;
  if (reported && reported->count != 0) {
    reported->count = 0;
    const auto& first = reported->msg[0];
    throw c10::AcceleratorError({first.func, first.file, first.line}, 1, first.message);
  }
}
#endif

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
  return porter::stream_of(0);
}

MPSStream* getCurrentMPSStream() {
  return porter::stream_of(porter_current_stream());
}

MPSStream* MPSStreamImpl::getInstance() {
  return getDefaultMPSStream();
}

#ifdef PORTER_STREAM_POOL
void setCurrentMPSStream(MPSStream* stream) {
  porter_set_current_stream(stream ? stream->unwrap().id() : 0);
}

MPSStream* getStreamFromPool() {
  return porter::stream_of(porter_next_stream());
}

MPSStream* getStreamByID(int64_t number) {
  return porter::stream_of(number);
}

void synchronizeAllMPSStreams(SyncType type) {
  porter::synchronize_streams(type);
}
#endif

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

namespace porter {
namespace {

using at::mps::MPSStream;

std::array<std::atomic<MPSStream*>, PORTER_POOL_STREAMS + 1> streams;

}  // namespace

MPSStream* stream_of(int64_t number) {
  TORCH_CHECK(number >= 0 && number <= PORTER_POOL_STREAMS, "MPS has streams 0 to ", PORTER_POOL_STREAMS, ", not ", number);
  static auto& mutex = *new std::mutex;
  if (MPSStream* stream = streams[number]) {
    return stream;
  }
  std::lock_guard lock(mutex);
  if (!streams[number]) {
    streams[number] = new MPSStream(c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::DeviceType::MPS, 0), number));
  }
  return streams[number];
}

void synchronize_streams(at::mps::SyncType type) {
  for (MPSStream* stream : streams) {
    if (!stream) {
      continue;
    }
#ifdef PORTER_STREAM_POOL
    at::mps::dispatch_sync_with_rethrow(stream->queue(), ^() {
      stream->synchronize(type);
    });
#else
    stream->synchronize(type);  // as upstream's: host code may be on the queue when it calls torch::mps::synchronize
#endif
  }
}

}  // namespace porter
