// The macOS level that the fork's code is told of.
#pragma once
#include <cstdint>

namespace porter {

// The highest value of at::mps::MacOSVersion that counts as present.
uint32_t newest_version();

}  // namespace porter
