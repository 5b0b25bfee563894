// The sanitizer of a launch: which thread accesses which byte, and whether it may. One host thread runs such a launch.
#pragma once
#include "runtime.h"

namespace pm::sanitizer {
// The checks, by their bits in checks.py. kElementTypes comes with kBounds unless tensors may be views of bytes.
enum Check : uint32_t { kRaces = 1, kUninitialized = 2, kBounds = 4, kAlignment = 8, kReadOnly = 16, kPrivate = 32, kEndless = 64, kOverflow = 128, kNotFinite = 256, kElementTypes = 512, kArithmetic = 1024 };

// What is at one place of memory: who wrote it last, and who has read it since. Sites are offsets into the library's
// image, 0 for none; `stamp` is the launch's or, in threadgroup memory, the threadgroup's, and any other is long ago.
struct Cell {
  uint32_t stamp, writer_site, reader_site, writer_group, reader_group;
  uint16_t writer_lane, reader_lane;  // with flags
  uint16_t writer_epoch, writer_simd_epoch, reader_epoch, reader_simd_epoch;
};
static_assert(sizeof(Cell) == 32, "half a cache line");
// kFirst: nobody wrote there before.
enum : uint16_t { kLane = 1023, kSameValue = 1 << 15, kFirst = 1 << 14, kSeveralLanes = 1 << 15, kSeveralSimdgroups = 1 << 14, kSeveralGroups = 1 << 13 };

enum Space : uint8_t { kDevice, kThreadgroup, kTexture };

// A stretch of memory with its cells: one for each 1 << shift bytes.
struct Range {
  uintptr_t low, high;
  Space space;
  bool writable, whole;  // whole: all of it may be reached, not only what of it is bound
  uint8_t shift;
  Cell* cells;
  const char* name;   // of a threadgroup variable
  uint32_t stamp;
};

// What is bound to an argument, and the bytes of it that are the tensor's.
struct Bound {
  const pm_argument* argument;
  Range* range;
  uintptr_t low, high;
  bool other_type;  // than the pointer's, of the tensor's elements
  bool other_size;  // than the reference's, of a list of numbers or of bytes for a structure
  bool other_layout;  // than the structure's, of a list of numbers
};

struct Epoch {
  uint16_t group, simd;  // barriers that the lane has passed, of its threadgroup and of its simdgroup
};

// Two accesses of which nothing orders the second after the first, unless it turns out to store what was there.
struct Conflict {
  bool pending;
  const Range* range;
  const pm_site *site, *other_site;
  uintptr_t address;
  uint32_t size, lane, other_lane, other_group;
  bool several, other_writes;
  unsigned char before[64];
};

// A negative number that a thread made an unsigned one of 64 bits last.
struct Widened {
  int64_t value;
  const char* file;
  uint32_t line, group, lane;
};

// The last operation of a thread whose result Metal leaves open; the site's operation as in passes/undefined.py.
struct OpenResult {
  uint64_t a, b;
  const pm_width_site* site;
  uint32_t group, lane;
};

constexpr uint32_t kMostVariables = 256;  // in threadgroup memory, of one kernel
struct State {
  bool active, kept;
  uint32_t checks, group, stamp;
  const Job* job;  // while the launch runs
  const char* image;  // of its library: what sites are offsets into
  Failure* failure;
  jmp_buf* escape;
  int range_count, range_capacity;
  Range* ranges;  // room for all that a launch can reach: none moves while it runs
  Range* recent;  // the one that was found last
  Bound arguments[PM_BINDINGS], threadgroup[PM_MAX_THREADGROUP_ARGS];
  Epoch epochs[2][kLanes];  // by space
  bool fenced[2];
  Conflict conflict;
  Widened widened;
  OpenResult open_result;
  uint32_t atomics, atomics_lane;  // atomic accesses that one lane made in a row
  uint32_t repeats, last_lane;     // accesses of one byte by one lane and site in a row
  uintptr_t last_address;
  const pm_site* last_site;
  uintptr_t internal[3][2];
};
State& state();

// Memory for cells that lasts until the launch ends; null where there is none left.
Cell* take_cells(size_t count);
// Ends their use; whether they still hold what the launch made of them.
bool return_cells();
// How many of `count` elements nobody wrote in the last launch, and the first of them.
uint64_t count_unwritten(const Range& range, uintptr_t low, uint64_t count, uint64_t size, uint64_t* first);

// What the last launch did to the bytes [low, high) of a range: as pm_touched_fn, from number `count` on; how many it makes.
uint64_t list_touches(const State& s, const Range& range, uintptr_t low, uintptr_t high, pm_touch* touches, uint64_t count, uint64_t capacity);

// Records an access, and ends the launch at the first that races or reads what nothing wrote.
void record(State& s, Range& range, uintptr_t address, uint32_t size, const pm_site& site, uint32_t lane);
// Ends the launch if the last store changed what another thread accesses too.
void settle(State& s);

// Leaves the launch with a failure: `start`, which ends where the kernel's name comes, what was found, where, and who did it.
[[noreturn]] void fail(State& s, int status, const char* start, const pm_site& site, uint32_t lane, const char* format, ...)
    __attribute__((format(printf, 6, 7)));
struct Text {
  char text[256];
};
Text thread_name(const State& s, uint32_t group, uint32_t lane);
Text memory_name(const State& s, const Range* range, const pm_site& site, uintptr_t address);

// Around a launch, and at the start of each threadgroup.
void begin(const Job& job, void* const* threadgroup, Failure& failure, jmp_buf* escape, const void* internal, size_t size, const void* stacks, size_t stacks_size);
void start_group(uint32_t index);
void settle_last();
void end();
void forget();  // what the last launch of this thread did
void announce(const void* address, size_t size, const char* name);
bool active();
// Ends the launch if the running thread has such a result, which a line now depends on.
void fail_for_open_result(State& s, uint32_t line);
}  // namespace pm::sanitizer
