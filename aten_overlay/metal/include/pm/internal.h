/* What generated code and the runtime share: not part of the ABI. */
#ifndef PM_INTERNAL_H
#define PM_INTERNAL_H
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

/* How a kernel is entered: one thread of a synchronising kernel, or many of one that is not. Exactly one is set.
 * rows: threads [begin, end) of the grid in linear order. groups: threadgroups [begin, end), likewise. */
struct pm_entry {
  void (*lane)(void* const* buffers, void* const* threadgroup, const struct pm_thread*);
  void (*rows)(void* const* buffers, const struct pm_grid*, uint64_t begin, uint64_t end);
  void (*groups)(void* const* buffers, void* const* threadgroup, const struct pm_grid*, uint64_t begin, uint64_t end);
  const char* image_begin; /* of the library: its constants may be read */
  const char* image_end;
  uint32_t flags; /* PM_CHECKED, PM_FLUSH, PM_REORDER: how the library was compiled */
};
enum pm_compiled { PM_CHECKED = 1, PM_FLUSH_DENORMALS = 2, PM_REORDER_REDUCTIONS = 4 };

/* One operation across a simdgroup: what each lane gave, and what they share. */
struct pm_slot {
  unsigned char data[32 * 32] __attribute__((aligned(64)));
  unsigned char result[32] __attribute__((aligned(32)));
  uint32_t mask;    /* lanes that take part */
  uint32_t done;    /* whether `result` is computed */
  uint32_t reorder; /* combine from the last lane to the first */
  uint32_t lane;    /* which lane is about to write its value */
};

/* A lane that waits saves what it still needs and no more: its caller keeps no registers across the call. Kernels and
 * runtime are always compiled by the same compiler, so they agree on this. */
#if defined(__x86_64__) && __has_attribute(preserve_none) && !defined(PM_UCONTEXT)
#define PM_SYNC __attribute__((convergent, preserve_none))
#else
#define PM_SYNC __attribute__((convergent))
#endif
#define PM_EXPORT __attribute__((visibility("default")))
#ifdef __cplusplus
extern "C" {
#endif
PM_EXPORT PM_SYNC void pm_threadgroup_barrier(void);
PM_EXPORT struct pm_slot* pm_simd_begin(void); /* where the current lane puts its value, before it waits */
PM_EXPORT PM_SYNC void pm_simd_wait(void);     /* for the lanes at the same call */
PM_EXPORT void pm_lane_ended(void);            /* the last thing a lane does */
PM_EXPORT unsigned pm_lane(void);
PM_EXPORT void pm_threadgroup_variable(const void* address, size_t size);
PM_EXPORT int pm_run(const void* launch);
#ifdef __cplusplus
}
#endif
#endif
