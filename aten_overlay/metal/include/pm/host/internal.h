/* What generated code and the runtime share: not part of the ABI. */
#ifndef PM_INTERNAL_H
#define PM_INTERNAL_H
#include "../../porter_metal_abi.h"

#include <stddef.h>
#include <stdint.h>

struct pm_grid {
  uint32_t grid[3];   /* threads per grid */
  uint32_t group[3];  /* threads per threadgroup */
  uint32_t groups[3]; /* threadgroups per grid */
};

struct pm_thread {
  uint32_t position[3]; /* in the grid */
  uint32_t local[3];    /* in the threadgroup */
  uint32_t group[3];    /* of the threadgroup, in the grid */
  uint32_t index;       /* linear, in the threadgroup */
  uint32_t size[3];     /* threads of this threadgroup: smaller at the edge of a non-uniform grid */
  const struct pm_grid* grid;
};

/* Where a threadgroup is. */
struct pm_group {
  const struct pm_grid* grid;
  uint32_t at[3];   /* in the grid */
  uint32_t size[3]; /* its threads: fewer at the edge of a non-uniform grid */
};

/* The lanes of a threadgroup that run in lockstep; arrays have one element per lane. */
struct pm_lanes {
  struct pm_exchange* exchange;
  const uint32_t* position[3]; /* thread_position_in_threadgroup */
  uint32_t* region;            /* where a lane is, while they are divergent */
  uint32_t count;
  uint32_t chunk; /* lanes that have something in common, if all of them have not: a simdgroup, or a row */
};

/* How a kernel is entered: one thread of a synchronizing kernel (and a threadgroup of it, where that is
 * understood: see lockstep.py), or many of one that is not.
 * rows: threads [begin, end) of the grid in linear order. groups: threadgroups [begin, end), likewise. */
struct pm_entry {
  void (*lane)(
      void* const* buffers, void* const* threadgroup, const struct pm_group*, uint32_t index, uint32_t x, uint32_t y, uint32_t z);
  void (*lockstep)(void* const* buffers, void* const* threadgroup, const struct pm_group*, struct pm_lanes*);
  void (*rows)(void* const* buffers, const struct pm_grid*, uint64_t begin, uint64_t end);
  void (*groups)(void* const* buffers, void* const* threadgroup, const struct pm_grid*, uint64_t begin, uint64_t end);
  const char* image_begin; /* of the library: its constants may be read */
  const char* image_end;
  uint32_t flags; /* enum pm_compiled: how the library was compiled; from bit PM_SANITIZER_SHIFT on, the sanitizer's checks */
  uint32_t narrow;         /* axes whose threads, or threadgroups from bit 3 on, the kernel places in 16 bits; from bit 6 on, counts them so */
  const unsigned* updates; /* to 1 if a kernel of the library updates memory of the device atomically (see updates.py) */
};
enum pm_compiled { PM_CHECKED = 1, PM_FLUSH_DENORMALS = 2, PM_REORDER_REDUCTIONS = 4, PM_SANITIZED = 8 };
#define PM_SANITIZER_SHIFT 8

/* An access to memory in the source, as the sanitizer's calls tell of it (see sanitizer/instrument.py). */
struct pm_site {
  const char* file;
  const char* variable; /* accessed, if it is a threadgroup variable or a constant of the program; else null */
  uint32_t line, size, align;
  int32_t argument;     /* accessed: its binding, or 1000 + that of a threadgroup argument; -1 if that is not known */
  uint32_t kind;        /* enum pm_access_kind */
  uint32_t extent;      /* bytes of the variable */
};
enum pm_access_kind { PM_STORES = 1, PM_ATOMIC = 2, PM_LOADS = 4, PM_IN_VARIABLE = 8 };

/* An operation on integers, as the sanitizer's calls tell of it (see sanitizer/widths.py). */
struct pm_width_site {
  const char* file;
  uint32_t line;
  uint32_t operation; /* which, of how many bits, to how many: see runtime/widths.cpp */
};

/* Operations across simdgroups: the inputs of the lanes, and the outputs once all have contributed. The value of thread i of a
 * threadgroup is PM_MAX_THREADS_PER_GROUP + i times its size (rounded up to a power of two) from the start: neighbors are
 * next to each other, and simdgroups that exchange values of different sizes have nothing in common. */
#define PM_MAX_VALUE 32
struct pm_exchange {
  unsigned char inputs[2 * PM_MAX_THREADS_PER_GROUP * PM_MAX_VALUE] __attribute__((aligned(64)));
  unsigned char outputs[2 * PM_MAX_THREADS_PER_GROUP * PM_MAX_VALUE] __attribute__((aligned(64)));
  float matrices[3][2 * PM_MAX_THREADS_PER_GROUP] __attribute__((aligned(64))); /* the two elements that each lane has of them */
  uint32_t mask[PM_MAX_THREADS_PER_GROUP / PM_SIMD_WIDTH]; /* of each simdgroup: the lanes that take part */
  uint32_t reorder;                                        /* combine from the last lane to the first */
};
/* Computes `outputs` from `inputs` for one simdgroup. */
typedef void (*pm_step)(struct pm_exchange*, uint32_t simd);

/* A lane that waits saves what it still needs and no more: its caller keeps no registers across the call. Kernels and
 * runtime are always compiled by the same compiler, so they agree on this. */
#if defined(__x86_64__) && __has_attribute(preserve_none) && !defined(PM_UCONTEXT)
#define PM_SYNC __attribute__((convergent, nomerge, preserve_none))
#else
#define PM_SYNC __attribute__((convergent, nomerge))
#endif
#define PM_EXPORT __attribute__((visibility("default")))
#ifdef __cplusplus
extern "C" {
#endif
PM_EXPORT PM_SYNC void pm_threadgroup_barrier(void);
/* One operation: give, then wait for the lanes at the same call. Both get the same step, or null. Where lanes wait at several
 * synchronization points the first goes on first: `point` counts them along the kernel (see synchronization.py). */
PM_EXPORT __attribute__((convergent, nomerge)) struct pm_exchange* pm_simd_begin(pm_step step, uint32_t point);
PM_EXPORT PM_SYNC void pm_simd_wait(pm_step step);
PM_EXPORT void pm_lane_ended(void); /* the last thing a lane does */
PM_EXPORT __attribute__((const)) unsigned pm_index(void); /* of the current thread in its threadgroup */
static inline unsigned pm_lane(void) { return pm_index() & 31; }
PM_EXPORT void pm_threadgroup_variable(const void* address, size_t size);
PM_EXPORT void pm_log(const char* subsystem, const char* category, const char* format, ...);
/* What a thread gets that reads from an inactive lane: bytes of a pattern (0), zeros (1), or what it gave itself. */
PM_EXPORT uint32_t pm_inactive_lane(uint32_t from);
PM_EXPORT void pm_note_barrier(uint32_t memory, uint32_t simdgroup);
PM_EXPORT void pm_note_fence(uint32_t memory);
PM_EXPORT int pm_run(const void* launch);
extern PM_EXPORT uint64_t pm_open_value; /* what the language leaves open: each launch makes it another (see undefined.py) */
extern PM_EXPORT uint32_t pm_alone; /* 1 while one thread runs kernels that update memory atomically, and no other does */
#ifdef __cplusplus
}
#endif
#endif
