// A few host threads that wait for slices of a grid. One launch uses them at a time; a second one meanwhile runs alone.
#include "runtime.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

namespace pm {
namespace {
constexpr uint32_t kMost = 64;
struct Pool {
  pthread_mutex_t lock, user;
  pthread_cond_t wake, finished;
  uint32_t started, working, wanted;
  uint64_t generation, next, total, grain;
  void (*work)(void*, uint64_t, uint64_t);
  void* context;
};
Pool pool;

void drain(Pool& p) {
  for (;;) {
    pthread_mutex_lock(&p.lock);
    const uint64_t begin = p.next, end = begin + p.grain < p.total ? begin + p.grain : p.total;
    p.next = end;
    pthread_mutex_unlock(&p.lock);
    if (begin >= end) return;
    p.work(p.context, begin, end);
  }
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
    drain(p);
    pthread_mutex_lock(&p.lock);
    if (--p.working == 0) pthread_cond_signal(&p.finished);
    pthread_mutex_unlock(&p.lock);
  }
  return nullptr;
}

// A child of fork has none of its parent's threads.
void reset() {
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

void spread(uint64_t total, uint64_t grain, uint32_t threads, void (*work)(void*, uint64_t, uint64_t), void* context) {
  const auto cores = uint32_t(sysconf(_SC_NPROCESSORS_ONLN));
  uint32_t n = threads ? threads : cores;
  if (n > kMost) n = kMost;
  if (n < 2 || total <= grain || pthread_mutex_trylock(&pool.user) != 0) {
    work(context, 0, total);
    return;
  }
  pthread_mutex_lock(&pool.lock);
  start_workers(pool, n);
  pool.work = work;
  pool.context = context;
  pool.next = 0;
  pool.total = total;
  pool.grain = grain;
  pool.wanted = n - 1;
  ++pool.generation;
  pthread_cond_broadcast(&pool.wake);
  pthread_mutex_unlock(&pool.lock);
  drain(pool);
  pthread_mutex_lock(&pool.lock);
  pool.wanted = 0;
  while (pool.working) pthread_cond_wait(&pool.finished, &pool.lock);
  pthread_mutex_unlock(&pool.lock);
  pthread_mutex_unlock(&pool.user);
}
}  // namespace pm
