/* C interface of the Metal API stand-in: who compiles, what was launched. */
#ifndef PORTER_METAL_H
#define PORTER_METAL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes Metal source (`bundled` 0) or the bundle's text (1), and answers its kernels' names, one on a line.
 * The result is a number for the library; -1 after porter_set_error(). */
typedef int (*porter_open_library)(const char* source, int bundled);

/* Compiles one kernel with function constants ("index=value" or "name=value", one on a line) and answers the path of
 * a shared object as porter_metal_abi.h describes. 0, or 1 if its launches are to be announced, or -1 after
 * porter_set_error(). */
typedef int (*porter_compile_kernel)(int library, const char* name, const char* constants);

void porter_set_compiler(porter_open_library open, porter_compile_kernel compile);

/* Hears that a library's kernel is encoded in threadgroups of x * y * z threads. 0, or -1 after porter_set_error(). */
typedef int (*porter_hear_launch)(int library, const char* kernel, size_t x, size_t y, size_t z);

/* Who hears of launches that are to be announced, from now on, on the thread that encodes them. */
void porter_set_listener(porter_hear_launch hear);

/* The answer of a compiler's function, on its thread, before it returns. */
void porter_answer(const char* text);

/* What a section of the image holds: the text that opens the fork's bundled kernels. */
void porter_set_bundle(const char* text);

/* How kernels run from now on: flags of pm_launch, the seed of its lane order, which every launch moves on, and OS
 * threads (0: one to a core). */
void porter_launch_options(uint32_t flags, uint64_t seed, uint32_t threads);

/* From now on, launches that Metal may run at once and that touch the same bytes are an error, where the sanitizer watches
 * their accesses: PTR269; so is a stream's encoder that is taken outside of its queue: PTR278. */
void porter_watch_order(void);
int porter_order_is_watched(void);

/* From now on, what a launch may write to is noted with its kernel's name: see porter_memory_note_writer. */
void porter_watch_writers(void);

/* Whether this thread runs a block of this dispatch_queue_t. */
int porter_runs_on(struct dispatch_queue_s* queue);

/* A number of the outermost block of a dispatch queue that this thread runs, which no other block has; 0 for none. */
uint64_t porter_running_block(void);

/* From now on, grids much larger than this run in part only: see pm_launch. 0 runs them whole. */
void porter_launch_window(uint32_t threads);

/* Finds the bytes of a buffer, from `offset` on, that are the tensor's which is bound there; 0 where that is not known. A
 * launch binds `count` offsets of that buffer. `type` receives what pm_buffer says of the tensor's type. */
typedef size_t (*porter_find_extent)(const void* buffer, size_t offset, const size_t* offsets, size_t count, uint64_t* type);

/* Who is asked at each launch from now on; without one, a whole buffer is bound. */
void porter_set_extents(porter_find_extent find);

/* Commands of an MTLCommandQueue run when somebody waits for their command buffer, or for a later one of the queue, and what
 * fails is thrown there; at `commit` where they have a handler or signal an event. Nothing orders them against those of other
 * queues but events. From now on, this queue runs them at `commit`, and its command buffers keep what fails as their error. */
void porter_keep_errors(void* queue);

/* From now on the commands of this queue run when they are encoded, and what fails is thrown there. */
void porter_run_at_once(void* queue);

/* Runs what has been encoded into this MTLCommandBuffer: what the host does next comes after it. Throws PTR122. */
void porter_run_encoded(void* buffer);

/* Where order is watched: `size` bytes are read behind the commands of this MTLCommandBuffer's queue. Throws PTR269 where a
 * command of another queue writes them, and nobody has waited for it. */
void porter_check_read(void* buffer, const void* address, size_t size);

/* Runs what was committed and nobody has waited for, at the end of a program, and prints what fails to stderr. */
void porter_run_late(void);

/* The same as porter_run_encoded for C: nonzero after porter_set_error(). */
int porter_finish_encoded(void* buffer);

/* Asks whether a launch may go on for whose kernel fewer bytes are bound than a constant argument takes: nonzero if so.
 * The rest is then bytes 0xa5. `function` is the name, as C++ spells it, of the innermost function that launches the
 * kernel and that its library exports; empty if there is none below code of other libraries. */
typedef int (*porter_allow_short)(
    const char* kernel, const char* argument, uint32_t index, uint32_t takes, size_t bound, const char* function);

/* Who is asked from now on; without one, Metal's API validation refuses each such launch. */
void porter_set_short(porter_allow_short allow);

/* Hears of each launch that is refused before its kernel runs, or after, for what it did in the order of others. */
struct pm_kernel;
typedef void (*porter_hear_refusal)(const struct pm_kernel* kernel, const char* text);
void porter_hear_refusals(porter_hear_refusal hear);

/* The file of the innermost library on this thread's stack that is neither porter's nor torch's nor Python's, as of the
 * extension that has a kernel compiled; empty for none. Returns the length of the whole. */
size_t porter_find_caller(char* text, size_t size);

/* Launches since the start: lines of "host_name count". Returns the size that the whole text needs. */
size_t porter_kernel_calls(char* text, size_t size);

/* From now on this signal makes the process print "kernel `host_name` was running" to stderr, if one does. */
void porter_print_kernel_on(int signal);

#ifdef __cplusplus
}
#endif
#endif
