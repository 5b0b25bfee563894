#include "device.h"
#include "memory/memory.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>

namespace porter {
namespace {

struct DeviceAllocator final : c10::Allocator {
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
