#include "device.h"
#include "memory/memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>

namespace porter {
namespace {

using c10::CachingDeviceAllocator::DeviceStats;

c10::CachingAllocator::Stat stat_of(const porter_memory_count& count) {
  c10::CachingAllocator::Stat stat;
  stat.current = static_cast<int64_t>(count.current);
  stat.peak = static_cast<int64_t>(count.peak);
  stat.allocated = static_cast<int64_t>(count.added);
  stat.freed = static_cast<int64_t>(count.removed);
  return stat;
}

struct DeviceAllocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t size) override {
    void* address = porter_device_alloc(size);
    if (address == nullptr && size != 0) {
      const auto use = porter_memory_use();
      TORCH_CHECK_WITH(OutOfMemoryError, false, "MPS backend out of memory (MPS allocated: ", use.allocated,
          " bytes, max allowed: ", use.limit, " bytes). Tried to allocate ", size, " bytes.");
    }
    return {address, address, &porter_device_free, kDevice};
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return &porter_device_free;
  }

  void copy_data(void* to, const void* from, size_t size) const override {
    std::memcpy(porter_host_address(to), porter_host_address(from), size);
  }

  bool initialized() override {
    return true;
  }
  void emptyCache(c10::MempoolId_t) override {
    porter_memory_trim();
  }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}  // there is one stream
  // What Apple's allocator counts: the bytes of all pools together, allocated and reserved.
  DeviceStats getDeviceStats(c10::DeviceIndex) override {
    constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const auto counts = porter_memory_counts();
    DeviceStats stats;
    stats.allocated_bytes[kAll] = stat_of(counts.allocated);
    stats.reserved_bytes[kAll] = stat_of(counts.reserved);
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {
    porter_memory_reset_totals();
  }
  void resetPeakStats(c10::DeviceIndex) override {
    porter_memory_reset_peaks();
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex) override {
    const auto use = porter_memory_use();
    return {use.capacity - use.reserved, use.capacity};
  }
};

const bool registered = (c10::SetAllocator(c10::DeviceType::MPS, allocator()), true);

}  // namespace

c10::Allocator* allocator() {
  static auto* instance = new DeviceAllocator();
  return instance;
}

void resize_bytes(c10::StorageImpl* storage, size_t size) {
  TORCH_CHECK(storage->resizable(), "Trying to resize storage that is not resizable");
  c10::DataPtr grown = allocator()->allocate(size);
  const size_t copied = std::min(size, storage->nbytes());
  if (copied != 0) {
    allocator()->copy_data(grown.get(), storage->data(), copied);
  }
  storage->set_data_ptr_noswap(std::move(grown));
  storage->set_nbytes(size);
}

}  // namespace porter
