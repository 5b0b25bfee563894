#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace {

constexpr size_t kCapacity = size_t{1} << 36;
constexpr size_t kAlignment = 256;
constexpr size_t kRedZone = 64;
constexpr size_t kPage = 4096;

struct Block {
  size_t size;   // bytes asked for
  size_t chunk;  // bytes taken from the pool: a power of two
};

struct Pool {
  char* device;
  char* host;
  std::mutex mutex;
  size_t top = 0;
  size_t limit = kCapacity;
  size_t allocated = 0;
  size_t overruns = 0;
  bool fresh = true;  // whether new memory is filled
  std::map<char*, Block> live;
  std::map<size_t, std::vector<char*>> free_chunks;
};

char* reserve(int access) {
  void* start = mmap(nullptr, kCapacity, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) {
    std::perror("porter: cannot reserve address space for device memory");
    std::abort();
  }
  return static_cast<char*>(start);
}

// Never destroyed: tensors may outlive every static object of this library.
Pool& pool() {
  static Pool* instance = [] {
    auto* made = new Pool{};
    made->device = reserve(PROT_NONE);
    made->host = reserve(PROT_READ | PROT_WRITE);
    return made;
  }();
  return *instance;
}

bool within(const void* address, const char* start) {
  const auto* byte = static_cast<const char*>(address);
  return byte >= start && byte < start + kCapacity;
}

char* host_of(Pool& p, char* device) {
  return p.host + (device - p.device);
}

size_t chunk_for(size_t size) {
  size_t chunk = kAlignment;
  while (chunk < size + kRedZone) {
    chunk <<= 1;
  }
  return chunk;
}

char* take_chunk(Pool& p, size_t chunk) {
  auto& free_list = p.free_chunks[chunk];
  if (!free_list.empty()) {
    char* address = free_list.back();
    free_list.pop_back();
    return address;
  }
  const size_t alignment = std::min(chunk, kPage);
  const size_t start = (p.top + alignment - 1) / alignment * alignment;
  if (start + chunk > p.limit) {
    return nullptr;
  }
  p.top = start + chunk;
  return p.device + start;
}

bool overrun(Pool& p, char* address, size_t size) {
  const auto* end = reinterpret_cast<const unsigned char*>(host_of(p, address)) + size;
  return !std::all_of(end, end + kRedZone, [](unsigned char byte) { return byte == PORTER_FRESH_BYTE; });
}

}  // namespace

extern "C" {

void* porter_device_alloc(size_t size) {
  Pool& p = pool();
  if (size == 0 || size > kCapacity / 2) {
    return nullptr;
  }
  const size_t chunk = chunk_for(size);
  std::lock_guard<std::mutex> lock(p.mutex);
  char* address = take_chunk(p, chunk);
  if (address == nullptr) {
    return nullptr;
  }
  const size_t kept = p.fresh ? 0 : size;
  std::memset(host_of(p, address) + kept, PORTER_FRESH_BYTE, size - kept + kRedZone);
  p.live[address] = {size, chunk};
  p.allocated += size;
  return address;
}

void porter_device_free(void* address) {
  if (address == nullptr) {
    return;
  }
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  auto found = p.live.find(static_cast<char*>(address));
  if (found == p.live.end()) {
    std::fprintf(stderr, "porter: %p is not the start of a live device allocation\n", address);
    std::abort();
  }
  p.overruns += overrun(p, found->first, found->second.size);
  p.allocated -= found->second.size;
  p.free_chunks[found->second.chunk].push_back(found->first);
  p.live.erase(found);
}

int porter_is_device(const void* address) {
  return within(address, pool().device);
}

void* porter_host_address(const void* address) {
  Pool& p = pool();
  auto* byte = static_cast<char*>(const_cast<void*>(address));
  return within(address, p.device) ? host_of(p, byte) : byte;
}

void* porter_device_address(const void* host_address) {
  Pool& p = pool();
  auto* byte = static_cast<char*>(const_cast<void*>(host_address));
  return within(host_address, p.host) ? p.device + (byte - p.host) : byte;
}

void* porter_allocation(const void* address, size_t* size) {
  Pool& p = pool();
  auto* byte = static_cast<char*>(const_cast<void*>(address));
  std::lock_guard<std::mutex> lock(p.mutex);
  auto after = p.live.upper_bound(byte);
  if (after == p.live.begin()) {
    return nullptr;
  }
  auto& [start, block] = *std::prev(after);
  if (byte >= start + block.size) {
    return nullptr;
  }
  if (size != nullptr) {
    *size = block.size;
  }
  return start;
}

struct porter_memory_use porter_memory_use(void) {
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  return {p.allocated, p.top, p.limit, kCapacity, p.live.size(), p.overruns};
}

void porter_memory_limit(uint64_t bytes) {
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  p.limit = std::min<uint64_t>(bytes, kCapacity);
}

void porter_memory_fill(int fill) {
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  p.fresh = fill != 0;
}

void porter_memory_trim(void) {
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  for (const auto& [chunk, addresses] : p.free_chunks) {
    for (char* address : addresses) {
      if (chunk >= kPage) {
        madvise(host_of(p, address), chunk, MADV_DONTNEED);
      }
    }
  }
}

uint64_t porter_memory_overruns(void) {
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  return p.overruns + std::count_if(p.live.begin(), p.live.end(), [&](const auto& entry) {
           return overrun(p, entry.first, entry.second.size);
         });
}

}  // extern "C"
