// at::mps::IMPSAllocator over the device's allocator. The interface differs by version: each method that some version
// declares is here, and overrides what this one declares.
#include <ATen/mps/MPSAllocatorInterface.h>
#include <c10/util/ArrayRef.h>

#include <cstring>
#include <deque>
#include <mutex>

#include "memory/memory.h"

namespace at::mps {

C10_DEFINE_REGISTRY(MPSAllocatorCallbacksRegistry, IMpsAllocatorCallback)

namespace {

// Host code may bind a buffer whose DataPtr it has dropped: PyTorch's allocator recycles it only behind the commands that
// use it. Here the last few dropped ones stay.
void free_later(void* address) {
  static std::mutex mutex;
  static auto& waiting = *new std::deque<void*>;
  std::lock_guard lock(mutex);
  waiting.push_back(address);
  while (waiting.size() > 16) {
    porter_device_free(waiting.front());
    waiting.pop_front();
  }
}

struct Allocator final : IMPSAllocator {
  static c10::Allocator& device() {
    return *c10::GetAllocator(c10::DeviceType::MPS);
  }

  DataPtr allocate(size_t size) {
    DataPtr made = device().allocate(size);
    void* address = made.release_context();
    return {address, address, &free_later, made.device()};
  }
  DeleterFnPtr raw_deleter() const {
    return device().raw_deleter();
  }
  void copy_data(void* to, const void* from, size_t size) const {
    device().copy_data(to, from, size);
  }
  DataPtr allocScalarBufferWithValue(void* value, size_t size) const {
    DataPtr made = device().allocate(size);
    std::memcpy(porter_host_address(made.get()), value, size);
    return made;
  }

  void emptyCache() const {}
  void freeInactiveBuffers() const {}
  ssize_t getUnalignedBufferSize(const void* address) const {
    size_t size = 0;
    return porter_allocation(address, &size) ? static_cast<ssize_t>(size) : -1;
  }
  IntArrayRef getBufferShape(const void*) const {
    return {};
  }
  void setBufferShape(const void*, const IntArrayRef&) const {}
  id_t getBufferId(const void*) const {
    return 0;
  }
  bool isSharedBuffer(const void* address) const {
    return porter_is_device(address);
  }
  bool isSharedStorageSupported() const {
    return true;
  }
  std::pair<const void*, uint32_t> getSharedBufferPtr(const void* address) const {
    return {porter_host_address(address), 1};
  }
  std::string formatSize(size_t size) const {
    return std::to_string(size) + " bytes";
  }
  void setLowWatermarkRatio(double) const {}
  void setHighWatermarkRatio(double) const {}
  ssize_t getLowWatermarkValue() const {
    return 0;
  }
  size_t getLowWatermarkLimit() const {
    return porter_memory_use().limit;
  }
  size_t getHighWatermarkLimit() const {
    return porter_memory_use().limit;
  }
  size_t getTotalAllocatedMemory() const {
    return porter_memory_use().reserved;
  }
  size_t getCurrentAllocatedMemory() const {
    return porter_memory_use().allocated;
  }
  size_t getDriverAllocatedMemory() const {
    return porter_memory_use().reserved;
  }
  size_t getRecommendedMaxMemory() const {
    return porter_memory_use().limit;
  }
  bool recordEvents(c10::ArrayRef<const void*>) const {
    return true;
  }
  bool waitForEvents(c10::ArrayRef<const void*>) const {
    return true;
  }
#ifdef PORTER_DEVICE_ALLOCATOR
  c10::Storage getHostAliasStorage(const c10::Storage&) const {
    TORCH_CHECK(false, "the stand-in gives host aliases through torch.mps only");
  }
  static c10::DeviceAllocator& counted() {
    return *c10::getDeviceAllocator(c10::DeviceType::MPS);
  }
  void emptyCache(c10::MempoolId_t pool) {
    counted().emptyCache(pool);
  }
  bool initialized() {
    return true;
  }
  void recordStream(const DataPtr&, c10::Stream) {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) {
    return counted().getDeviceStats(index);
  }
  void resetAccumulatedStats(c10::DeviceIndex index) {
    counted().resetAccumulatedStats(index);
  }
  void resetPeakStats(c10::DeviceIndex index) {
    counted().resetPeakStats(index);
  }
#endif
};

Allocator& instance() {
  static auto& value = *new Allocator;
  return value;
}

}  // namespace

IMPSAllocator* getIMPSAllocator(bool) {
  return &instance();
}

IMPSAllocator* getIMPSAllocator() {
  return &instance();
}

bool isMPSPinnedPtr(const void* address) {
  return false;
}

}  // namespace at::mps
