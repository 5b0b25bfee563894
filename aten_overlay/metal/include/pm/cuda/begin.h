// Every function of what follows is the device's: Metal has no other.
#pragma once
#define __shared__ __attribute__((shared))
#pragma clang force_cuda_host_device begin
