// Source: Apple's documentation of os_signpost: nothing is recorded here.
#pragma once
#include <os/log.h>
#include <stdint.h>
#include <time.h>

typedef uint64_t os_signpost_id_t;
typedef uint8_t os_signpost_type_t;

enum { OS_SIGNPOST_EVENT, OS_SIGNPOST_INTERVAL_BEGIN, OS_SIGNPOST_INTERVAL_END };
#define OS_SIGNPOST_ID_NULL ((os_signpost_id_t)0)

static inline uint64_t clock_gettime_nsec_np(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}
