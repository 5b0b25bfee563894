// Every function of what follows is the device's: Metal has no other.
#pragma once
// Aligned, so that vectors are loaded from an array of floats.
#ifndef PM_SHARED
#define PM_SHARED __attribute__((shared, aligned(16)))
#define PM_DYNAMIC extern PM_SHARED
#endif
#pragma clang force_cuda_host_device begin
// An access or a barrier in a function of the library has the line of the kernel that calls it.
#pragma clang attribute push(__attribute__((nodebug)), apply_to = hasType(functionType))
