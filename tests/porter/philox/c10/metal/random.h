// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): random words of a counter.
#pragma once
#include <metal_stdlib>

namespace c10 {
namespace metal {
namespace philox4 {

inline uint4 round_once(uint4 counter, uint2 key) {
  const ulong even = static_cast<ulong>(counter.x) * 0xD2511F53u;
  const ulong odd = static_cast<ulong>(counter.z) * 0xCD9E8D57u;
  return uint4(
      static_cast<uint>(odd >> 32) ^ counter.y ^ key.x,
      static_cast<uint>(odd),
      static_cast<uint>(even >> 32) ^ counter.w ^ key.y,
      static_cast<uint>(even));
}

inline uint4 rand(long seed, long index) {
  const ulong at = static_cast<ulong>(index);
  uint2 key = uint2(static_cast<uint>(seed), static_cast<uint>(static_cast<ulong>(seed) >> 32));
  uint4 counter = uint4(static_cast<uint>(at), static_cast<uint>(at >> 32), 0, 0);
  for (int i = 0; i < 10; i++) {
    counter = round_once(counter, key);
    key += uint2(0x9E3779B9u, 0xBB67AE85u);
  }
  return counter;
}

} // namespace philox4
} // namespace metal
} // namespace c10
