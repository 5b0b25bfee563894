// Every function of what follows is the device's: Metal has no other.
#pragma once
// Aligned, so that vectors are loaded from an array of floats.
#ifndef PM_SHARED
#define PM_SHARED __attribute__((shared, aligned(16)))
#define PM_DYNAMIC extern PM_SHARED
#endif
#pragma clang force_cuda_host_device begin
