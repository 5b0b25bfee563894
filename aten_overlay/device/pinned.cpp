// Pinned host memory: `pin_memory()` and torch.accelerator.empty_host_cache().
#include "device.h"

#include <ATen/core/CachingHostAllocator.h>

#include <mutex>
#include <set>

namespace porter {
namespace {

struct Known {
  std::mutex mutex;
  std::set<const void*> addresses;
};

Known& known() {
  static auto* instance = new Known();
  return *instance;
}

void unpin(void* address) {
  {
    std::lock_guard<std::mutex> lock(known().mutex);
    known().addresses.erase(address);
  }
  c10::GetAllocator(c10::kCPU)->raw_deallocate(address);
}

struct PinnedAllocator final : at::HostAllocator {
  c10::DataPtr allocate(size_t size) override {
    if (size == 0) {
      return {nullptr, c10::kCPU};
    }
    void* address = c10::GetAllocator(c10::kCPU)->raw_allocate(size);
    std::lock_guard<std::mutex> lock(known().mutex);
    known().addresses.insert(address);
    return {address, address, &unpin, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &unpin;
  }
  void copy_data(void* to, const void* from, size_t size) const override {
    default_copy_data(to, from, size);
  }

  // Nothing is cached, and work is done when the call returns.
  bool record_event(void*, void*, c10::Stream) override {
    return true;
  }
  void empty_cache() override {}
  at::HostStats get_stats() override {
    return {};
  }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
};

PinnedAllocator& instance() {
  static auto* allocator = new PinnedAllocator();
  return *allocator;
}

const bool registered = (at::setHostAllocator(kDevice.type(), &instance()), true);

}  // namespace

c10::Allocator* pinned_allocator() {
  return &instance();
}

bool is_pinned(const void* address) {
  std::lock_guard<std::mutex> lock(known().mutex);
  return known().addresses.count(address) != 0;
}

}  // namespace porter
