// The parts of the launcher: context switches, one threadgroup on fibers, threads of the host, and bounds checks.
#pragma once
#include "../include/pm/host/internal.h"
#include "../include/porter_metal_abi.h"

#include <setjmp.h>

// The memory that tracing.py watches, and the last store to it.
struct pm_watched {
  uint64_t low, high;
  const char* file;
  uint32_t line, thread[3], count;
};
extern "C" PM_EXPORT pm_watched pm_watch;
// Called after each launch, whoever made it; null for none.
extern "C" PM_EXPORT pm_launched_fn pm_launched;

namespace pm {
constexpr uint32_t kLanes = PM_MAX_THREADS_PER_GROUP;
constexpr size_t kStack = 64 * 1024;

// What one host thread needs to run the grid of one launch.
struct Job {
  const pm_launch* launch;
  const pm_entry* entry;
  void* buffers[PM_BINDINGS];
  pm_grid grid;
};

struct Failure {
  int status;
  char text[1024];
};

// Runs threadgroups [begin, end) of a synchronizing kernel. Returns a pm_status.
int run_on_fibers(const Job& job, uint64_t begin, uint64_t end, Failure& failure);
// The same for a kernel whose threadgroups can go through it as one.
int run_in_lockstep(const Job& job, uint64_t begin, uint64_t end);
// Threadgroup number `index` of a grid.
pm_group place_group(const pm_grid& grid, uint64_t index);
// Runs part [begin, end) of any other kernel: threads for `rows` entries, threadgroups for `groups` entries.
int run_in_loop(const Job& job, uint64_t begin, uint64_t end, Failure& failure);
extern thread_local jmp_buf* loop_escape;  // out of the loop that is running on this thread
// The one that this thread runs. A signal's handler reads it, and may not allocate memory for it.
extern thread_local const char* running_kernel __attribute__((tls_model("initial-exec")));

// Calls work(context, begin, end) for slices of [0, total) on up to `threads` host threads, and waits. The work may update
// memory atomically if `updates`.
void spread(
    uint64_t total, uint64_t grain, uint32_t threads, bool updates, void (*work)(void* context, uint64_t begin, uint64_t end), void* context);

// Memory for threadgroup arguments of one group; freed with the object.
struct ThreadgroupMemory {
  explicit ThreadgroupMemory(const Job& job);
  ~ThreadgroupMemory();
  void* addresses[PM_MAX_THREADGROUP_ARGS];
  void poison();

 private:
  const Job& job_;
};

// The bytes after its base that an argument may read. A reference to a vector of three reads the fourth component too: past
// the end of a tensor of three, but inside its allocation, of which Metal makes a multiple of 16 bytes.
inline uint64_t readable(const pm_argument& argument, const pm_buffer& buffer) {
  const bool rounded = buffer.base && argument.kind == PM_CONSTANT_REFERENCE;
  return rounded ? (buffer.length + 15) / 16 * 16 : buffer.length;
}

// Bounds of what the running kernel may touch, for libraries compiled with checks.
void begin_checks(const Job& job, void* const* threadgroup, Failure& failure, jmp_buf* escape);
void end_checks();
void allow(const void* low, size_t size);
// Whether these bytes hold an element of a buffer of which it is known where its elements lie.
bool holds_element(const pm_launch& launch, uintptr_t address, size_t size);
// The argument with an element a multiple of 2^32 elements or bytes away from these bytes, which themselves hold none: what
// computed the offset had 32 bits. `away` is the distance in bytes. Null if there is none.
const pm_argument* find_wrapped(const pm_launch& launch, uintptr_t address, size_t size, int64_t& away);
// Tells tracing.py of a store, if it is to what that watches.
void record_store(uintptr_t address, size_t size, const char* file, uint32_t line);
// Where in the grid the thread is that runs on a fiber now; false without one.
bool locate_thread(uint32_t position[3]);
}  // namespace pm
