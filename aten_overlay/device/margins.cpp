// Notices kernels of the CPU that write beyond the memory that they allocate, which corrupts the heap: a pooling window
// of nothing but padding makes `max_pool2d_with_indices_backward` add to the element after its result. Memory is filled, so
// that results which nobody wrote show: `_pad_circular` leaves some where a padding is negative.

#include <c10/core/Allocator.h>
#include <c10/core/alignment.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

namespace {

constexpr size_t kMargin = 4096; // bytes on either side; a multiple of what PyTorch aligns memory to
constexpr unsigned char kMarked = 0xa5;
// A call that needs more is none to compare: a far number in bincount's input makes a result of 16 GiB.
constexpr size_t kMost = size_t{2} << 30;
static_assert(kMargin % c10::gAlignment == 0);

std::mutex mutex;
std::unordered_map<void*, size_t> sizes; // by the first byte between the margins
bool damaged = false;
int filling = 0;

bool is_filled(const unsigned char* margin) {
  return std::all_of(margin, margin + kMargin, [](unsigned char byte) { return byte == kMarked; });
}

bool is_damaged(const void* block, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(block);
  return !is_filled(bytes - kMargin) || !is_filled(bytes + size);
}

void release(void* block) {
  if (block == nullptr) {
    return;
  }
  const std::lock_guard lock(mutex);
  const auto held = sizes.find(block);
  damaged = damaged || is_damaged(block, held->second);
  sizes.erase(held);
  c10::free_cpu(static_cast<unsigned char*>(block) - kMargin);
}

struct MarginAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t size) override {
    if (size == 0) {
      return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    }
    TORCH_CHECK_WITH(OutOfMemoryError, size <= kMost, size, " bytes are more than a call may take that is tried");
    auto* whole = static_cast<unsigned char*>(c10::alloc_cpu(size + 2 * kMargin));
    std::memset(whole, kMarked, kMargin);
    std::memset(whole + kMargin + size, kMarked, kMargin);
    void* block = whole + kMargin;
    std::memset(block, filling, size);
    const std::lock_guard lock(mutex);
    sizes[block] = size;
    return {block, block, &release, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return &release;
  }

  void copy_data(void* to, const void* from, size_t size) const override {
    std::memcpy(to, from, size);
  }
};

} // namespace

extern "C" {

// Gives what the CPU allocates from now on in this process margins, and fills it with a byte.
__attribute__((visibility("default"))) void porter_margins_start(int byte) {
  static MarginAllocator allocator;
  filling = byte;
  c10::SetCPUAllocator(&allocator, /*priority=*/255);
}

// Whether something was written to the margins of any memory since the start.
__attribute__((visibility("default"))) int porter_margins_damaged() {
  const std::lock_guard lock(mutex);
  return damaged || std::any_of(sizes.begin(), sizes.end(), [](const auto& held) {
           return is_damaged(held.first, held.second);
         });
}
}
