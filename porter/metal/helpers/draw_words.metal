// The random words of a counter, as ATen/core/PhiloxRNGEngine.h draws them: those of c10/metal/random.h are not
// independent, because it takes the lower words of products for the upper ones
inline uint4 draw_words(long seed, long index) {
  uint4 counter = uint4(0, 0, static_cast<ulong>(index) >> 32, static_cast<ulong>(index) & 0xffffffff);
  uint2 key = uint2(static_cast<ulong>(seed) >> 32, static_cast<ulong>(seed) & 0xffffffff);
  for (uint round = 0; round < 10; round++) {
    const ulong first = static_cast<ulong>(0xD2511F53) * counter.x;
    const ulong second = static_cast<ulong>(0xCD9E8D57) * counter.z;
    const uint2 upper = uint2(second >> 32, first >> 32) ^ counter.yw ^ key;
    counter = uint4(upper.x, second & 0xffffffff, upper.y, first & 0xffffffff);
    key += uint2(0x9E3779B9, 0xBB67AE85);
  }
  return counter;
}
