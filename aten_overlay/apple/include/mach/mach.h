// Source: Apple's documentation of mach_absolute_time.
#pragma once
#include <mach/mach_time.h>
#include <mach/vm_page_size.h>
