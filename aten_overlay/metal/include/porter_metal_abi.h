/* What a compiled Metal library is on the host: one shared object that exports `pm_library`.
 *
 * Plain C, so that the Metal API stand-in, a ctypes launcher and a test can all use it. Addresses in a launch are host
 * addresses that the kernel may dereference (for device memory: its host mapping, see aten_overlay/device/memory.h). */
#ifndef PORTER_METAL_ABI_H
#define PORTER_METAL_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PM_ABI_VERSION 5u
#define PM_MAX_BUFFERS 31u           /* argument table size of Metal's feature tables */
#define PM_MAX_THREADGROUP_ARGS 31u
#define PM_MAX_TEXTURES 128u
#define PM_MAX_SAMPLERS 16u
#define PM_FIRST_TEXTURE 32u         /* textures and samplers are bound like buffers, after them: [[texture(n)]] at this + n */
#define PM_FIRST_SAMPLER (PM_FIRST_TEXTURE + PM_MAX_TEXTURES)
#define PM_BINDINGS (PM_FIRST_SAMPLER + PM_MAX_SAMPLERS)
#define PM_MAX_THREADS_PER_GROUP 1024u
#define PM_MAX_THREADGROUP_BYTES 32768u
#define PM_SIMD_WIDTH 32u

enum pm_argument_kind {
  PM_BUFFER = 0,              /* device/constant pointer: `device T* x [[buffer(n)]]` */
  PM_CONSTANT_REFERENCE = 1,  /* reference: `constant T& x [[buffer(n)]]`; the buffer must hold element_size bytes */
  PM_THREADGROUP = 2,         /* `threadgroup T* x [[threadgroup(n)]]`; the launch gives its length in bytes */
  PM_TEXTURE = 3,             /* `texture2d<T> x [[texture(n)]]`: `index` is PM_FIRST_TEXTURE + n, bound is a struct pm_texture */
  PM_SAMPLER = 4              /* `sampler x [[sampler(n)]]`: `index` is PM_FIRST_SAMPLER + n, bound is a struct pm_sampler */
};

enum pm_value_type { PM_BOOL = 0, PM_CHAR, PM_UCHAR, PM_SHORT, PM_USHORT, PM_INT, PM_UINT, PM_LONG, PM_ULONG, PM_HALF, PM_FLOAT, PM_BFLOAT, PM_OTHER };

struct pm_argument {
  const char* name;       /* parameter name in the kernel's definition, "" when it has none */
  uint32_t kind;          /* enum pm_argument_kind */
  uint32_t index;         /* n of [[buffer(n)]] or [[threadgroup(n)]]; of a texture or sampler, where it is bound */
  uint32_t element_size;  /* sizeof of what is pointed or referred to; 1 for void */
  uint32_t alignment;     /* alignof of the same */
  uint32_t writable;      /* 1 for `device T*` / `device T&` without const */
  uint32_t type;          /* enum pm_value_type of an element, or of a vector's components; PM_OTHER for void and structures */
};

/* A function constant of the source. Values are fixed when the library is compiled (see build.py): this tells which exist. */
struct pm_function_constant {
  const char* name;
  uint32_t index;  /* n of [[function_constant(n)]] */
  uint32_t type;   /* enum pm_value_type */
  uint32_t defined; /* 1 if this library was compiled with a value for it */
};

/* A stretch of memory. `address` is what the kernel gets; the bytes it may touch are [base, base + length).
 * A null base means that the bytes were copied (setBytes), and begin at the address; otherwise it is the start of an
 * allocation, which Metal rounds up. With a zero length there is no byte that the kernel may touch. `extent` are the
 * bytes from `address` on that belong to the tensor bound there, 0 where that is not known; `type` is what it holds.
 * `left_over` is 1 for what an earlier launch's host code bound, and this launch's did not: a kernel may not touch it. */
struct pm_buffer {
  void* address;
  void* base;
  uint64_t length;
  uint64_t extent;
  uint64_t type; /* 1 + enum pm_value_type of the tensor's elements; 0 where that is not known */
  uint64_t left_over;
};

/* Bytes [low, high) from `base`, the base of a buffer, that hold elements. Of a buffer with extents, no others may be touched. */
struct pm_extent {
  const void* base;
  uint64_t low, high;
};

/* How a texel's components are stored; those that are normalized read as floats from 0 or -1 to 1. */
enum pm_texel { PM_UNORM8 = 0, PM_SNORM8, PM_UINT8, PM_SINT8, PM_UNORM16, PM_SNORM16, PM_UINT16, PM_SINT16, PM_HALF16, PM_UINT32, PM_SINT32, PM_FLOAT32 };

/* A texture without mipmaps: the texel at (x, y, z) of layer l starts at data + (x * channels) components + y * row_bytes +
 * (l * depth + z) * slice_bytes. Dimensions it does not have are 1. */
struct pm_texture {
  void* data;
  uint32_t width, height, depth, layers;
  uint32_t texel;    /* enum pm_texel */
  uint32_t channels; /* 1, 2 or 4 */
  uint64_t row_bytes, slice_bytes;
};

/* What `sampler` arguments are bound to: enumerators of metal::coord, filter, address, border_color and compare_func. */
struct pm_sampler {
  uint32_t coord, filter;
  uint32_t address[3];
  uint32_t border;
  uint32_t compare;
};

enum pm_launch_flags {
  PM_SHUFFLE_LANES = 1u,  /* run lanes and simdgroups in an order derived from `seed`: exposes missing barriers */
  PM_FORCE_FIBERS = 2u,   /* run a synchronizing kernel's lanes one by one even where lockstep is possible */
  PM_WITHOUT_CELLS = 4u   /* do not watch device memory byte by byte, which takes several times what a launch goes over */
};

enum pm_status {
  PM_OK = 0,
  PM_UNBOUND_ARGUMENT = 1,       /* a buffer or threadgroup argument has nothing bound */
  PM_BAD_THREADGROUP = 2,        /* zero or more than the limit of threads per threadgroup, or of its memory */
  PM_OUT_OF_BOUNDS = 3,          /* only in libraries compiled with bounds checks */
  PM_UNEXPECTED_SYNC = 4,        /* a kernel synchronized that was not known to: a defect of the front end */
  PM_BARRIER_DIVERGENCE = 5,     /* some threads of a group ended while others wait at a barrier (shuffle mode only) */
  PM_MISALIGNED = 6,             /* an argument's address is not aligned for its type */
  PM_BUFFER_TOO_SMALL = 7,       /* a reference argument's buffer holds fewer than element_size bytes */
  PM_STACK_OVERFLOW = 8,         /* a lane used more private memory than a fiber has */
  PM_DATA_RACE = 9,              /* from here on, only in libraries compiled with the sanitizer; `error` begins with a code */
  PM_UNINITIALIZED = 10,
  PM_OUT_OF_EXTENT = 11,
  PM_MISALIGNED_ACCESS = 12,
  PM_READ_ONLY = 13,
  PM_ENDLESS = 14,
  PM_PRIVATE = 15,
  PM_INACTIVE_LANE = 20,
  PM_INDEX_WIDTH = 21,           /* with plain bounds checks too */
  PM_OTHER_TYPE = 22,
  PM_OVERFLOW = 23,
  PM_NOT_FINITE = 24,
  PM_OPEN_RESULT = 25
};

struct pm_kernel;

struct pm_launch {
  const struct pm_kernel* kernel;
  const struct pm_buffer* buffers;   /* by [[buffer(n)]] index */
  uint32_t buffer_count;
  uint32_t threadgroup_count;
  const uint32_t* threadgroup_bytes; /* by [[threadgroup(n)]] index */
  uint32_t grid[3];                  /* threads per grid: need not be a multiple of `group` */
  uint32_t group[3];                 /* threads per threadgroup */
  const struct pm_buffer* resident;  /* memory reachable through pointers inside buffers (useResource) */
  uint32_t resident_count;
  uint32_t flags;                    /* enum pm_launch_flags */
  uint64_t seed;                     /* of the order of lanes, and of what the language leaves open */
  uint32_t max_threads;              /* OS threads to use; 0: as many as there are cores */
  uint32_t error_size;
  char* error;                       /* receives a sentence naming the kernel and argument when the result is not PM_OK */
  const struct pm_extent* extents;
  uint32_t extent_count;
  uint32_t window;                   /* of a larger grid only about so many threads run: at its start, its end, and on both
                                        sides of thread number 2^31 and 2^32; 0 runs all */
};

struct pm_kernel {
  const char* host_name;
  const struct pm_argument* arguments;
  uint32_t argument_count;
  uint32_t synchronizes;             /* 1: barriers or simdgroup functions */
  uint32_t static_threadgroup_bytes; /* `threadgroup` variables declared in the kernel */
  uint32_t max_threads_per_group;    /* [[max_total_threads_per_threadgroup(n)]], else PM_MAX_THREADS_PER_GROUP */
  int (*launch)(const struct pm_launch*); /* blocks until the grid has run; returns enum pm_status */
  const void* internal;
};

/* Bytes [low, high) of device memory that the threads of one launch accessed, and the line that did so first or last. */
struct pm_touch {
  uint64_t low, high;
  uint32_t reads, writes; /* 0 or 1 */
  const char* file;
  uint32_t line;
};

/* Of the last launch of this host thread, if the sanitizer watched its accesses: what it did to bytes [low, high), in order.
 * Stores up to `capacity` of them, and returns how many there are. A symbol of what libraries are linked with. */
typedef uint64_t (*pm_touched_fn)(uint64_t low, uint64_t high, struct pm_touch* touches, uint64_t capacity);

/* What `pm_launched`, a symbol of the same library, points to: called after each launch, on the thread that made it. */
typedef void (*pm_launched_fn)(const struct pm_launch*, int status);

struct pm_library {
  uint32_t abi_version;
  uint32_t kernel_count;
  const struct pm_kernel* kernels;
  uint32_t constant_count;
  const struct pm_function_constant* constants;
};

/* The one exported symbol: `const struct pm_library* pm_library(void)`. */
typedef const struct pm_library* (*pm_library_fn)(void);

#ifdef __cplusplus
}
#endif
#endif
