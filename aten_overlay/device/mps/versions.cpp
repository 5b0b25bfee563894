#include "versions.h"

#include <atomic>
#include <limits>

static std::atomic<uint32_t> newest{std::numeric_limits<uint32_t>::max()};

uint32_t porter::newest_version() {
  return newest;
}

// Sets it, by the numbers of the fork's own enum.
extern "C" void porter_set_macos_version(uint32_t version) {
  newest = version;
}
