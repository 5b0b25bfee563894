#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr size_t kCapacity = size_t{1} << 36;
constexpr size_t kAlignment = 256;
constexpr size_t kRedZone = 64;
constexpr size_t kPage = 4096;
// Lies before the first allocation: kernels may read a little before a tensor and drop it, as a GPU lets them.
constexpr size_t kMargin = size_t{1} << 24;
// A multiple of 32 bits' worth of 8-byte elements off a sparse allocation lies in no other one.
constexpr size_t kGap = size_t{1} << 36;
constexpr size_t kSparseCapacity = size_t{1} << 43;
constexpr size_t kAliasCapacity = size_t{1} << 40;

struct Block {
  size_t size;   // bytes asked for
  size_t chunk;  // bytes taken from the pool: a power of two; 0 if it is sparse
  std::string writer{};  // the last kernel that may have written to it, where that is watched
};

// Addresses of the device and, at the same distance from `host`, the bytes.
struct Region {
  char* device = nullptr;
  char* host = nullptr;
  size_t capacity = 0;
};

struct Count : porter_memory_count {
  Count() : porter_memory_count{} {}
  void add(size_t bytes) {
    current += bytes;
    added += bytes;
    peak = std::max(peak, current);
  }
  void remove(size_t bytes) {
    current -= bytes;
    removed += bytes;
  }
};

// Device addresses of their own for bytes of an allocation.
struct Alias {
  char* host;
  size_t size;
};

struct Pool {
  Region plain, sparse;
  Region aliased;  // without bytes: `host` is null
  std::map<const char*, Alias> aliases;
  size_t alias_top = 0;
  std::mutex mutex;
  size_t top = kMargin;
  size_t limit = kCapacity;
  size_t overruns = 0;
  Count allocated, reserved;
  bool fresh = true;  // whether new memory is filled
  std::map<char*, Block> live;
  std::map<size_t, std::vector<char*>> free_chunks;
  std::set<char*> returned;  // free chunks whose pages the system has
  size_t sparse_from = 0;    // bytes from which an allocation is sparse; 0: none is
  std::map<const char*, std::vector<porter_extent>> extents;
  size_t holds = 0;
  void (*freed)(const void*) = nullptr;
  std::set<char*> postponed;  // live ones to be freed at the last release
};

char* map(size_t size, int access) {
  void* start = mmap(nullptr, size, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return start == MAP_FAILED ? nullptr : static_cast<char*>(start);
}

bool reserve(Region& region, size_t size) {
  Region made{map(size, PROT_NONE), map(size, PROT_READ | PROT_WRITE), size};
  if (made.device == nullptr || made.host == nullptr) {
    return false;
  }
  region = made;
  return true;
}

// Never destroyed: tensors may outlive every static object of this library.
Pool& pool() {
  static Pool* instance = [] {
    auto* made = new Pool{};
    if (!reserve(made->plain, kCapacity)) {
      std::perror("porter: cannot reserve address space for device memory");
      std::abort();
    }
    return made;
  }();
  return *instance;
}

bool within(const void* address, const char* start, size_t capacity) {
  const auto* byte = static_cast<const char*>(address);
  return byte >= start && byte < start + capacity;
}

// The region whose device addresses hold this one; null if none does.
const Region* region_of(const Pool& p, const void* address) {
  for (const Region* region : {&p.plain, &p.sparse, &p.aliased}) {
    if (within(address, region->device, region->capacity)) {
      return region;
    }
  }
  return nullptr;
}

// The alias that holds a device address; the end if none does.
std::map<const char*, Alias>::iterator find_alias(Pool& p, const char* address) {
  auto after = p.aliases.upper_bound(address);
  if (after == p.aliases.begin()) {
    return p.aliases.end();
  }
  const auto before = std::prev(after);
  return address < before->first + before->second.size ? before : p.aliases.end();
}

// The live allocation that holds a device address; the end if none does.
std::map<char*, Block>::iterator find_block(Pool& p, char* address) {
  auto after = p.live.upper_bound(address);
  if (after == p.live.begin()) {
    return p.live.end();
  }
  const auto before = std::prev(after);
  return address < before->first + before->second.size ? before : p.live.end();
}

char* host_of(Pool& p, char* device) {
  return p.plain.host + (device - p.plain.device);
}

size_t chunk_for(size_t size) {
  size_t chunk = kAlignment;
  while (chunk < size + kRedZone) {
    chunk <<= 1;
  }
  return chunk;
}

void trim(Pool& p) {
  for (const auto& [chunk, addresses] : p.free_chunks) {
    for (char* address : addresses) {
      if (chunk >= kPage && p.returned.insert(address).second) {
        madvise(host_of(p, address), chunk, MADV_DONTNEED);
        p.reserved.remove(chunk);
      }
    }
  }
}

// Whether `chunk` more bytes may be reserved, if need be after giving back what is free.
bool has_room(Pool& p, size_t chunk) {
  if (p.reserved.current + chunk > p.limit) {
    trim(p);
  }
  return p.reserved.current + chunk <= p.limit;
}

char* reuse_chunk(Pool& p, size_t chunk) {
  auto& free_list = p.free_chunks[chunk];
  if (free_list.empty()) {
    return nullptr;
  }
  char* address = free_list.back();
  if (p.returned.count(address) != 0) {
    if (!has_room(p, chunk)) {
      return nullptr;
    }
    p.returned.erase(address);
    p.reserved.add(chunk);
  }
  free_list.pop_back();
  return address;
}

char* take_chunk(Pool& p, size_t chunk) {
  if (char* address = reuse_chunk(p, chunk)) {
    return address;
  }
  const size_t alignment = std::min(chunk, kPage);
  const size_t start = (p.top + alignment - 1) / alignment * alignment;
  if (start + chunk > kCapacity || !has_room(p, chunk)) {
    return nullptr;
  }
  p.top = start + chunk;
  p.reserved.add(chunk);
  return p.plain.device + start;
}

// The first addresses that are far from all sparse allocations; null if there are none.
char* take_sparse(Pool& p, size_t size) {
  const size_t whole = (size + kPage - 1) / kPage * kPage;
  char* start = p.sparse.device + kGap;
  for (auto it = p.live.lower_bound(p.sparse.device); it != p.live.end() && it->second.chunk == 0; ++it) {
    if (start + whole + kGap <= it->first) {
      return start;
    }
    start = it->first + (it->second.size + kPage - 1) / kPage * kPage + kGap;
  }
  return start + whole + kGap <= p.sparse.device + p.sparse.capacity ? start : nullptr;
}

// Gives the pages back, so that the bytes are zeros again.
void drop_sparse(Pool& p, char* address, size_t size) {
  madvise(p.sparse.host + (address - p.sparse.device), (size + kPage - 1) / kPage * kPage, MADV_DONTNEED);
  p.extents.erase(address);
}

bool overrun(Pool& p, char* address, size_t size) {
  const auto* end = reinterpret_cast<const unsigned char*>(host_of(p, address)) + size;
  return !std::all_of(end, end + kRedZone, [](unsigned char byte) { return byte == PORTER_FRESH_BYTE; });
}

void free_now(Pool& p, char* address) {
  const auto found = p.live.find(address);
  const Block block = found->second;
  if (p.freed != nullptr) {
    p.freed(address);
  }
  p.allocated.remove(block.size);
  p.live.erase(found);
  if (block.chunk == 0) {
    drop_sparse(p, address, block.size);
    return;
  }
  p.overruns += overrun(p, address, block.size);
  p.free_chunks[block.chunk].push_back(address);
}

}  // namespace

extern "C" {

void* porter_device_alloc(size_t size) {
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  if (p.sparse_from != 0 && size >= p.sparse_from) {
    char* address = take_sparse(p, size);
    if (address != nullptr) {
      p.live[address] = {size, 0};
      p.allocated.add(size);
    }
    return address;
  }
  if (size == 0 || size > kCapacity / 2) {
    return nullptr;
  }
  const size_t chunk = chunk_for(size);
  char* address = take_chunk(p, chunk);
  if (address == nullptr) {
    return nullptr;
  }
  const size_t kept = p.fresh ? 0 : size;
  std::memset(host_of(p, address) + kept, PORTER_FRESH_BYTE, size - kept + kRedZone);
  p.live[address] = {size, chunk};
  p.allocated.add(size);
  return address;
}

void porter_device_free(void* address) {
  if (address == nullptr) {
    return;
  }
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  auto* start = static_cast<char*>(address);
  if (p.aliases.erase(start) != 0) {
    if (p.freed != nullptr) {
      p.freed(start);
    }
    return;
  }
  if (p.live.count(start) == 0 || p.postponed.count(start) != 0) {
    std::fprintf(stderr, "porter: %p is not the start of a live device allocation\n", address);
    std::abort();
  }
  if (p.holds != 0) {
    p.postponed.insert(start);
  } else {
    free_now(p, start);
  }
}

void porter_memory_watch_frees(void (*freed)(const void* address)) {
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  p.freed = freed;
}

void porter_memory_hold(void) {
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  ++p.holds;
}

void porter_memory_release(void) {
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  if (--p.holds == 0) {
    for (char* address : std::exchange(p.postponed, {})) {
      free_now(p, address);
    }
  }
}

int porter_is_device(const void* address) {
  return region_of(pool(), address) != nullptr;
}

void* porter_host_address(const void* address) {
  Pool& p = pool();
  auto* byte = static_cast<char*>(const_cast<void*>(address));
  const Region* region = region_of(p, address);
  if (region == &p.aliased) {
    std::lock_guard<std::mutex> lock(p.mutex);
    const auto alias = find_alias(p, byte);
    return alias == p.aliases.end() ? byte : alias->second.host + (byte - alias->first);
  }
  return region != nullptr ? region->host + (byte - region->device) : byte;
}

void* porter_device_address(const void* host_address) {
  Pool& p = pool();
  auto* byte = static_cast<char*>(const_cast<void*>(host_address));
  for (const Region* region : {&p.plain, &p.sparse}) {
    if (within(host_address, region->host, region->capacity)) {
      return region->device + (byte - region->host);
    }
  }
  return byte;
}

void* porter_allocation(const void* address, size_t* size) {
  Pool& p = pool();
  auto* byte = static_cast<char*>(const_cast<void*>(address));
  std::lock_guard<std::mutex> lock(p.mutex);
  if (const auto alias = find_alias(p, byte); alias != p.aliases.end()) {
    if (size != nullptr) {
      *size = alias->second.size;
    }
    return const_cast<char*>(alias->first);
  }
  const auto block = find_block(p, byte);
  if (block == p.live.end()) {
    return nullptr;
  }
  if (size != nullptr) {
    *size = block->second.size;
  }
  return block->first;
}

void porter_memory_note_writer(const void* host_address, const char* kernel) {
  Pool& p = pool();
  auto* byte = static_cast<char*>(porter_device_address(host_address));
  std::lock_guard<std::mutex> lock(p.mutex);
  if (const auto block = find_block(p, byte); block != p.live.end()) {
    block->second.writer = kernel;
  }
}

int porter_memory_writer(const void* host_address, char* kernel, size_t size) {
  Pool& p = pool();
  auto* byte = static_cast<char*>(porter_device_address(host_address));
  std::lock_guard<std::mutex> lock(p.mutex);
  const auto block = find_block(p, byte);
  if (block == p.live.end() || block->second.writer.empty()) {
    return 0;
  }
  std::snprintf(kernel, size, "%s", block->second.writer.c_str());
  return 1;
}

void* porter_device_alias(void* host_address, size_t size) {
  Pool& p = pool();
  size_t whole = 0;
  auto* target = static_cast<char*>(porter_device_address(host_address));
  auto* start = porter_is_device(target) ? static_cast<char*>(porter_allocation(target, &whole)) : nullptr;
  if (start == nullptr || target + size > start + whole) {
    return nullptr;
  }
  std::lock_guard<std::mutex> lock(p.mutex);
  if (p.aliased.capacity == 0) {
    char* device = map(kAliasCapacity, PROT_NONE);
    if (device == nullptr) {
      return nullptr;
    }
    p.aliased = {device, nullptr, kAliasCapacity};
  }
  const size_t taken = (size + 2 * kPage - 1) / kPage * kPage;
  if (p.alias_top + taken > kAliasCapacity) {
    return nullptr;
  }
  char* alias = p.aliased.device + p.alias_top;
  p.alias_top += taken;
  p.aliases[alias] = {static_cast<char*>(host_address), size};
  return alias;
}

struct porter_memory_use porter_memory_use(void) {
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  return {p.allocated.current, p.reserved.current, p.limit, kCapacity, p.live.size(), p.overruns};
}

struct porter_memory_counts porter_memory_counts(void) {
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  return {p.allocated, p.reserved};
}

void porter_memory_reset_peaks(void) {
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  p.allocated.peak = p.allocated.current;
  p.reserved.peak = p.reserved.current;
}

void porter_memory_reset_totals(void) {
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  p.allocated.added = p.allocated.removed = 0;
  p.reserved.added = p.reserved.removed = 0;
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

int porter_memory_sparse(uint64_t threshold) {
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  if (threshold != 0 && p.sparse.capacity == 0 && !reserve(p.sparse, kSparseCapacity)) {
    return -1;
  }
  p.sparse_from = threshold;
  return 0;
}

int porter_memory_set_extents(void* address, const struct porter_extent* extents, size_t count) {
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  const auto found = p.live.find(static_cast<char*>(address));
  if (found == p.live.end() || found->second.chunk != 0) {
    return -1;
  }
  p.extents[found->first].assign(extents, extents + count);
  return 0;
}

const struct porter_extent* porter_memory_extents(const void* address, size_t* count) {
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  const auto found = p.extents.find(static_cast<const char*>(address));
  *count = found == p.extents.end() ? 0 : found->second.size();
  return found == p.extents.end() ? nullptr : found->second.data();
}

void porter_memory_trim(void) {
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  trim(p);
}

uint64_t porter_memory_overruns(void) {
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  return p.overruns + std::count_if(p.live.begin(), p.live.end(), [&](const auto& entry) {
           return entry.second.chunk != 0 && overrun(p, entry.first, entry.second.size);
         });
}

}  // extern "C"
