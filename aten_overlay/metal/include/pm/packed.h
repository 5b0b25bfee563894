// Packed vectors (MSL section 2.2.3): the same components, aligned to one element.
#pragma once

namespace pm {
template <class T, int N> struct packed {
  T v_[N];
  packed() = default;
  PM_INLINE constexpr packed(const metal::vec<T, N>& o) {
    for (int i = 0; i < N; ++i) v_[i] = o.v_[i];
  }
  template <class... A, class = enable_t<sizeof...(A) == N && (is_number<A> && ...)>>
  PM_INLINE constexpr packed(A... a) : v_{T(a)...} {}
  PM_INLINE constexpr operator metal::vec<T, N>() const {
    metal::vec<T, N> r;
    for (int i = 0; i < N; ++i) r.v_[i] = v_[i];
    return r;
  }
  PM_INLINE constexpr T& operator[](int i) { return v_[i]; }
  PM_INLINE constexpr const T& operator[](int i) const { return v_[i]; }
};
}  // namespace pm

namespace metal {
template <class T, int N> using packed_vec = pm::packed<T, N>;
}
#define PM_PACKED_NAMES(T) \
  using packed_##T##2 = pm::packed<T, 2>; \
  using packed_##T##3 = pm::packed<T, 3>; \
  using packed_##T##4 = pm::packed<T, 4>;
PM_PACKED_NAMES(bool) PM_PACKED_NAMES(char) PM_PACKED_NAMES(uchar) PM_PACKED_NAMES(short) PM_PACKED_NAMES(ushort)
PM_PACKED_NAMES(int) PM_PACKED_NAMES(uint) PM_PACKED_NAMES(long) PM_PACKED_NAMES(ulong) PM_PACKED_NAMES(half)
PM_PACKED_NAMES(bfloat) PM_PACKED_NAMES(float)
