// at::mps::IMPSAllocator over the device's allocator. The interface differs by version: each method that some version
// declares is here, and overrides what this one declares.
#include <ATen/mps/MPSAllocatorInterface.h>
#include <c10/util/ArrayRef.h>

#include <cstring>
#include <deque>
#include <mutex>

#include "device/device.h"
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
  // Shares the bytes, and keeps the storage that has them.
  c10::Storage getHostAliasStorage(const c10::Storage& storage) const {
    TORCH_CHECK(isSharedBuffer(storage.data()), "the storage was not allocated by the MPS allocator");
    void* address = porter_host_address(storage.data());
    auto* kept = new c10::Storage(storage);
    c10::DataPtr bytes(address, kept, [](void* context) { delete static_cast<c10::Storage*>(context); }, c10::kCPU);
    return {c10::Storage::use_byte_size_t(), storage.nbytes(), std::move(bytes), nullptr, /*resizable=*/false};
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

#ifdef PORTER_PINNED_ALLOCATOR
c10::Allocator* getMPSPinnedAllocator() {
  return porter::pinned_allocator();
}

void* getMPSPinnedMTLBuffer(const void* address) {
  return porter::find_pinned(address);
}
#endif

bool isMPSPinnedPtr(const void* address) {
  return porter::find_pinned(address) != nullptr || porter_is_device(address);
}

}  // namespace at::mps
