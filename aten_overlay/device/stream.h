/* What torch::mps asks of the stream of at::mps, which a library above the device holds. Plain C, no torch. */
#ifndef PORTER_DEVICE_STREAM_H
#define PORTER_DEVICE_STREAM_H

#ifdef __cplusplus
extern "C" {
#endif

struct porter_stream {
  void* (*command_buffer)(void); /* its own encoder has been ended: the caller makes the next one */
  void* (*dispatch_queue)(void);
  void (*commit)(void);      /* the command buffer goes on with a new one behind it */
  void (*synchronize)(void); /* as commit, and waits */
};

/* Sets who answers; `stream` stays valid. Nobody does until then, and torch::mps raises PTR250. */
void porter_set_stream(const struct porter_stream* stream);

#ifdef __cplusplus
}
#endif
#endif
