// What PyTorch's MPSHooks.mm does for torch::mps: here it tells the device, which has the hooks, once it is loaded.
// at::mps::MPSHooks asks them.
#include <ATen/mps/MPSStream.h>

#include "apple/metal_api/porter_metal.h"
#include "device/stream.h"
#include "streams.h"

namespace at::mps {

void dispatch_sync_with_rethrow(dispatch_queue_t queue, void (^block)());  // which 2.7's headers of at::mps do not declare

}  // namespace at::mps

namespace {

using at::mps::SyncType;

void* command_buffer(int64_t number) {
  auto* stream = porter::stream_of(number);
  stream->endKernelCoalescing();  // the caller makes an encoder of its own, and there is only ever one
  return (void*)stream->commandBuffer();
}

void* dispatch_queue(int64_t number) {
  return (void*)porter::stream_of(number)->queue();
}

void commit(int64_t number) {
  porter::stream_of(number)->synchronize(SyncType::COMMIT);
}

void synchronize(int64_t number) {
  porter::stream_of(number)->synchronize(SyncType::COMMIT_AND_WAIT);
}

void synchronize_all() {
  porter::synchronize_streams(SyncType::COMMIT_AND_WAIT);
}

// Runs where the stream's queue would, or in the block that runs there already.
template <class Work>
void run_on_queue(at::mps::MPSStream* stream, Work work) {
  if (porter_runs_on(stream->queue())) {
    work();
  } else {
    at::mps::dispatch_sync_with_rethrow(stream->queue(), ^() { work(); });
  }
}

void open_encoder(int64_t number) {
  auto* stream = porter::stream_of(number);
  run_on_queue(stream, [stream] { stream->commandEncoder(); });
}

void end_encoder(int64_t number) {
  auto* stream = porter::stream_of(number);
  run_on_queue(stream, [stream] { stream->endKernelCoalescing(); });
}

void host_reads(int64_t number) {
  auto* stream = porter::stream_of(number);
  const auto type = porter_order_is_watched() ? SyncType::COMMIT_AND_WAIT : SyncType::NONE;
  run_on_queue(stream, [stream, type] { stream->synchronize(type); });
}

void check_read(int64_t number, const void* address, size_t size) {
  if (porter_order_is_watched()) {
    porter_check_read((void*)porter::stream_of(number)->commandBuffer(), address, size);
  }
}

const porter_streams functions{&command_buffer, &dispatch_queue, &commit,     &synchronize, &synchronize_all,
                               &open_encoder,   &end_encoder,    &host_reads, &check_read};
const bool registered = (porter_set_streams(&functions), true);

}  // namespace

#ifdef PORTER_HOOKS
#include <ATen/mps/MPSHooks.h>

namespace at::mps {

static const MPSHooksInterface& hooks() {
  return at::detail::getMPSHooks();
}

void MPSHooks::init() const {
  hooks().init();
}
bool MPSHooks::hasMPS() const {
  return hooks().hasMPS();
}
bool MPSHooks::isOnMacOSorNewer(unsigned major, unsigned minor) const {
  return hooks().isOnMacOSorNewer(major, minor);
}
Device MPSHooks::getDeviceFromPtr(void* address) const {
  return hooks().getDeviceFromPtr(address);
}
const Generator& MPSHooks::getDefaultGenerator(DeviceIndex index) const {
  return hooks().getDefaultGenerator(index);
}
Generator MPSHooks::getNewGenerator(DeviceIndex index) const {
  return hooks().getNewGenerator(index);
}
void MPSHooks::deviceSynchronize() const {
  hooks().deviceSynchronize();
}
void MPSHooks::commitStream() const {
  hooks().commitStream();
}
void* MPSHooks::getCommandBuffer() const {
  return hooks().getCommandBuffer();
}
void* MPSHooks::getDispatchQueue() const {
  return hooks().getDispatchQueue();
}
Allocator* MPSHooks::getMPSDeviceAllocator() const {
  return hooks().getMPSDeviceAllocator();
}
void MPSHooks::emptyCache() const {
  hooks().emptyCache();
}
size_t MPSHooks::getCurrentAllocatedMemory() const {
  return hooks().getCurrentAllocatedMemory();
}
size_t MPSHooks::getDriverAllocatedMemory() const {
  return hooks().getDriverAllocatedMemory();
}
size_t MPSHooks::getRecommendedMaxMemory() const {
  return hooks().getRecommendedMaxMemory();
}
void MPSHooks::setMemoryFraction(double ratio) const {
  hooks().setMemoryFraction(ratio);
}
size_t MPSHooks::getMaxBufferLength() const {
  return hooks().getMaxBufferLength();
}
bool MPSHooks::isPinnedPtr(const void* address) const {
  return hooks().isPinnedPtr(address);
}
Allocator* MPSHooks::getPinnedMemoryAllocator() const {
  return hooks().getPinnedMemoryAllocator();
}
void MPSHooks::profilerStartTrace(const std::string& modes, bool wait) const {
  hooks().profilerStartTrace(modes, wait);
}
void MPSHooks::profilerStopTrace() const {
  hooks().profilerStopTrace();
}
uint32_t MPSHooks::acquireEvent(bool timed) const {
  return hooks().acquireEvent(timed);
}
void MPSHooks::releaseEvent(uint32_t id) const {
  hooks().releaseEvent(id);
}
void MPSHooks::recordEvent(uint32_t id) const {
  hooks().recordEvent(id);
}
void MPSHooks::waitForEvent(uint32_t id) const {
  hooks().waitForEvent(id);
}
void MPSHooks::synchronizeEvent(uint32_t id) const {
  hooks().synchronizeEvent(id);
}
bool MPSHooks::queryEvent(uint32_t id) const {
  return hooks().queryEvent(id);
}
double MPSHooks::elapsedTimeOfEvents(uint32_t start, uint32_t end) const {
  return hooks().elapsedTimeOfEvents(start, end);
}

}  // namespace at::mps
#endif
