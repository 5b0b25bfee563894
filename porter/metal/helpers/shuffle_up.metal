// The value of a lane that stands before; Metal shuffles no 64-bit integers
template <typename T>
inline T shuffle_up(T value, ushort delta) {
  return ::metal::simd_shuffle_up(value, delta);
}

inline long shuffle_up(long value, ushort delta) {
  return as_type<long>(::metal::simd_shuffle_up(as_type<int2>(value), delta));
}
