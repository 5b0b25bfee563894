// Source: Apple's documentation of Dispatch: the queues and data that PyTorch's MPS backend uses.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dispatch_queue_s* dispatch_queue_t;
typedef struct dispatch_queue_attr_s* dispatch_queue_attr_t;
typedef struct dispatch_data_s* dispatch_data_t;

#define DISPATCH_QUEUE_SERIAL ((dispatch_queue_attr_t)0)
#define DISPATCH_DATA_DESTRUCTOR_DEFAULT ((dispatch_block_t)0)

#ifdef __BLOCKS__
typedef void (^dispatch_block_t)(void);
void dispatch_sync(dispatch_queue_t queue, dispatch_block_t block);
void dispatch_async(dispatch_queue_t queue, dispatch_block_t block);
dispatch_data_t dispatch_data_create(const void* bytes, size_t size, dispatch_queue_t queue, dispatch_block_t destructor);
#endif

dispatch_queue_t dispatch_queue_create(const char* label, dispatch_queue_attr_t attributes);
dispatch_queue_t dispatch_get_main_queue(void);
void dispatch_release(void* object);

#ifdef __cplusplus
}
#endif

// Of macOS's <time.h>, which its Dispatch reads. Nanoseconds.
static inline uint64_t clock_gettime_nsec_np(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
