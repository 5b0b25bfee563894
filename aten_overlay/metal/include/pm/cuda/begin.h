// Every function of what follows is the device's: Metal has no other.
#pragma once
#define __shared__ __attribute__((shared))
#pragma clang force_cuda_host_device begin
// An access or a barrier in a function of the library has the line of the kernel that calls it.
#pragma clang attribute push(__attribute__((nodebug)), apply_to = hasType(functionType))
