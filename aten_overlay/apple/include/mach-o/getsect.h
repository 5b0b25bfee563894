// Sections of the image: every section asked for is the bundle of the fork's kernels.
#pragma once
#include <mach-o/dyld.h>

extern "C" uint8_t* porter_bundle(unsigned long* size);

static inline uint8_t* getsectiondata(const struct mach_header_64*, const char*, const char*, unsigned long* size) {
  return porter_bundle(size);
}
