// Checks a launch as Metal's API validation would, then runs it.
#include "lanes.h"
#include "sanitizer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace pm {
namespace {
// Flushes denormal results and operands to zero while it lives.
struct DenormalMode {
#if defined(__SSE2__)
  explicit DenormalMode(bool flush) : saved(_mm_getcsr()) {
    if (flush) _mm_setcsr(saved | 0x8040);
  }
  ~DenormalMode() { _mm_setcsr(saved); }
  unsigned saved;
#else
  explicit DenormalMode(bool) {}
#endif
};

int refuse(const pm_launch& l, int status, const char* format, const pm_argument& a) {
  if (l.error && l.error_size) {
    char what[256];
    snprintf(what, sizeof(what), format, a.name, a.kind == PM_THREADGROUP ? "threadgroup" : "buffer", a.index);
    snprintf(l.error, l.error_size, "kernel `%s`: %s", l.kernel->host_name, what);
  }
  return status;
}

int check_argument(const pm_launch& l, const pm_argument& a) {
  if (a.kind == PM_THREADGROUP) {
    const bool given = a.index < l.threadgroup_count && l.threadgroup_bytes[a.index] > 0;
    return given ? PM_OK : refuse(l, PM_UNBOUND_ARGUMENT, "argument `%s` has no threadgroup memory (%s %u)", a);
  }
  if (a.index >= l.buffer_count || !l.buffers[a.index].address)
    return refuse(l, PM_UNBOUND_ARGUMENT, "argument `%s` has nothing bound (%s %u)", a);
  const pm_buffer& b = l.buffers[a.index];
  if (reinterpret_cast<uintptr_t>(b.address) % a.alignment && a.kind == PM_CONSTANT_REFERENCE)
    return refuse(l, PM_MISALIGNED, "argument `%s` is not aligned for its type (%s %u)", a);
  const char* base = static_cast<const char*>(b.base ? b.base : b.address);
  const uint64_t offset = static_cast<const char*>(b.address) - base;
  if (a.kind == PM_CONSTANT_REFERENCE && b.length && offset + a.element_size > readable(a, b)) {
    char format[128];
    snprintf(
        format, sizeof(format), "argument `%%s` takes %u bytes; %llu are bound (%%s %%u)", a.element_size,
        static_cast<unsigned long long>(offset < b.length ? b.length - offset : 0));
    return refuse(l, PM_BUFFER_TOO_SMALL, format, a);
  }
  return PM_OK;
}

// A kernel may take positions in 16 bits: from thread or threadgroup 65536 on, each is taken for an earlier one. The
// count of them wraps one earlier.
int check_positions(const pm_launch& l) {
  const auto& entry = *static_cast<const pm_entry*>(l.kernel->internal);
  if (!(entry.flags & PM_SANITIZED) || !(entry.flags >> PM_SANITIZER_SHIFT & sanitizer::kOverflow)) return PM_OK;
  for (uint32_t bit = 0; bit < 12; ++bit) {
    const uint64_t threads = l.grid[bit % 3], count = bit % 6 < 3 ? threads : (threads + l.group[bit % 3] - 1) / l.group[bit % 3];
    if (!(entry.narrow >> bit & 1) || count <= (bit < 6 ? 65536 : 65535)) continue;
    if (l.error && l.error_size)
      snprintf(
          l.error, l.error_size, "PTR282: kernel `%s` takes %s in 16 bits, and the grid has %llu %s along %c: %s 65536 becomes 0",
          l.kernel->host_name, bit < 6 ? "positions" : "counts", static_cast<unsigned long long>(count), bit % 6 < 3 ? "threads" : "threadgroups",
          "xyz"[bit % 3], bit < 6 ? "number" : "a count of");
    return PM_OVERFLOW;
  }
  return PM_OK;
}

int check_launch(const pm_launch& l) {
  uint64_t threads = 1;
  for (uint32_t n : l.group) threads *= n;
  if (threads == 0 || threads > l.kernel->max_threads_per_group) {
    if (l.error && l.error_size)
      snprintf(
          l.error, l.error_size, "kernel `%s`: a threadgroup of %llu threads; the limit is %u", l.kernel->host_name,
          static_cast<unsigned long long>(threads), l.kernel->max_threads_per_group);
    return PM_BAD_THREADGROUP;
  }
  uint64_t shared = l.kernel->static_threadgroup_bytes;
  for (uint32_t i = 0; i < l.threadgroup_count; ++i) shared += l.threadgroup_bytes[i];
  if (shared > PM_MAX_THREADGROUP_BYTES) {
    if (l.error && l.error_size)
      snprintf(
          l.error, l.error_size, "kernel `%s`: %llu bytes of threadgroup memory; the limit is %u", l.kernel->host_name,
          static_cast<unsigned long long>(shared), PM_MAX_THREADGROUP_BYTES);
    return PM_BAD_THREADGROUP;
  }
  for (uint32_t i = 0; i < l.kernel->argument_count; ++i)
    if (const int status = check_argument(l, l.kernel->arguments[i])) return status;
  return check_positions(l);
}

struct Running {
  Job job;
  Failure failure;
  uint64_t first;  // of the part of the grid that slices are counted from
};

int run_part(const Job& job, uint64_t begin, uint64_t end, Failure& failure) {
  const bool one_by_one = job.launch->flags & (PM_SHUFFLE_LANES | PM_FORCE_FIBERS);
  if (!job.entry->lane) return run_in_loop(job, begin, end, failure);
  if (job.entry->lockstep && !one_by_one) return run_in_lockstep(job, begin, end);
  return run_on_fibers(job, begin, end, failure);
}

void slice(void* context, uint64_t begin, uint64_t end) {
  auto& running = *static_cast<Running*>(context);
  if (__atomic_load_n(&running.failure.status, __ATOMIC_RELAXED)) return;
  DenormalMode mode(running.job.entry->flags & PM_FLUSH_DENORMALS);
  running_kernel = running.job.launch->kernel->host_name;
  Failure failure{};
  const int status = run_part(running.job, running.first + begin, running.first + end, failure);
  running_kernel = nullptr;
  int none = PM_OK;
  if (status && __atomic_compare_exchange_n(&running.failure.status, &none, status, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    memcpy(running.failure.text, failure.text, sizeof(failure.text));
}

// Runs a grid of `total` threads or threadgroups, or, of one that is larger than the launch's window, parts of it.
void run_windows(Running& running, uint64_t total, uint64_t per_unit, uint64_t grain) {
  const pm_launch& l = *running.job.launch;
  const uint64_t width = l.window / per_unit + 1;
  const uint32_t threads = running.job.entry->flags & PM_SANITIZED ? 1 : l.max_threads;
  const bool updates = *running.job.entry->updates;
  if (!l.window || total <= 8 * width) return spread(total, grain, threads, updates, slice, &running);
  const uint64_t middles[] = {0, (uint64_t(1) << 31) / per_unit, (uint64_t(1) << 32) / per_unit, total};
  uint64_t done = 0;
  for (const uint64_t middle : middles) {
    const uint64_t low = middle < width ? 0 : middle - width, end = middle + width < total ? middle + width : total;
    running.first = low > done ? low : done;
    if (running.first >= end) continue;
    spread(end - running.first, grain, threads, updates, slice, &running);
    done = end;
  }
}

struct Grid {
  Running* running;
  uint64_t total, per_unit, grain;
};
void run_grid(void* context) {
  const auto& grid = *static_cast<Grid*>(context);
  grid.running->first = 0;
  run_windows(*grid.running, grid.total, grid.per_unit, grid.grain);
}

// A number of which every bit depends on every bit of the seed.
uint64_t scattered(uint64_t seed) {
  seed = (seed + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  seed = (seed ^ seed >> 29) * 0x94d049bb133111ebu;
  return seed ^ seed >> 32;
}

const char* explain(int status) {
  switch (status) {
    case PM_UNEXPECTED_SYNC: return "it synchronizes, which the front end did not detect";
    case PM_BARRIER_DIVERGENCE: return "some threads of a threadgroup ended while others wait at a barrier";
    default: return "the launch failed";
  }
}
}  // namespace

ThreadgroupMemory::ThreadgroupMemory(const Job& job) : addresses{}, job_(job) {
  for (uint32_t i = 0; i < job.launch->threadgroup_count; ++i) {
    const size_t bytes = (job.launch->threadgroup_bytes[i] + 63) & ~size_t(63);
    addresses[i] = bytes ? aligned_alloc(64, bytes) : nullptr;
  }
}
ThreadgroupMemory::~ThreadgroupMemory() {
  for (void* address : addresses) free(address);
}
// Contents are undefined at the start of a group: with shuffled lanes they are NaN, so that a read before a write shows.
void ThreadgroupMemory::poison() {
  if (!(job_.launch->flags & PM_SHUFFLE_LANES)) return;
  for (uint32_t i = 0; i < job_.launch->threadgroup_count; ++i)
    if (addresses[i]) memset(addresses[i], 0xff, job_.launch->threadgroup_bytes[i]);
}

pm_group place_group(const pm_grid& grid, uint64_t index) {
  const uint64_t at[3] = {index % grid.groups[0], index / grid.groups[0] % grid.groups[1], index / grid.groups[0] / grid.groups[1]};
  pm_group group{&grid, {}, {}};
  for (int d = 0; d < 3; ++d) {
    group.at[d] = uint32_t(at[d]);
    const uint32_t left = grid.grid[d] - group.at[d] * grid.group[d];
    group.size[d] = left < grid.group[d] ? left : grid.group[d];
  }
  return group;
}

int run_in_loop(const Job& job, uint64_t begin, uint64_t end, Failure& failure) {
  ThreadgroupMemory memory(job);
  jmp_buf escape;
  const int status = setjmp(escape);
  loop_escape = &escape;
  if (status == 0) {
    if (job.entry->flags & PM_CHECKED) begin_checks(job, memory.addresses, failure, &escape);
    if (job.entry->rows) job.entry->rows(job.buffers, &job.grid, begin, end);
    else job.entry->groups(job.buffers, memory.addresses, &job.grid, begin, end);
  }
  end_checks();
  return failure.status = status;
}
}  // namespace pm

using namespace pm;

uint64_t pm_open_value;

extern "C" void pm_log(const char* subsystem, const char* category, const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  fprintf(stderr, "%s%s%s%s%s\n", subsystem, *subsystem ? " " : "", category, *category ? ": " : "", text);
}

static int run(const pm_launch& l) {
  if (l.error && l.error_size) l.error[0] = 0;
  if (const int status = check_launch(l)) return status;
  Running running{};
  Job& job = running.job;
  job.launch = &l;
  job.entry = static_cast<const pm_entry*>(l.kernel->internal);
  for (uint32_t i = 0; i < l.buffer_count && i < PM_BINDINGS; ++i) job.buffers[i] = l.buffers[i].address;
  uint64_t threads = 1, groups = 1;
  for (int d = 0; d < 3; ++d) {
    job.grid.grid[d] = l.grid[d];
    job.grid.group[d] = l.group[d];
    job.grid.groups[d] = (l.grid[d] + l.group[d] - 1) / l.group[d];
    threads *= l.grid[d];
    groups *= job.grid.groups[d];
  }
  if (threads == 0) return PM_OK;
  sanitizer::forget();
  __atomic_store_n(&pm_open_value, scattered(l.seed), __ATOMIC_RELAXED);
  const uint64_t total = job.entry->rows ? threads : groups;
  const uint64_t per_group = uint64_t(l.group[0]) * l.group[1] * l.group[2];
  const uint64_t grain = job.entry->rows ? 65536 : job.entry->groups ? 65536 / per_group + 1 : 4096 / per_group + 1;
  Grid whole{&running, total, job.entry->rows ? 1 : per_group, grain};
  if (job.entry->lane && job.entry->flags & kLaneChecks) run_with_open_lanes(job, running.failure, run_grid, &whole);
  else run_grid(&whole);
  if (running.failure.status && l.error && l.error_size)
    snprintf(
        l.error, l.error_size, running.failure.text[0] ? "%s" : "kernel `%s`: %s",
        running.failure.text[0] ? running.failure.text : l.kernel->host_name, explain(running.failure.status));
  return running.failure.status;
}

pm_launched_fn pm_launched;

extern "C" int pm_run(const void* launch) {
  const auto& l = *static_cast<const pm_launch*>(launch);
  const int status = run(l);
  if (const pm_launched_fn tell = __atomic_load_n(&pm_launched, __ATOMIC_ACQUIRE)) tell(&l, status);
  return status;
}
