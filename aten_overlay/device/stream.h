/* The streams of the device: which one a thread uses, and what at::mps, a library above the device, does for one.
 * Plain C, no torch. A stream is a number: 0 is the default stream, 1 to PORTER_POOL_STREAMS those of the pool. */
#ifndef PORTER_DEVICE_STREAM_H
#define PORTER_DEVICE_STREAM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PORTER_POOL_STREAMS 32

struct porter_streams {
  void* (*command_buffer)(int64_t stream); /* its own encoder has been ended: the caller makes the next one */
  void* (*dispatch_queue)(int64_t stream);
  void (*commit)(int64_t stream);      /* the command buffer goes on with a new one behind it */
  void (*synchronize)(int64_t stream); /* as commit, and waits */
  void (*synchronize_all)(void);
  void (*open_encoder)(int64_t stream); /* leaves the stream's own encoder open, as an operator's kernel does */
  void (*end_encoder)(int64_t stream);  /* ends it, if it is open */
  void (*host_reads)(int64_t stream);   /* what the host copies from the device has been waited for */
  void (*check_read)(int64_t stream, const void* address, size_t size); /* raises where another queue may still write there */
};

/* Sets who answers; `streams` stays valid. Nobody does until then: no commands are encoded, and torch::mps raises PTR250. */
void porter_set_streams(const struct porter_streams* streams);

/* The stream of this thread. */
int64_t porter_current_stream(void);
void porter_set_current_stream(int64_t stream);

/* Leaves the encoder of this thread's stream open, as what launches a kernel on a Mac does: host code that makes a second
 * one without ending it fails there (kernels-community#1155). */
void porter_open_encoder(void);

/* Ends it, as what encodes a graph or a copy does. */
void porter_end_encoder(void);

/* The next stream of the pool, in turns. */
int64_t porter_next_stream(void);

#ifdef __cplusplus
}
#endif
#endif
