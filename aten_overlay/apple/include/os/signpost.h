// Source: Apple's documentation of os_signpost: nothing is recorded here.
#pragma once
#include <dispatch/dispatch.h>
#include <os/log.h>
#include <stdint.h>

typedef uint64_t os_signpost_id_t;
typedef uint8_t os_signpost_type_t;

enum { OS_SIGNPOST_EVENT, OS_SIGNPOST_INTERVAL_BEGIN, OS_SIGNPOST_INTERVAL_END };
#define OS_SIGNPOST_ID_NULL ((os_signpost_id_t)0)
