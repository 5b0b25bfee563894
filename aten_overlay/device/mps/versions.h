// The macOS level that the fork's code sees.
#pragma once
#include <cstdint>

namespace porter {

// The highest value of at::mps::MacOSVersion that counts as present.
uint32_t newest_version();

}  // namespace porter
