// What the lanes of a simdgroup combine of values of any type: 64-bit integers,
// which simd functions lack, are passed on as two words
template <typename T>
inline T swap_lanes(T value, ushort mask) {
  return ::metal::simd_shuffle_xor(value, mask);
}

inline long swap_lanes(long value, ushort mask) {
  return as_type<long>(::metal::simd_shuffle_xor(as_type<uint2>(value), mask));
}

template <typename T>
inline T simdgroup_sum(T value) {
  for (ushort mask = 16; mask > 0; mask /= 2) {
    value += swap_lanes(value, mask);
  }
  return value;
}

template <typename T>
inline T simdgroup_prod(T value) {
  for (ushort mask = 16; mask > 0; mask /= 2) {
    value *= swap_lanes(value, mask);
  }
  return value;
}

inline float2 simdgroup_prod(float2 value) {
  for (ushort mask = 16; mask > 0; mask /= 2) {
    const float2 other = swap_lanes(value, mask);
    value = float2(
        value.x * other.x - value.y * other.y,
        value.x * other.y + value.y * other.x);
  }
  return value;
}

template <typename T>
inline T simdgroup_max(T value) {
  for (ushort mask = 16; mask > 0; mask /= 2) {
    value = ::c10::metal::max(value, swap_lanes(value, mask));
  }
  return value;
}

template <typename T>
inline T simdgroup_min(T value) {
  for (ushort mask = 16; mask > 0; mask /= 2) {
    value = ::c10::metal::min(value, swap_lanes(value, mask));
  }
  return value;
}
