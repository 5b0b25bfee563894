/* Device memory of the stand-in: addresses that the host cannot touch, and the host's own view of the same bytes.
 *
 * A device address lies in a reservation without access rights, so host code that dereferences one crashes, as it would
 * on a machine whose GPU has its own memory. The bytes live in a second mapping at a fixed offset. Plain C, no torch. */
#ifndef PORTER_DEVICE_MEMORY_H
#define PORTER_DEVICE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A new allocation's device address, aligned to 256 bytes; its bytes are PORTER_FRESH_BYTE, so that a result nobody
 * wrote cannot look right. Null for a size of 0, and when the pool or the limit is exhausted. */
void* porter_device_alloc(size_t size);

/* Gives an allocation back; null is ignored. Aborts on an address that is not the start of a live allocation. */
void porter_device_free(void* address);

/* Calls `freed` with each address that is given back from now on. `freed` may call nothing of this header. */
void porter_memory_watch_frees(void (*freed)(const void* address));

/* Between a hold and its release, what is freed stays a live allocation: commands that have still to run use it. */
void porter_memory_hold(void);
void porter_memory_release(void);

/* 1 if the address lies in the device's range, allocated or not. */
int porter_is_device(const void* address);

/* Where the host finds the byte at a device address; any other address is returned as it is. */
void* porter_host_address(const void* address);

/* The device address of a byte that porter_host_address gave out; any other address is returned as it is. */
void* porter_device_address(const void* host_address);

/* A device address of its own for `size` bytes that the host finds at `host_address`: a second buffer over one memory.
 * porter_device_free ends it, and leaves the memory alone. Null where no live allocation holds these bytes. */
void* porter_device_alias(void* host_address, size_t size);

/* The start of the live allocation or alias that holds a device address, and its size in bytes; null when there is none. */
void* porter_allocation(const void* address, size_t* size);

struct porter_memory_use {
  uint64_t allocated;    /* bytes of live allocations, as asked for */
  uint64_t reserved;     /* bytes of the pool in use, freed but kept ones included */
  uint64_t limit;        /* most bytes that may be reserved */
  uint64_t capacity;     /* bytes of the pool */
  uint64_t allocations;  /* live allocations */
  uint64_t overruns;     /* freed allocations whose end had been written past */
};
struct porter_memory_use porter_memory_use(void);

/* A count of bytes over time: what it is now, the most it was, and all that was ever added and taken away. */
struct porter_memory_count {
  uint64_t current, peak, added, removed;
};
struct porter_memory_counts {
  struct porter_memory_count allocated, reserved;
};
struct porter_memory_counts porter_memory_counts(void);

/* Makes the most what it is now; forgets what was added and taken away. */
void porter_memory_reset_peaks(void);
void porter_memory_reset_totals(void);

/* Most bytes that may be reserved from now on. */
void porter_memory_limit(uint64_t bytes);

/* Gives the freed allocations of whole pages back to the system: they are not reserved any more. */
void porter_memory_trim(void);

/* Whether new memory is filled with PORTER_FRESH_BYTE, as it is unless a measurement asks for the allocator of torch. */
void porter_memory_fill(int fill);

/* From now on allocations of `threshold` bytes and more are sparse: addresses alone, in a reservation of their own that
 * keeps them far apart, whose pages exist once they are touched. They are not filled, not counted as reserved, and read
 * as zeros. 0 ends that for new ones. 0, or -1 if the system gives no such reservation. */
int porter_memory_sparse(uint64_t threshold);

/* A stretch of a sparse allocation that holds elements, in bytes from its start. */
struct porter_extent {
  uint64_t low, high;
};

/* Says which bytes of a live sparse allocation hold elements, in place of what was said before: nothing has a reason to
 * touch the others. -1 if there is no such allocation. */
int porter_memory_set_extents(void* address, const struct porter_extent* extents, size_t count);

/* What was said of the allocation that starts at `address`, and how many; null if nothing was. Valid until it is freed. */
const struct porter_extent* porter_memory_extents(const void* address, size_t* count);

/* Says that a launch may have written to the live allocation that holds a byte of the host's view; the name of the last
 * such kernel is kept until the allocation is freed. */
void porter_memory_note_writer(const void* host_address, const char* kernel);

/* The name of that kernel, in `kernel`, up to `size` bytes with the end; 0 if there was none. */
int porter_memory_writer(const void* host_address, char* kernel, size_t size);

/* Writes past the end of live and freed allocations found since the start: checks every live one now. */
uint64_t porter_memory_overruns(void);

#define PORTER_FRESH_BYTE 0xCB

#ifdef __cplusplus
}
#endif
#endif
