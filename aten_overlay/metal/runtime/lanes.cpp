// Shuffles that read from an inactive lane. "A thread must only read data from another active thread" (Metal Shading
// Language Specification, "SIMD-Group Functions"): what it reads is anything, which is a fault if results depend on it.
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
  uint32_t from, reader[3];
  Meeting at;
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

void place(const Thread& thread, uint32_t position[3]) {
  const uint32_t* size = thread.group->size;
  const uint32_t local[3] = {thread.lane % size[0], thread.lane / size[0] % size[1], thread.lane / size[0] / size[1]};
  for (int d = 0; d < 3; ++d) position[d] = thread.group->at[d] * thread.group->grid->group[d] + local[d];
}

void report_reading(const Job& job, Failure& failure, const Reading& r) {
  failure.status = PM_INACTIVE_LANE;
  snprintf(
      failure.text, sizeof(failure.text),
      "PTR273: kernel `%s` (%s:%u): thread (%u, %u, %u) reads from lane %u of its simdgroup, which is inactive or does not "
      "exist, and the results depend on it",
      job.launch->kernel->host_name, r.at.file ? r.at.file : "?", r.at.line, r.reader[0], r.reader[1], r.reader[2], r.from);
}
}  // namespace

Meeting next_meeting() { return meeting; }

int report_missing(const Job& job, Failure& failure, const Meeting& at, Thread waiting, Thread missing, bool ended) {
  uint32_t w[3], m[3];
  place(waiting, w);
  place(missing, m);
  snprintf(
      failure.text, sizeof(failure.text),
      "PTR274: kernel `%s` (%s:%u): thread (%u, %u, %u) of threadgroup (%u, %u, %u) waits at a barrier that thread (%u, %u, "
      "%u) does not reach%s",
      job.launch->kernel->host_name, at.file ? at.file : "?", at.line, w[0], w[1], w[2], waiting.group->at[0],
      waiting.group->at[1], waiting.group->at[2], m[0], m[1], m[2], ended ? ": it has ended" : "");
  return failure.status = PM_BARRIER_DIVERGENCE;
}

int report_apart(const Job& job, Failure& failure, const Meeting& at, Thread one, const Meeting& other_at, Thread other) {
  uint32_t a[3], b[3];
  place(one, a);
  place(other, b);
  snprintf(
      failure.text, sizeof(failure.text),
      "PTR275: kernel `%s` (%s:%u): thread (%u, %u, %u) of threadgroup (%u, %u, %u) waits at this barrier while thread (%u, "
      "%u, %u) waits at that of line %u",
      job.launch->kernel->host_name, at.file ? at.file : "?", at.line, a[0], a[1], a[2], one.group->at[0], one.group->at[1],
      one.group->at[2], b[0], b[1], b[2], other_at.line);
  return failure.status = PM_BARRIER_DIVERGENCE;
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
void pm_at_meeting(const char* file, uint32_t line, uint32_t number) { pm::meeting = {file, line, number}; }
uint32_t pm_inactive_lane(uint32_t from) {
  using namespace pm;
  if (!watching) return kOwn;
  if (!first.happened) {
    first = {true, from, {}, last_meeting()};
    locate_thread(first.reader);
  }
  return filling;
}
}
#pragma GCC visibility pop
