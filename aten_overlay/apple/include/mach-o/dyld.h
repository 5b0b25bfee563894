// The images of the process, of which there is one: the library that bundles the fork's compiled kernels.
#pragma once
#include <stdint.h>

struct mach_header_64;

static inline uint32_t _dyld_image_count(void) {
  return 1;
}

static inline const char* _dyld_get_image_name(uint32_t) {
  return "/libtorch_cpu.dylib";
}

static inline const struct mach_header_64* _dyld_get_image_header(uint32_t) {
  return nullptr;
}
