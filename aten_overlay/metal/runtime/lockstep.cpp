// Threadgroups whose lanes run in lockstep: the functions that code written by lockstep.py calls.
#include "runtime.h"

#include <stdlib.h>

namespace pm {
namespace {
constexpr uint32_t kEnded = 1u << 30;  // the region of a lane that has ended: as in lockstep.py

// Each host thread keeps its memory for the next launch.
struct Memory {
  pm_exchange exchange;
  uint32_t position[3][kLanes], region[kLanes];
  uint32_t size[3];  // that `position` was made for
  void* storage;
  size_t storage_size;
};
struct Owner {
  Memory* memory = nullptr;
  ~Owner() {
    if (!memory) return;
    free(memory->storage);
    free(memory);
  }
};
thread_local Owner owner;

Memory& own_memory() {
  if (!owner.memory) {
    owner.memory = static_cast<Memory*>(aligned_alloc(64, (sizeof(Memory) + 63) & ~size_t(63)));
    owner.memory->storage = nullptr;
    owner.memory->storage_size = owner.memory->size[0] = 0;
  }
  return *owner.memory;
}

void position_lanes(Memory& m, const pm_group& group) {
  const uint32_t* n = group.size;
  if (m.size[0] == n[0] && m.size[1] == n[1] && m.size[2] == n[2]) return;
  uint32_t lane = 0;
  for (uint32_t z = 0; z < n[2]; ++z)
    for (uint32_t y = 0; y < n[1]; ++y)
      for (uint32_t x = 0; x < n[0]; ++x, ++lane) {
        m.position[0][lane] = x;
        m.position[1][lane] = y;
        m.position[2][lane] = z;
      }
  for (int d = 0; d < 3; ++d) m.size[d] = n[d];
}

// Simdgroups, unless rows are shorter or end between them.
uint32_t chunk_lanes(const uint32_t size[3]) {
  const bool whole_rows = size[0] % 32 != 0 && size[0] >= 8 && size[1] * size[2] > 1;
  return whole_rows ? size[0] : 32;
}
}  // namespace

int run_in_lockstep(const Job& job, uint64_t begin, uint64_t end) {
  Memory& m = own_memory();
  ThreadgroupMemory memory(job);
  m.exchange.reorder = job.entry->flags & PM_REORDER_REDUCTIONS;
  pm_lanes lanes{&m.exchange, {m.position[0], m.position[1], m.position[2]}, m.region, 0, 0};
  for (uint64_t i = begin; i < end; ++i) {
    const pm_group group = place_group(job.grid, i);
    position_lanes(m, group);
    lanes.count = group.size[0] * group.size[1] * group.size[2];
    lanes.chunk = chunk_lanes(group.size);
    job.entry->lockstep(job.buffers, memory.addresses, &group, &lanes);
  }
  return PM_OK;
}
}  // namespace pm

using namespace pm;

#pragma GCC visibility push(default)
extern "C" {
// Memory for the values that lanes store: valid until the next call.
void* pm_lane_memory(size_t bytes) {
  Memory& m = own_memory();
  if (m.storage_size < bytes) {
    free(m.storage);
    m.storage_size = (bytes + 4095) & ~size_t(4095);
    m.storage = aligned_alloc(4096, m.storage_size);
  }
  return m.storage;
}
void pm_lanes_diverge(pm_lanes* lanes, const uint8_t* condition, uint32_t yes, uint32_t no) {
  for (uint32_t i = 0; i < lanes->count; ++i) lanes->region[i] = condition[i] ? yes : no;
}
// Twice the lowest region with lanes waiting, plus one if all lanes are there.
uint32_t pm_lanes_next(const pm_lanes* lanes) {
  uint32_t lowest = kEnded, highest = 0;
  for (uint32_t i = 0; i < lanes->count; ++i) {
    const uint32_t region = lanes->region[i];
    lowest = region < lowest ? region : lowest;
    highest = region > highest ? region : highest;
  }
  return 2 * lowest + (lowest == highest);
}
void pm_step_all(pm_lanes* lanes, pm_step step) {
  for (uint32_t simd = 0; simd * 32 < lanes->count; ++simd) {
    const uint32_t n = lanes->count - simd * 32;
    lanes->exchange->mask[simd] = n >= 32 ? ~0u : (1u << n) - 1;
    step(lanes->exchange, simd);
  }
}
// For the lanes at region `here`, which then go on to `next`.
void pm_step_some(pm_lanes* lanes, uint32_t here, uint32_t next, pm_step step) {
  for (uint32_t simd = 0; simd * 32 < lanes->count; ++simd) {
    uint32_t mask = 0;
    for (uint32_t i = simd * 32; i < lanes->count && i < simd * 32 + 32; ++i) {
      if (lanes->region[i] != here) continue;
      mask |= 1u << (i & 31);
      lanes->region[i] = next;
    }
    if (!mask || !step) continue;
    lanes->exchange->mask[simd] = mask;
    step(lanes->exchange, simd);
  }
}
}
#pragma GCC visibility pop
static_assert(offsetof(pm_lanes, region) == 32 && offsetof(pm_lanes, count) == 40 && offsetof(pm_lanes, chunk) == 44, "as lockstep.py reads it");
