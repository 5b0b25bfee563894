// A few host threads that wait for slices of a grid. One launch uses them at a time; a second one meanwhile runs alone.
#include "runtime.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

uint32_t pm_alone;

namespace pm {
namespace {
constexpr uint32_t kMost = 64;
// What is left of one thread's part of a grid, in a cache line of its own.
struct alignas(64) Share {
  uint64_t next, end;
};
struct Pool {
  pthread_mutex_t lock, user;
  pthread_cond_t wake, finished;
  uint32_t started, working, wanted, count;
  uint64_t generation, grain;
  Share shares[kMost];
  void (*work)(void*, uint64_t, uint64_t);
  void* context;
};
Pool pool;

// Held by launches of kernels that update memory atomically, together or by one alone.
pthread_rwlock_t updating;
// A launch of such a kernel that one thread runs, if no other runs now: until it has ended others wait, and its updates need
// no lock. All others update with one.
struct Updates {
  Updates(bool any, bool one_thread) : held(any) {
    if (!any) return;
    alone = one_thread && pthread_rwlock_trywrlock(&updating) == 0;
    if (alone) pm_alone = 1;
    else pthread_rwlock_rdlock(&updating);
  }
  ~Updates() {
    if (alone) pm_alone = 0;
    if (held) pthread_rwlock_unlock(&updating);
  }
  const bool held;
  bool alone = false;
};

void drain_share(Pool& p, Share& share) {
  for (;;) {
    const uint64_t begin = __atomic_fetch_add(&share.next, p.grain, __ATOMIC_RELAXED);
    if (begin >= share.end) return;
    const uint64_t end = begin + p.grain;
    p.work(p.context, begin, end < share.end ? end : share.end);
  }
}

// Each thread runs its own share first, the same part of the grid in every launch: memory that one kernel writes and
// the next reads stays in a core's cache. Then it helps the others.
void drain(Pool& p, uint32_t number) {
  for (uint32_t i = 0; i < p.count; ++i) drain_share(p, p.shares[(number + i) % p.count]);
}

void share_out(Pool& p, uint64_t total, uint32_t count) {
  p.count = count;
  uint64_t begin = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t end = begin + (total - begin) / (count - i);
    p.shares[i] = {begin, end};
    begin = end;
  }
}

// How many cores this thread may run on.
uint32_t count_cores() {
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return uint32_t(CPU_COUNT(&allowed));
#endif
  return uint32_t(sysconf(_SC_NPROCESSORS_ONLN));
}

void* worker(void* number_) {
  const auto number = reinterpret_cast<uintptr_t>(number_);
  Pool& p = pool;
  uint64_t seen = 0;
  for (;;) {
    pthread_mutex_lock(&p.lock);
    while (p.generation == seen || number >= p.wanted) {
      seen = p.generation;
      pthread_cond_wait(&p.wake, &p.lock);
    }
    seen = p.generation;
    ++p.working;
    pthread_mutex_unlock(&p.lock);
    drain(p, uint32_t(number) + 1);
    pthread_mutex_lock(&p.lock);
    if (--p.working == 0) pthread_cond_signal(&p.finished);
    pthread_mutex_unlock(&p.lock);
  }
  return nullptr;
}

// A child of fork has none of its parent's threads.
void reset() {
  pthread_rwlock_init(&updating, nullptr);
  pm_alone = 0;
  pthread_mutex_init(&pool.lock, nullptr);
  pthread_mutex_init(&pool.user, nullptr);
  pthread_cond_init(&pool.wake, nullptr);
  pthread_cond_init(&pool.finished, nullptr);
  pool.started = pool.working = pool.wanted = 0;
}

__attribute__((constructor)) void start() {
  reset();
  pthread_atfork(nullptr, nullptr, reset);
}

void start_workers(Pool& p, uint32_t threads) {
  while (p.started + 1 < threads) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    const int failed = pthread_create(&thread, &attributes, worker, reinterpret_cast<void*>(uintptr_t(p.started)));
    pthread_attr_destroy(&attributes);
    if (failed) return;
    ++p.started;
  }
}
}  // namespace

void spread(uint64_t total, uint64_t grain, uint32_t threads, bool updates, void (*work)(void*, uint64_t, uint64_t), void* context) {
  uint32_t n = threads ? threads : count_cores();
  if (n > kMost) n = kMost;
  const bool one_thread = n < 2 || total <= grain || pthread_mutex_trylock(&pool.user) != 0;
  const Updates update(updates, one_thread);
  if (one_thread) {
    work(context, 0, total);
    return;
  }
  pthread_mutex_lock(&pool.lock);
  start_workers(pool, n);
  pool.work = work;
  pool.context = context;
  pool.grain = grain;
  share_out(pool, total, n);
  pool.wanted = n - 1;
  ++pool.generation;
  pthread_cond_broadcast(&pool.wake);
  pthread_mutex_unlock(&pool.lock);
  drain(pool, 0);
  pthread_mutex_lock(&pool.lock);
  pool.wanted = 0;
  while (pool.working) pthread_cond_wait(&pool.finished, &pool.lock);
  pthread_mutex_unlock(&pool.lock);
  pthread_mutex_unlock(&pool.user);
}
}  // namespace pm
