// Bounds own(). A library compiled with them calls __asan_load*/__asan_store* for each access (clang's kernel address
// sanitizer, outlined), which are defined here: an access is right if it lies in memory the launch gave the kernel.
#include "sanitizer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pm_watched pm_watch;
extern "C" {
PM_EXPORT void pm_trace_line(const char* file, uint32_t line);
}

namespace pm {
namespace {
thread_local const char* traced_file = nullptr;
thread_local uint32_t traced_line = 0;

struct Range {
  uintptr_t low, high;
};
struct Checks {
  int count = 0, capacity = 0;
  Range* ranges = nullptr;
  const Job* job = nullptr;
  Failure* failure = nullptr;
  jmp_buf* escape = nullptr;
};
// On the heap: the runtime's thread-local block is static and has to stay small.
struct Holder {
  Checks* value = new Checks;
  ~Holder() {
    free(value->ranges);
    delete value;
  }
};
Checks& own() {
  thread_local Holder holder;
  return *holder.value;
}
thread_local bool active = false;

void allow_own_stack() {
  pthread_attr_t attributes;
  void* low = nullptr;
  size_t size = 0;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  allow(low, size);
}

// The argument whose memory is nearest below or above the address.
const pm_argument* nearest(uintptr_t address, long& offset) {
  const pm_launch& launch = *own().job->launch;
  const pm_argument* best = nullptr;
  uintptr_t distance = ~uintptr_t(0);
  for (uint32_t i = 0; i < launch.kernel->argument_count; ++i) {
    const pm_argument& a = launch.kernel->arguments[i];
    if (a.kind == PM_THREADGROUP) continue;
    const auto start = reinterpret_cast<uintptr_t>(launch.buffers[a.index].address);
    const uintptr_t away = address > start ? address - start : start - address;
    if (away < distance) {
      distance = away;
      best = &a;
      offset = long(address) - long(start);
    }
  }
  return best;
}

// Allows what holds elements of a buffer for which that is known; false for any other.
bool allow_extents(const pm_launch& launch, const pm_buffer& buffer) {
  const void* base = buffer.base ? buffer.base : buffer.address;
  bool found = false;
  for (uint32_t i = 0; i < launch.extent_count; ++i) {
    const pm_extent& e = launch.extents[i];
    if (e.base != base) continue;
    allow(static_cast<const char*>(base) + e.low, e.high - e.low);
    found = true;
  }
  return found;
}

void report_wrapped(uintptr_t address, size_t size, bool store) {
  const pm_launch& launch = *own().job->launch;
  int64_t away = 0;
  const pm_argument* a = find_wrapped(launch, address, size, away);
  if (!a) return;
  const auto start = reinterpret_cast<uintptr_t>(launch.buffers[a->index].address);
  snprintf(
      own().failure->text, sizeof(own().failure->text),
      "PTR270: kernel `%s` %s %zu bytes at byte %ld of argument `%s` (buffer %u), where it has no element; it has one at byte %ld: "
      "the offset was computed in 32 bits",
      launch.kernel->host_name, store ? "writes" : "reads", size, long(address - start), a->name, a->index,
      long(address - start) + long(away));
  active = false;
  longjmp(*own().escape, PM_INDEX_WIDTH);
}

[[noreturn]] void report(uintptr_t address, size_t size, bool store) {
  report_wrapped(address, size, store);
  long offset = 0;
  const pm_argument* a = nearest(address, offset);
  const pm_launch& launch = *own().job->launch;
  const unsigned long length = a ? launch.buffers[a->index].length : 0;
  snprintf(
      own().failure->text, sizeof(own().failure->text),
      "kernel `%s` %s %zu bytes out of bounds; nearest to argument `%s` (buffer %u, %lu bytes), at byte %ld",
      launch.kernel->host_name, store ? "writes" : "reads", size, a ? a->name : "?", a ? a->index : 0, length, offset);
  active = false;
  longjmp(*own().escape, PM_OUT_OF_BOUNDS);
}

void check(uintptr_t address, size_t size, bool store) {
  if (!active || size == 0) return;
  if (store && pm_watch.high) record_store(address, size, traced_file, traced_line);
  for (int i = 0; i < own().count; ++i)
    if (address >= own().ranges[i].low && address + size <= own().ranges[i].high) return;
  report(address, size, store);
}
}  // namespace

void record_store(uintptr_t address, size_t size, const char* file, uint32_t line) {
  if (address >= pm_watch.high || address + size <= pm_watch.low || !locate_thread(pm_watch.thread)) return;
  pm_watch.file = file;
  pm_watch.line = line;
  ++pm_watch.count;
}

void allow(const void* low, size_t size) {
  Checks& c = own();
  if (c.count == c.capacity) {
    const int capacity = c.capacity ? 2 * c.capacity : 256;
    auto* grown = static_cast<Range*>(realloc(c.ranges, capacity * sizeof(Range)));
    if (!grown) return;
    c.ranges = grown;
    c.capacity = capacity;
  }
  c.ranges[c.count++] = {reinterpret_cast<uintptr_t>(low), reinterpret_cast<uintptr_t>(low) + size};
}

void begin_checks(const Job& job, void* const* threadgroup, Failure& failure, jmp_buf* escape) {
  const pm_launch& launch = *job.launch;
  own().count = 0;
  own().job = &job;
  own().failure = &failure;
  own().escape = escape;
  for (uint32_t i = 0; i < launch.kernel->argument_count; ++i) {
    const pm_argument& a = launch.kernel->arguments[i];
    if (a.kind == PM_THREADGROUP) {
      allow(threadgroup[a.index], launch.threadgroup_bytes[a.index]);
    } else {
      const pm_buffer& b = launch.buffers[a.index];
      if (!allow_extents(launch, b)) allow(b.base ? b.base : b.address, readable(a, b));
      if (a.kind == PM_TEXTURE) {
        const auto& t = *static_cast<const pm_texture*>(b.address);
        allow(&t, sizeof(t));
        allow(t.data, t.slice_bytes * t.depth * t.layers);
      } else if (a.kind == PM_SAMPLER) {
        allow(b.address, sizeof(pm_sampler));
      }
    }
  }
  for (uint32_t i = 0; i < launch.resident_count; ++i) {
    const pm_buffer& b = launch.resident[i];
    allow(b.base ? b.base : b.address, b.length);
  }
  allow(job.entry->image_begin, job.entry->image_end - job.entry->image_begin);
  allow(&job, sizeof(job));
  allow(&pm_open_value, sizeof(pm_open_value));
  allow_own_stack();
  active = true;
}
void end_checks() { active = false; }
}  // namespace pm

using pm::check;

void pm_trace_line(const char* file, uint32_t line) {
  pm::traced_file = file;
  pm::traced_line = line;
}

#pragma GCC visibility push(default)
extern "C" {
void pm_threadgroup_variable(const void* address, size_t size) {
  if (pm::sanitizer::active()) pm::sanitizer::announce(address, size, "?");
  if (!pm::active) return;
  const auto low = reinterpret_cast<uintptr_t>(address);
  for (int i = 0; i < pm::own().count; ++i)
    if (pm::own().ranges[i].low == low && pm::own().ranges[i].high >= low + size) return;
  pm::allow(address, size);
}
#define PM_HOOK(n) \
  void __asan_load##n##_noabort(uintptr_t a) { check(a, n, false); } \
  void __asan_store##n##_noabort(uintptr_t a) { check(a, n, true); }
PM_HOOK(1) PM_HOOK(2) PM_HOOK(4) PM_HOOK(8) PM_HOOK(16)
void __asan_loadN_noabort(uintptr_t a, size_t n) { check(a, n, false); }
void __asan_storeN_noabort(uintptr_t a, size_t n) { check(a, n, true); }
void __asan_handle_no_return(void) {}
void* __asan_memcpy(void* to, const void* from, size_t n) {
  check(reinterpret_cast<uintptr_t>(from), n, false);
  check(reinterpret_cast<uintptr_t>(to), n, true);
  return memcpy(to, from, n);
}
void* __asan_memmove(void* to, const void* from, size_t n) {
  check(reinterpret_cast<uintptr_t>(from), n, false);
  check(reinterpret_cast<uintptr_t>(to), n, true);
  return memmove(to, from, n);
}
void* __asan_memset(void* to, int c, size_t n) {
  check(reinterpret_cast<uintptr_t>(to), n, true);
  return memset(to, c, n);
}
}
#pragma GCC visibility pop
