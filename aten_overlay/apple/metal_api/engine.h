// What lies under the Metal objects: libraries that compile their kernels when asked, and launches.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "metal/include/porter_metal_abi.h"
#include "order.h"

namespace porter::metal {

constexpr size_t kThreadgroupMemory = 32768;  // bytes, of every Apple GPU family (Metal feature set tables)

class Library {
 public:
  // Throws std::runtime_error with the compiler's message.
  Library(const std::string& source, bool bundled);

  const std::vector<std::string>& names() const {
    return names_;
  }
  bool has(const std::string& name) const;

  // The kernel, compiled if it was not yet. `constants` as porter_compile_kernel takes them. Throws as above.
  const pm_kernel* kernel(const std::string& name, const std::string& constants);

 private:
  int handle_;
  std::vector<std::string> names_;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, const pm_kernel*> kernels_;
};

// Storage for any Metal type: the strictest alignment is that of long4 and ulong4 (MSL specification, table 2.3).
struct alignas(32) Unit {
  char bytes[32];
};

// What is bound at one index: device memory, or `length` bytes of the encoder's own.
struct Binding {
  enum class Kind { kNothing, kBuffer, kBytes } kind = Kind::kNothing;
  const void* buffer = nullptr;  // a device address: the start of an allocation
  size_t offset = 0;
  std::vector<Unit> bytes;
  size_t length = 0;
  uint64_t block = 0;  // of a dispatch queue, that bound it
};

struct Arguments {
  std::vector<Binding> bindings = std::vector<Binding>(PM_MAX_BUFFERS);
  std::vector<uint32_t> threadgroup_bytes = std::vector<uint32_t>(PM_MAX_THREADGROUP_ARGS);
  std::vector<const void*> resident;  // device addresses named by useResource
  uint64_t block = 0;  // of a dispatch queue, that dispatches
};

struct Size {
  size_t x, y, z;
};

// Runs the kernel over `threads` threads in groups of `group`, and counts it. Throws std::runtime_error naming the
// kernel and the argument: PTR124 (bindings), PTR125 (sizes), PTR126 (what the kernel did), PTR269 (order of launches).
void launch(const pm_kernel* kernel, const Arguments& arguments, Size threads, Size group, const order::Place& place);

// Tells the listener that the kernel is encoded, if it is one whose compilation asked for that. Throws std::runtime_error.
void announce(const pm_kernel* kernel, Size group);

// The bytes [offset, offset + size) of a buffer, for the host. Throws PTR124 if they are not all of its own.
char* bytes_of(const void* buffer, size_t offset, size_t size, const std::string& who);

}  // namespace porter::metal
