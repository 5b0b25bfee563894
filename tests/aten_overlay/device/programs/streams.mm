// Host code on several streams: what it encodes, what it reports and what it waits for, one operator for each.
#include <ATen/core/Tensor.h>
#include <ATen/mps/MPSAllocatorInterface.h>
#include <ATen/mps/MPSEvent.h>
#include <ATen/mps/MPSStream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#import <MetalPerformanceShaders/MetalPerformanceShaders.h>

namespace {

using at::Tensor;
using at::mps::getCurrentMPSStream;
using at::mps::SyncType;

id<MTLBuffer> buffer_of(const Tensor& tensor) {
  return __builtin_bit_cast(id<MTLBuffer>, tensor.storage().data());
}

void encode(void (^work)(at::mps::MPSStream* stream)) {
  auto* stream = getCurrentMPSStream();
  dispatch_sync(stream->queue(), ^{
    @autoreleasepool {
      work(stream);
    }
  });
}

void synchronize(SyncType type) {
  encode(^(at::mps::MPSStream* stream) {
    stream->synchronize(type);
  });
}

void fill(const Tensor& out, int64_t value) {
  encode(^(at::mps::MPSStream* stream) {
    stream->endKernelCoalescing();
    id<MTLBlitCommandEncoder> encoder = [stream->commandBuffer() blitCommandEncoder];
    [encoder fillBuffer:buffer_of(out) range:NSMakeRange(0, out.nbytes()) value:static_cast<uint8_t>(value)];
    [encoder endEncoding];
  });
}

void copy(const Tensor& in, const Tensor& out, int64_t bytes) {
  getCurrentMPSStream()->copy(buffer_of(in), buffer_of(out), static_cast<size_t>(bytes), 0, 0, 0);
}

// A copy by a kernel of Metal Performance Shaders.
void copy_by_kernel(const Tensor& in, const Tensor& out) {
  encode(^(at::mps::MPSStream* stream) {
    const auto wrap = [](const Tensor& tensor) {
      auto* descriptor = [MPSNDArrayDescriptor descriptorWithDataType:MPSDataTypeUInt8 shape:@[ @(tensor.numel()) ]];
      return [[[MPSNDArray alloc] initWithBuffer:buffer_of(tensor) offset:0 descriptor:descriptor] autorelease];
    };
    stream->endKernelCoalescing();
    auto* kernel = [[[MPSNDArrayIdentity alloc] initWithDevice:stream->device()] autorelease];
    [kernel encodeToCommandBuffer:stream->commandBuffer() sourceArray:wrap(in) destinationArray:wrap(out)];
  });
}

// Checks indices in a kernel `report` of this source: what is wrong is told at the next synchronization.
void check_index(const Tensor& index, int64_t size, const std::string& source) {
  encode(^(at::mps::MPSStream* stream) {
    id<MTLDevice> device = stream->device();
    NSError* error = nil;
    id<MTLLibrary> library = [device newLibraryWithSource:@(source.c_str()) options:nil error:&error];
    TORCH_CHECK(library, [[error localizedDescription] UTF8String]);
    id<MTLFunction> function = [library newFunctionWithName:@"report"];
    id<MTLComputeCommandEncoder> encoder = stream->commandEncoder();
    [encoder setComputePipelineState:[device newComputePipelineStateWithFunction:function error:nil]];
    [encoder setBuffer:buffer_of(index) offset:0 atIndex:0];
    [encoder setBytes:&size length:sizeof(size) atIndex:1];
    [encoder setBuffer:stream->getErrorBuffer() offset:0 atIndex:2];
    [encoder dispatchThreads:MTLSizeMake(index.numel(), 1, 1) threadsPerThreadgroup:MTLSizeMake(1, 1, 1)];
  });
}

id<MTLSharedEvent> shared_event() {
  static id<MTLSharedEvent> event = [getCurrentMPSStream()->device() newSharedEvent];
  return event;
}

void signal(int64_t value) {
  encode(^(at::mps::MPSStream* stream) {
    stream->endKernelCoalescing();
    [stream->commandBuffer() encodeSignalEvent:shared_event() value:static_cast<uint64_t>(value)];
  });
}

void wait_for(int64_t value) {
  encode(^(at::mps::MPSStream* stream) {
    stream->endKernelCoalescing();
    [stream->commandBuffer() encodeWaitForEvent:shared_event() value:static_cast<uint64_t>(value)];
  });
}

double time_events(bool timed, bool records) {
  auto pool = at::mps::getMPSEventPool();
  const id_t start = pool->acquireEvent(timed), end = pool->acquireEvent(timed);
  if (records) {
    pool->recordEvent(start, true);
    pool->recordEvent(end, true);
    pool->synchronizeEvent(end);
    TORCH_CHECK(pool->queryEvent(start) && pool->queryEvent(end));
  }
  const auto release = [&] {
    pool->releaseEvent(start);
    pool->releaseEvent(end);
  };
  try {
    const double milliseconds = pool->elapsedTime(start, end);
    release();
    return milliseconds;
  } catch (...) {
    release();
    throw;
  }
}

bool is_pinned(const Tensor& tensor) {
  return at::mps::isMPSPinnedPtr(tensor.storage().data());
}

// The number of the stream that the device guard names.
int64_t torch_stream() {
  return c10::impl::getDeviceGuardImpl(c10::kMPS)->getStream(c10::Device(c10::kMPS, 0)).id();
}

#ifdef POOL
// The pool in turns.
int64_t pool_turns() {
  auto* first = at::mps::getStreamFromPool();
  for (int turn = 1; turn < 32; ++turn) {
    TORCH_CHECK(at::mps::getStreamFromPool() != first);
  }
  TORCH_CHECK(at::mps::getStreamFromPool() == first && first != at::mps::getDefaultMPSStream());
  TORCH_CHECK(first->commandQueue() != at::mps::getDefaultMPSStream()->commandQueue());
  return first->unwrap().id();
}

// Makes the next stream of the pool the current one of this thread, and the default one again after that.
int64_t follow_pool() {
  auto* stream = at::mps::getStreamFromPool();
  at::mps::setCurrentMPSStream(stream);
  TORCH_CHECK(getCurrentMPSStream() == stream);
  const int64_t number = torch_stream();
  TORCH_CHECK(number == stream->unwrap().id());
  at::mps::setCurrentMPSStream(nullptr);
  TORCH_CHECK(getCurrentMPSStream() == at::mps::getDefaultMPSStream() && torch_stream() == 0);
  return number;
}

void copies_from_pinned(const Tensor& in, const Tensor& out) {
  auto* pinned = static_cast<id<MTLBuffer>>(at::mps::getMPSPinnedMTLBuffer(in.storage().data()));
  TORCH_CHECK(pinned && !at::mps::getMPSPinnedMTLBuffer(static_cast<char*>(in.storage().mutable_data()) + 4));
  getCurrentMPSStream()->copy(pinned, buffer_of(out), in.nbytes(), 0, 0, 0, SyncType::COMMIT_AND_WAIT);
}
#endif

#ifdef EVENT_STREAMS
void event_orders(const Tensor& in, const Tensor& out) {
  auto* writer = at::mps::getStreamFromPool();
  auto* reader = at::mps::getStreamFromPool();
  auto event = at::mps::getMPSEventPool()->acquireEvent(false, writer);
  at::mps::setCurrentMPSStream(writer);
  fill(in, 1);
  event->record(/*needsLock=*/true, /*syncEvent=*/false);
  at::mps::setCurrentMPSStream(reader);
  TORCH_CHECK(!event->get()->query() && event->get()->wait(true, false, reader));
  copy(in, out, static_cast<int64_t>(in.nbytes()));
  at::mps::setCurrentMPSStream(nullptr);
  at::mps::synchronizeAllMPSStreams(SyncType::COMMIT);
}
#endif

}  // namespace

TORCH_LIBRARY(streams_test, m) {
  m.def("current() -> int", [] { return getCurrentMPSStream()->unwrap().id(); });
  m.def("commit() -> ()", [] { synchronize(SyncType::COMMIT); });
  m.def("synchronize() -> ()", [] { synchronize(SyncType::COMMIT_AND_WAIT); });
  m.def("fill(Tensor(a!) out, int value) -> ()", &fill);
  m.def("copy(Tensor x, Tensor(a!) out, int bytes) -> ()", &copy);
  m.def("copy_by_kernel(Tensor x, Tensor(a!) out) -> ()", &copy_by_kernel);
  m.def("check_index(Tensor index, int size, str source) -> ()", &check_index);
  m.def("signal(int value) -> ()", &signal);
  m.def("wait_for(int value) -> ()", &wait_for);
  m.def("time_events(bool timed, bool records) -> float", &time_events);
  m.def("torch_stream() -> int", &torch_stream);
  m.def("is_pinned(Tensor x) -> bool", &is_pinned);
#ifdef POOL
  m.def("pool_turns() -> int", &pool_turns);
  m.def("follow_pool() -> int", &follow_pool);
  m.def("copies_from_pinned(Tensor x, Tensor(a!) out) -> ()", &copies_from_pinned);
#endif
#ifdef EVENT_STREAMS
  m.def("event_orders(Tensor(a!) x, Tensor(b!) out) -> ()", &event_orders);
#endif
}
