// One threadgroup at a time: a fiber per thread, 32 of them a simdgroup. A lane that has to wait switches straight to the
// next ready lane of its simdgroup; only when none is left does the scheduler run.
#include "runtime.h"
#include "switch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

namespace pm {
namespace {
struct Fiber {
  Context context;
  const void* site;     // of the simdgroup operation it waits in
  uint32_t operations;  // simdgroup operations so far: neighbours in time use different slots
  pm_thread thread;
};

struct Group {
  Context scheduler;
  uint32_t current, threads;
  uint32_t ready[32], in_simd[32], at_barrier[32];
  uint64_t random;  // 0: lanes in order
  bool reorder, collecting, unexpected;
  const pm_entry* entry;
  void* const* buffers;
  void* const* threadgroup;
  pm_slot slots[32][2];
  Fiber fibers[kLanes];
  char* stacks;
};

thread_local Group* current_group __attribute__((tls_model("initial-exec")));

uint32_t next_random(Group& g) {
  g.random ^= g.random << 13;
  g.random ^= g.random >> 7;
  g.random ^= g.random << 17;
  return uint32_t(g.random >> 16);
}

inline uint32_t take(Group& g, uint32_t simd) {
  uint32_t ready = g.ready[simd];
  uint32_t lane = __builtin_ctz(ready);
  if (g.random) {
    const uint32_t turn = next_random(g) & 31, turned = (ready >> turn) | (ready << ((32 - turn) & 31));
    lane = (__builtin_ctz(turned) + turn) & 31;
  }
  g.ready[simd] = ready & ~(1u << lane);
  return simd * 32 + lane;
}

inline void leave(Group& g, uint32_t lane) {
  if (g.ready[lane >> 5]) {
    const uint32_t next = take(g, lane >> 5);
    g.current = next;
    switch_to(g.fibers[lane].context, g.fibers[next].context);
  } else {
    switch_to(g.fibers[lane].context, g.scheduler);
  }
}

void run_fiber() {
  for (;;) {
    Group& g = *current_group;
    const uint32_t lane = g.current;
    g.entry->lane(g.buffers, g.threadgroup, &g.fibers[lane].thread);
    leave(g, lane);
  }
}

void start_fiber(Group& g, uint32_t lane) {
  // Neighbouring stacks start at different cache sets.
  char* low = g.stacks + size_t(lane) * kStack;
  prepare(g.fibers[lane].context, low, kStack - (lane % 61) * 64, run_fiber);
}

Group* make_group() {
  auto* g = static_cast<Group*>(aligned_alloc(64, (sizeof(Group) + 63) & ~size_t(63)));
  memset(static_cast<void*>(g), 0, sizeof(Group));
  void* stacks = mmap(nullptr, kStack * kLanes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  g->stacks = static_cast<char*>(stacks);
  for (uint32_t i = 0; i < kLanes; ++i) start_fiber(*g, i);
  return g;
}

// Each host thread keeps its group for the next launch.
struct Owner {
  Group* group = nullptr;
  ~Owner() {
    if (!group) return;
    munmap(group->stacks, kStack * kLanes);
    free(group);
  }
};
thread_local Owner owner;

Group& own_group() {
  if (!owner.group) owner.group = make_group();
  return *owner.group;
}

// Every lane of the simdgroup waits or has ended: those at the call where the lowest waiting lane is go on together.
bool release(Group& g, uint32_t simd) {
  const uint32_t waiting = g.in_simd[simd];
  if (!waiting) return false;
  const Fiber& first = g.fibers[simd * 32 + __builtin_ctz(waiting)];
  uint32_t mask = 0;
  for (uint32_t rest = waiting; rest; rest &= rest - 1) {
    const uint32_t lane = __builtin_ctz(rest);
    const Fiber& f = g.fibers[simd * 32 + lane];
    if (f.site == first.site && ((f.operations ^ first.operations) & 1) == 0) mask |= 1u << lane;
  }
  pm_slot& slot = g.slots[simd][(first.operations - 1) & 1];
  slot.mask = mask;
  slot.done = 0;
  slot.reorder = g.reorder;
  g.in_simd[simd] = waiting & ~mask;
  g.ready[simd] = mask;
  return true;
}

void run_simdgroup(Group& g, uint32_t simd) {
  do {
    if (!g.ready[simd]) continue;
    g.current = take(g, simd);
    switch_to(g.scheduler, g.fibers[g.current].context);
  } while (g.ready[simd] || release(g, simd));
}

int run_group(Group& g) {
  const uint32_t simdgroups = (g.threads + 31) / 32;
  for (uint32_t i = 0; i < g.threads; ++i) g.fibers[i].operations = 0;
  for (uint32_t s = 0; s < simdgroups; ++s) {
    const uint32_t n = g.threads - s * 32;
    g.ready[s] = n >= 32 ? ~0u : (1u << n) - 1;
    g.in_simd[s] = g.at_barrier[s] = 0;
  }
  for (;;) {
    const uint32_t first = g.random ? next_random(g) % simdgroups : 0;
    const bool backwards = g.random && (next_random(g) & 1);
    for (uint32_t k = 0; k < simdgroups; ++k) {
      const uint32_t s = (first + (backwards ? simdgroups - k : k)) % simdgroups;
      run_simdgroup(g, s);
    }
    uint32_t waiting = 0;
    for (uint32_t s = 0; s < simdgroups; ++s) waiting += __builtin_popcount(g.at_barrier[s]);
    if (!waiting) return PM_OK;
    if (waiting != g.threads && g.random) return PM_BARRIER_DIVERGENCE;
    for (uint32_t s = 0; s < simdgroups; ++s) {  // threads that have ended do not hold up the others
      g.ready[s] = g.at_barrier[s];
      g.at_barrier[s] = 0;
    }
  }
}

void place_threads(Group& g, const Job& job, uint64_t index) {
  const pm_grid& grid = job.grid;
  const uint32_t at[3] = {
      uint32_t(index % grid.groups[0]), uint32_t(index / grid.groups[0] % grid.groups[1]),
      uint32_t(index / grid.groups[0] / grid.groups[1])};
  uint32_t size[3];
  for (int d = 0; d < 3; ++d) {
    const uint32_t left = grid.grid[d] - at[d] * grid.group[d];
    size[d] = left < grid.group[d] ? left : grid.group[d];
  }
  uint32_t n = 0;
  for (uint32_t z = 0; z < size[2]; ++z)
    for (uint32_t y = 0; y < size[1]; ++y)
      for (uint32_t x = 0; x < size[0]; ++x, ++n) {
        pm_thread& t = g.fibers[n].thread;
        const uint32_t local[3] = {x, y, z};
        for (int d = 0; d < 3; ++d) {
          t.local[d] = local[d];
          t.group[d] = at[d];
          t.size[d] = size[d];
          t.position[d] = at[d] * grid.group[d] + local[d];
        }
        t.index = n;
        t.grid = &grid;
      }
  g.threads = n;
}

// Fibers left in the middle of a kernel have to start afresh.
void restart(Group& g) {
  for (uint32_t i = 0; i < kLanes; ++i) start_fiber(g, i);
}
}  // namespace

int run_on_fibers(const Job& job, uint64_t begin, uint64_t end, Failure& failure) {
  Group& g = own_group();
  ThreadgroupMemory memory(job);
  g.entry = job.entry;
  g.buffers = job.buffers;
  g.threadgroup = memory.addresses;
  g.random = job.launch->flags & PM_SHUFFLE_LANES ? (job.launch->seed + begin) * 0x9e3779b97f4a7c15u | 1 : 0;
  g.reorder = job.entry->flags & PM_REORDER_REDUCTIONS;
  current_group = &g;
  jmp_buf escape;
  int status = setjmp(escape);
  if (status == 0) {
    if (job.entry->flags & PM_CHECKED) {
      begin_checks(job, memory.addresses, failure, &escape);
      allow(g.stacks, kStack * kLanes);
      allow(&g, sizeof(g));
    }
    for (uint64_t i = begin; i < end && status == PM_OK; ++i) {
      place_threads(g, job, i);
      memory.poison();
      status = run_group(g);
    }
  }
  end_checks();
  current_group = nullptr;
  if (status != PM_OK) restart(g);
  return failure.status = status;
}
}  // namespace pm

using namespace pm;

extern "C" {
static int waits_unexpectedly() {
  fprintf(stderr, "porter: a kernel that was not known to synchronise did; this is a defect of its front end\n");
  abort();
}
void pm_threadgroup_barrier(void) {
  Group* g = current_group;
  if (!g) waits_unexpectedly();
  const uint32_t lane = g->current;
  g->at_barrier[lane >> 5] |= 1u << (lane & 31);
  leave(*g, lane);
}
pm_slot* pm_simd_exchange(const void* value, unsigned size) {
  Group* g = current_group;
  if (!g) waits_unexpectedly();
  const uint32_t lane = g->current, simd = lane >> 5;
  Fiber& f = g->fibers[lane];
  pm_slot* slot = &g->slots[simd][f.operations++ & 1];
  memcpy(slot->data + (lane & 31) * size, value, size);
  g->in_simd[simd] |= 1u << (lane & 31);
  f.site = __builtin_return_address(0);
  leave(*g, lane);
  return slot;
}
unsigned pm_lane(void) { return current_group ? current_group->current & 31 : 0; }
}
