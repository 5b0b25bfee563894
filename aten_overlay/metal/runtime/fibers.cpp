// One threadgroup at a time: a fiber per thread, 32 of them a simdgroup. A lane that has to wait switches straight to the
// next ready lane of its simdgroup; only when none is left does the scheduler run.
#include "lanes.h"
#include "sanitizer.h"
#include "switch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

namespace pm {
thread_local jmp_buf* loop_escape = nullptr;

namespace {
// Kept apart and small: what a switch touches decides whether a threadgroup stays in the first-level cache.
struct Lanes {
  Context context[kLanes];
  const void* site[kLanes];  // of the simdgroup operation a lane waits in
  pm_step step[kLanes];      // of that operation
  uint32_t point[kLanes];    // and the number of that synchronization point
};

struct Group {
  Context scheduler;
  uint32_t current, threads;
  uint32_t ready[32], in_simd[32], at_barrier[32];
  uint64_t random;  // 0: lanes in order
  const pm_entry* entry;
  void* const* buffers;
  void* const* threadgroup;
  pm_group where;
  Lanes lanes;
  const Job* job;
  Failure* failure;
  bool watched, barriers;   // whether the sanitizer asks where lanes wait, and who takes part in barriers
  Meeting meeting[kLanes];  // where each lane waits, if it does
  char* stacks;
  pm_exchange exchange;
};

thread_local Group* current_group __attribute__((tls_model("initial-exec")));

uint32_t next_random(Group& g) {
  g.random ^= g.random << 13;
  g.random ^= g.random >> 7;
  g.random ^= g.random << 17;
  return uint32_t(g.random >> 16);
}

inline uint32_t pick_lane(Group& g, uint32_t simd) {
  uint32_t ready = g.ready[simd];
  uint32_t lane = __builtin_ctz(ready);
  if (g.random) {
    const uint32_t turn = next_random(g) & 31, turned = (ready >> turn) | (ready << ((32 - turn) & 31));
    lane = (__builtin_ctz(turned) + turn) & 31;
  }
  g.ready[simd] = ready & ~(1u << lane);
  return simd * 32 + lane;
}

// Who runs after a lane that has to wait: the next ready one of its simdgroup, else the scheduler.
inline Context* successor(Group& g, uint32_t lane) {
  if (!g.ready[lane >> 5]) return &g.scheduler;
  g.current = pick_lane(g, lane >> 5);
  return &g.lanes.context[g.current];
}

void run_fiber() {
  for (;;) {
    Group& g = *current_group;
    const uint32_t lane = g.current;
    const uint32_t* size = g.where.size;
    uint32_t x = lane, y = 0, z = 0;
    if (size[1] != 1 || size[2] != 1) {
      x = lane % size[0];
      y = lane / size[0] % size[1];
      z = lane / size[0] / size[1];
    }
    g.entry->lane(g.buffers, g.threadgroup, &g.where, lane, x, y, z);
  }
}

void start_fiber(Group& g, uint32_t lane) {
  // Neighboring stacks start at different cache sets.
  char* low = g.stacks + size_t(lane) * kStack;
  prepare(g.lanes.context[lane], low, kStack - (lane % 61) * 64, run_fiber);
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

bool is_waiting(const Group& g, uint32_t lane) { return (g.in_simd[lane >> 5] | g.at_barrier[lane >> 5]) >> (lane & 31) & 1; }

// A lane that is not at the barrier where `waiting` is: the one that waits elsewhere, or has ended.
int report_missing(Group& g, uint32_t waiting, uint32_t missing) {
  const bool ended = !is_waiting(g, missing);
  return report_missing(*g.job, *g.failure, g.meeting[waiting], {&g.where, waiting}, {&g.where, missing}, ended);
}

// Whether all lanes of a simdgroup are at the barrier of lane `first`; fills in the failure if not.
bool check_simdgroup(Group& g, uint32_t simd, uint32_t first, uint32_t mask) {
  constexpr uint32_t kEndOfLoop = 999;  // the number in its block of a point that is no barrier: see synchronization.py
  if (!g.barriers || g.lanes.step[first] || g.lanes.point[first] % 1000 == kEndOfLoop) return true;
  const uint32_t n = g.threads - simd * 32;
  const uint32_t missing = (n >= 32 ? ~0u : (1u << n) - 1) & ~mask;
  if (!missing) return true;
  report_missing(g, first, simd * 32 + __builtin_ctz(missing));
  return false;
}

// All lanes wait at barriers, or have ended: whether all are at one.
bool check_barrier(Group& g, uint32_t waiting) {
  uint32_t first = 0;
  while (!(g.at_barrier[first >> 5] >> (first & 31) & 1)) ++first;
  for (uint32_t lane = 0; lane < g.threads; ++lane) {
    if (!(g.at_barrier[lane >> 5] >> (lane & 31) & 1)) return waiting == g.threads || report_missing(g, first, lane) == PM_OK;
    if (g.meeting[lane].number == g.meeting[first].number) {
      if (g.meeting[lane].turn == g.meeting[first].turn) continue;
      report_turns(*g.job, *g.failure, g.meeting[first], {&g.where, first}, {&g.where, lane});
      return false;
    }
    report_apart(*g.job, *g.failure, g.meeting[first], {&g.where, first}, g.meeting[lane], {&g.where, lane});
    return false;
  }
  return true;
}

// Every lane of the simdgroup waits or has ended: those at the first call where any waits go on together.
bool release(Group& g, uint32_t simd) {
  const uint32_t waiting = g.in_simd[simd];
  if (!waiting) return false;
  uint32_t first = simd * 32 + __builtin_ctz(waiting);
  for (uint32_t i = simd * 32; i < simd * 32 + 32; ++i)
    if ((waiting >> (i & 31) & 1) && g.lanes.point[i] < g.lanes.point[first]) first = i;
  const void* site = g.lanes.site[first];
  const uint32_t point = g.lanes.point[first];
  uint32_t mask = 0;
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t lane = simd * 32 + i;
    mask |= uint32_t(g.lanes.point[lane] == point && (point || g.lanes.site[lane] == site)) << i;
  }
  mask &= waiting;
  if (!check_simdgroup(g, simd, first, mask)) return false;
  g.exchange.mask[simd] = mask;
  if (const pm_step step = g.lanes.step[first]) step(&g.exchange, simd);
  g.in_simd[simd] = waiting & ~mask;
  g.ready[simd] = mask;
  return true;
}

// Runs a simdgroup until its lanes wait; false if they have to wait on.
bool advance(Group& g, uint32_t simd) {
  if (!g.ready[simd] && !release(g, simd)) return false;
  do {
    g.current = pick_lane(g, simd);
    enter(g.scheduler, g.lanes.context[g.current]);
  } while (g.ready[simd]);
  return true;
}

// Until every lane waits at a barrier. As on a GPU simdgroups go on side by side, one operation each in turn; with lanes
// shuffled one goes as far as it can before the next.
void run_to_barrier(Group& g, uint32_t simdgroups) {
  const uint32_t first = g.random ? next_random(g) % simdgroups : 0;
  const bool backwards = g.random && (next_random(g) & 1);
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t k = 0; k < simdgroups; ++k) {
      const uint32_t s = (first + (backwards ? simdgroups - k : k)) % simdgroups;
      while (advance(g, s)) {
        moved = true;
        if (!g.random) break;
      }
    }
  }
}

int run_group(Group& g) {
  const uint32_t simdgroups = (g.threads + 31) / 32;
  for (uint32_t s = 0; s < simdgroups; ++s) {
    const uint32_t n = g.threads - s * 32;
    g.ready[s] = n >= 32 ? ~0u : (1u << n) - 1;
    g.in_simd[s] = g.at_barrier[s] = 0;
  }
  for (;;) {
    run_to_barrier(g, simdgroups);
    if (g.failure->status) return g.failure->status;
    uint32_t waiting = 0;
    for (uint32_t s = 0; s < simdgroups; ++s) waiting += __builtin_popcount(g.at_barrier[s]);
    if (!waiting) return PM_OK;
    if (g.barriers && !check_barrier(g, waiting)) return g.failure->status;
    if (waiting != g.threads && g.random) return PM_BARRIER_DIVERGENCE;
    for (uint32_t s = 0; s < simdgroups; ++s) {  // threads that have ended do not hold up the others
      g.ready[s] = g.at_barrier[s];
      g.at_barrier[s] = 0;
    }
  }
}

// The order of `count` threadgroups: another one for every seed, if lanes are shuffled.
struct Order {
  uint64_t count, first = 0, step = 1;
  Order(Group& g, uint64_t n) : count(n) {
    if (!g.random || n < 2) return;
    first = next_random(g) % n;
    step = next_random(g) % n + 1;
    while (divisor(step, n) != 1) ++step;
  }
  uint64_t at(uint64_t i) const { return (first + i * step) % count; }
  static uint64_t divisor(uint64_t a, uint64_t b) { return b ? divisor(b, a % b) : a; }
};

// Fibers left in the middle of a kernel have to start afresh.
void restart(Group& g) {
  for (uint32_t i = 0; i < kLanes; ++i) start_fiber(g, i);
}
}  // namespace

bool locate_thread(uint32_t position[3]) {
  if (!current_group) return false;
  const pm_group& where = current_group->where;
  uint32_t rest = current_group->current;
  for (int d = 0; d < 3; ++d) {
    position[d] = where.at[d] * where.grid->group[d] + rest % where.size[d];
    rest /= where.size[d];
  }
  return true;
}

Thread current_thread() { return {&current_group->where, current_group->current}; }
Meeting last_meeting() { return current_group ? current_group->meeting[current_group->current] : Meeting{}; }

int run_on_fibers(const Job& job, uint64_t begin, uint64_t end, Failure& failure) {
  Group& g = own_group();
  ThreadgroupMemory memory(job);
  g.entry = job.entry;
  g.job = &job;
  g.failure = &failure;
  g.watched = job.entry->flags & (kBarrierChecks | kLaneChecks);
  g.barriers = job.entry->flags & kBarrierChecks;
  g.buffers = job.buffers;
  g.threadgroup = memory.addresses;
  g.random = job.launch->flags & PM_SHUFFLE_LANES ? (job.launch->seed + begin) * 0x9e3779b97f4a7c15u | 1 : 0;
  g.exchange.reorder = job.entry->flags & PM_REORDER_REDUCTIONS;
  current_group = &g;
  jmp_buf escape;
  int status = setjmp(escape);
  if (status == 0) {
    if (job.entry->flags & PM_CHECKED) {
      begin_checks(job, memory.addresses, failure, &escape);
      allow(g.stacks, kStack * kLanes);
      allow(&g, sizeof(g));
    }
    const bool sanitized = job.entry->flags & kAccessChecks;
    if (sanitized) sanitizer::begin(job, memory.addresses, failure, &escape, &g, sizeof(g), g.stacks, kStack * kLanes);
    const Order order(g, end - begin);
    for (uint64_t i = 0; i < end - begin && status == PM_OK; ++i) {
      g.where = place_group(job.grid, begin + order.at(i));
      g.threads = g.where.size[0] * g.where.size[1] * g.where.size[2];
      memory.poison();
      if (sanitized) sanitizer::start_group(uint32_t(begin + order.at(i)));
      status = run_group(g);
    }
    if (sanitized) sanitizer::settle_last();
  }
  end_checks();
  sanitizer::end();
  current_group = nullptr;
  if (status != PM_OK) restart(g);
  return failure.status = status;
}
}  // namespace pm

using namespace pm;

// A kernel that the front end did not know to synchronize gets here without a fiber: its launch fails.
static Group& waiting_group() {
  if (!current_group) longjmp(*loop_escape, PM_UNEXPECTED_SYNC);
  return *current_group;
}

static inline Context* leave_at_barrier(Group& g) {
  if (g.watched) g.meeting[g.current] = next_meeting();
  g.at_barrier[g.current >> 5] |= 1u << (g.current & 31);
  return successor(g, g.current);
}
static inline Context* leave_in_simd(Group& g, const void* site) {
  g.in_simd[g.current >> 5] |= 1u << (g.current & 31);
  g.lanes.site[g.current] = site;
  if (g.watched) g.meeting[g.current] = next_meeting();
  return successor(g, g.current);
}

#ifdef PM_NATIVE_SWITCH
PM_HOOK(pm_threadgroup_barrier, "protected", pm_leave_at_barrier);
PM_HOOK(pm_simd_wait, "protected", pm_leave_in_simd);
PM_HOOK(pm_lane_ended, "protected", pm_leave_at_end);
extern "C" {
__attribute__((visibility("hidden"))) Context* pm_leave_at_barrier(void* resume, void* stack, void* frame) {
  Group& g = waiting_group();
  g.lanes.context[g.current] = {stack, frame, resume};
  return leave_at_barrier(g);
}
__attribute__((visibility("hidden"))) Context* pm_leave_in_simd(void* resume, void* stack, void* frame) {
  Group& g = waiting_group();
  g.lanes.context[g.current] = {stack, frame, resume};
  return leave_in_simd(g, resume);
}
// A lane that has ended never returns (the return would be mispredicted): its fiber starts afresh with the next group.
__attribute__((visibility("hidden"))) Context* pm_leave_at_end(void*, void*, void*) {
  Group& g = *current_group;
  const uint32_t lane = g.current;
  Context* next = successor(g, lane);
  start_fiber(g, lane);
  return next;
}
}
#else
static void swap(Group& g, uint32_t lane, Context* next) { swapcontext(&g.lanes.context[lane], next); }
extern "C" {
void pm_threadgroup_barrier(void) {
  Group& g = waiting_group();
  const uint32_t lane = g.current;
  swap(g, lane, leave_at_barrier(g));
}
void pm_simd_wait(pm_step) {
  Group& g = waiting_group();
  const uint32_t lane = g.current;
  swap(g, lane, leave_in_simd(g, __builtin_return_address(0)));
}
void pm_lane_ended(void) {
  Group& g = *current_group;
  const uint32_t lane = g.current;
  swap(g, lane, successor(g, lane));
}
}
#endif

extern "C" {
pm_exchange* pm_simd_begin(pm_step step, uint32_t point) {
  Group& g = waiting_group();
  g.lanes.point[g.current] = point;
  g.lanes.step[g.current] = step;
  return &g.exchange;
}
unsigned pm_index(void) { return current_group ? current_group->current : 0; }
}
