// Finds offsets that were computed in 32 bits, by where the elements of a sparse buffer lie.
#include "runtime.h"

namespace pm {
namespace {
bool holds(const pm_launch& launch, const pm_buffer& buffer, uintptr_t address, size_t size) {
  const void* base = buffer.base ? buffer.base : buffer.address;
  for (uint32_t i = 0; i < launch.extent_count; ++i) {
    const pm_extent& e = launch.extents[i];
    const auto start = reinterpret_cast<uintptr_t>(e.base);
    if (e.base == base && address >= start + e.low && address + size <= start + e.high) return true;
  }
  return false;
}
}  // namespace

bool holds_element(const pm_launch& launch, uintptr_t address, size_t size) {
  for (uint32_t i = 0; i < launch.extent_count; ++i) {
    const pm_extent& e = launch.extents[i];
    const auto start = reinterpret_cast<uintptr_t>(e.base);
    if (address >= start + e.low && address + size <= start + e.high) return true;
  }
  return false;
}

const pm_argument* find_wrapped(const pm_launch& launch, uintptr_t address, size_t size, int64_t& away) {
  for (uint32_t i = 0; i < launch.kernel->argument_count && launch.extent_count; ++i) {
    const pm_argument& a = launch.kernel->arguments[i];
    if (a.kind != PM_BUFFER) continue;
    const int64_t units[] = {a.element_size, 1}, turns[] = {1, -1, 2, -2};
    for (const int64_t unit : units)
      for (const int64_t times : turns) {
        away = times * unit * (int64_t(1) << 32);
        if (holds(launch, launch.buffers[a.index], address + uintptr_t(away), size)) return &a;
      }
  }
  return nullptr;
}
}  // namespace pm
