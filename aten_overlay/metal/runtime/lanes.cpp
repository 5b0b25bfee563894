// Shuffles that read from an inactive lane. Metal (SIMD-group functions of its specification) lets a thread read from active
// threads alone: what it reads from another is anything, which is a fault if results depend on it.
// A launch in which it happens runs again with other such values, and its results are compared.
#include "lanes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace pm {
namespace {
constexpr uint64_t kMostBytes = uint64_t(1) << 30;  // that are kept of a launch's memory; with more it runs once
enum Filling : uint32_t { kPattern, kZero, kOwn, kFillings };

thread_local Meeting meeting;
struct Reading {
  bool happened;
  uint32_t from;
  Meeting at;
  char thread[128];
};
thread_local bool watching = false;
thread_local uint32_t filling = kPattern;
thread_local Reading first;

// The memory that a launch may write, and a copy of it.
struct Memory {
  struct Part {
    char* bytes;
    char* copy;
    uint64_t size;
  };
  Part parts[2 * PM_MAX_BUFFERS];
  uint32_t count = 0;
  bool whole = true;  // whether all of it is kept

  explicit Memory(const pm_launch& launch) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < launch.kernel->argument_count; ++i) {
      const pm_argument& a = launch.kernel->arguments[i];
      if (a.writable && a.kind != PM_THREADGROUP && a.kind != PM_TEXTURE) add(launch.buffers[a.index], total);
    }
    for (uint32_t i = 0; i < launch.resident_count; ++i) add(launch.resident[i], total);
    whole = whole && launch.extent_count == 0;
  }
  ~Memory() {
    for (uint32_t i = 0; i < count; ++i) free(parts[i].copy);
  }
  void keep() {
    for (uint32_t i = 0; i < count; ++i) {
      if (!parts[i].copy) parts[i].copy = static_cast<char*>(malloc(parts[i].size));
      memcpy(parts[i].copy, parts[i].bytes, parts[i].size);
    }
  }
  void restore() const {
    for (uint32_t i = 0; i < count; ++i) memcpy(parts[i].bytes, parts[i].copy, parts[i].size);
  }
  bool same() const {
    for (uint32_t i = 0; i < count; ++i)
      if (memcmp(parts[i].bytes, parts[i].copy, parts[i].size)) return false;
    return true;
  }

 private:
  void add(const pm_buffer& buffer, uint64_t& total) {
    auto* bytes = static_cast<char*>(buffer.base ? buffer.base : buffer.address);
    for (uint32_t i = 0; i < count; ++i)
      if (parts[i].bytes == bytes) return;
    total += buffer.length;
    whole = whole && total <= kMostBytes && count < sizeof(parts) / sizeof(Part);
    if (whole && buffer.length) parts[count++] = {bytes, nullptr, buffer.length};
  }
};

void run_watched(uint32_t fill, void (*run)(void*), void* context) {
  filling = fill;
  first.happened = false;
  watching = true;
  run(context);
  watching = false;
}

void name_thread(char (&text)[128], Thread thread) {
  const uint32_t *size = thread.group->size, *at = thread.group->at, lane = thread.lane;
  snprintf(
      text, sizeof(text), "thread (%u, %u, %u) of threadgroup (%u, %u, %u)", lane % size[0], lane / size[0] % size[1],
      lane / size[0] / size[1], at[0], at[1], at[2]);
}

// What was found by `thread`, in the words that all of the sanitizer uses; `start` ends where the kernel's name comes.
int fail(const Job& job, Failure& failure, int status, const char* start, const char* found, const Meeting& at, const char* thread) {
  const pm_launch& launch = *job.launch;
  snprintf(
      failure.text, sizeof(failure.text), "%s%s` %s, at %s:%u, in %s (seed %llu)", start, launch.kernel->host_name,
      found, at.file ? at.file : "?", at.line, thread, static_cast<unsigned long long>(launch.seed));
  return failure.status = status;
}

void report_reading(const Job& job, Failure& failure, const Reading& r) {
  char found[160] = "reads from a lane that no simdgroup has, and its results depend on it";
  if (r.from < 32)
    snprintf(found, sizeof(found), "reads from lane %u of a simdgroup, which is inactive, and its results depend on it", r.from);
  fail(job, failure, PM_INACTIVE_LANE, "PTR273: kernel `", found, r.at, r.thread);
}
}  // namespace

Meeting next_meeting() { return meeting; }

int report_missing(const Job& job, Failure& failure, const Meeting& at, Thread waiting, Thread missing, bool ended) {
  char found[256], waits[128], misses[128];
  name_thread(waits, waiting);
  name_thread(misses, missing);
  snprintf(found, sizeof(found), "waits at a barrier that %s does not reach%s", misses, ended ? ": it has ended" : "");
  return fail(job, failure, PM_BARRIER_DIVERGENCE, "PTR274: kernel `", found, at, waits);
}

int report_apart(const Job& job, Failure& failure, const Meeting& at, Thread one, const Meeting& other_at, Thread other) {
  char found[256], waits[128], elsewhere[128];
  name_thread(waits, one);
  name_thread(elsewhere, other);
  snprintf(found, sizeof(found), "waits at a barrier while %s waits at another, of line %u", elsewhere, other_at.line);
  return fail(job, failure, PM_BARRIER_DIVERGENCE, "PTR275: kernel `", found, at, waits);
}

int report_turns(const Job& job, Failure& failure, const Meeting& at, Thread one, Thread other) {
  char found[256], waits[128], elsewhere[128];
  name_thread(waits, one);
  name_thread(elsewhere, other);
  snprintf(found, sizeof(found), "waits at a barrier while %s waits there in another turn of the loop", elsewhere);
  return fail(job, failure, PM_BARRIER_DIVERGENCE, "PTR295: kernel `", found, at, waits);
}

void run_with_open_lanes(const Job& job, Failure& failure, void (*run)(void*), void* context) {
  Memory before(*job.launch), after(*job.launch);
  if (!before.whole) return run(context);
  before.keep();
  run_watched(kPattern, run, context);
  if (!first.happened || failure.status) return;
  const Reading found = first;
  after.keep();
  // The first run once more: a kernel whose results vary by themselves says nothing.
  for (uint32_t fill = kPattern; fill < kFillings; ++fill) {
    before.restore();
    run_watched(fill, run, context);
    if (failure.status) return;
    if (after.same()) continue;
    if (fill != kPattern) report_reading(job, failure, found);
    return;
  }
}
}  // namespace pm

#pragma GCC visibility push(default)
extern "C" {
void pm_at_meeting(const char* file, uint32_t line, uint32_t number, uint32_t turn) {
  pm::meeting = {file, line, number, turn};
}
uint32_t pm_inactive_lane(uint32_t from) {
  using namespace pm;
  if (!watching) return kOwn;
  if (!first.happened) {
    first = {true, from, last_meeting(), {}};
    name_thread(first.thread, current_thread());
  }
  return filling;
}
}
#pragma GCC visibility pop
