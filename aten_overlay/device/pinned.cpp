// Pinned host memory, which Metal binds as it stands: `pin_memory()` and torch.accelerator.empty_host_cache().
#include "device.h"

#include <ATen/core/CachingHostAllocator.h>

#include <mutex>
#include <set>

#include "memory/memory.h"

namespace porter {
namespace {

struct Pinned {
  std::mutex mutex;
  std::set<const void*> addresses;
};

Pinned& pinned() {
  static auto* instance = new Pinned();
  return *instance;
}

void unpin(void* address) {
  {
    std::lock_guard<std::mutex> lock(pinned().mutex);
    pinned().addresses.erase(address);
  }
  porter_device_free(porter_device_address(address));
}

struct PinnedAllocator final : at::HostAllocator {
  c10::DataPtr allocate(size_t size) override {
    if (size == 0) {
      return {nullptr, c10::kCPU};
    }
    c10::DataPtr memory = allocator()->allocate(size);
    void* address = porter_host_address(memory.release_context());
    std::lock_guard<std::mutex> lock(pinned().mutex);
    pinned().addresses.insert(address);
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

void* find_pinned(const void* address) {
  std::lock_guard<std::mutex> lock(pinned().mutex);
  return pinned().addresses.count(address) != 0 ? porter_device_address(address) : nullptr;
}

}  // namespace porter
