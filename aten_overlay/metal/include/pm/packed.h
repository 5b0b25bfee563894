// Packed vectors (MSL section 2.2.3): the same components, by name and by index, aligned to one element.
#pragma once

namespace pm {
template <class T, int N> struct packed_components;
template <class T> struct packed_components<T, 2> {
  T x, y;
};
template <class T> struct packed_components<T, 3> {
  T x, y, z;
};
template <class T> struct packed_components<T, 4> {
  T x, y, z, w;
};

template <class T, int N> struct packed : packed_components<T, N> {
  packed() = default;
  PM_INLINE constexpr packed(const metal::vec<T, N>& o) : packed_components<T, N>{} {
    for (int i = 0; i < N; ++i) (*this)[i] = o.v_[i];
  }
  template <class... A, class = enable_t<sizeof...(A) == N && (is_number<A> && ...)>>
  PM_INLINE constexpr packed(A... a) : packed_components<T, N>{T(a)...} {}
  PM_INLINE constexpr operator metal::vec<T, N>() const {
    metal::vec<T, N> r;
    for (int i = 0; i < N; ++i) r.v_[i] = (*this)[i];
    return r;
  }
  PM_INLINE constexpr T& operator[](int i) { return (&this->x)[i]; }
  PM_INLINE constexpr const T& operator[](int i) const { return (&this->x)[i]; }
#define PM_ASSIGN(op) \
  PM_INLINE constexpr packed& operator op##=(const metal::vec<T, N>& o) { return *this = metal::vec<T, N>(*this) op o; }
  PM_ASSIGN(+) PM_ASSIGN(-) PM_ASSIGN(*) PM_ASSIGN(/) PM_ASSIGN(%) PM_ASSIGN(&) PM_ASSIGN(|) PM_ASSIGN(^)
#undef PM_ASSIGN
};

// Operators without a vector among their operands, which would convert the other: as if of vectors.
#define PM_PACKED_OPERATOR(op) \
  template <class T, int N> PM_INLINE constexpr auto operator op(const packed<T, N>& a, const packed<T, N>& b) { \
    return metal::vec<T, N>(a) op metal::vec<T, N>(b); \
  } \
  template <class T, int N, class A, class = enable_t<is_number<A>>> \
  PM_INLINE constexpr auto operator op(const packed<T, N>& a, A b) { \
    return metal::vec<T, N>(a) op metal::vec<T, N>(b); \
  } \
  template <class T, int N, class A, class = enable_t<is_number<A>>> \
  PM_INLINE constexpr auto operator op(A a, const packed<T, N>& b) { \
    return metal::vec<T, N>(a) op metal::vec<T, N>(b); \
  }
PM_PACKED_OPERATOR(+) PM_PACKED_OPERATOR(-) PM_PACKED_OPERATOR(*) PM_PACKED_OPERATOR(/) PM_PACKED_OPERATOR(%)
PM_PACKED_OPERATOR(&) PM_PACKED_OPERATOR(|) PM_PACKED_OPERATOR(^) PM_PACKED_OPERATOR(<<) PM_PACKED_OPERATOR(>>)
PM_PACKED_OPERATOR(==) PM_PACKED_OPERATOR(!=) PM_PACKED_OPERATOR(<) PM_PACKED_OPERATOR(>) PM_PACKED_OPERATOR(<=)
PM_PACKED_OPERATOR(>=)
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
#undef PM_PACKED_NAMES
#define PM_PACKED_NAMES(T) using ::packed_##T##2; using ::packed_##T##3; using ::packed_##T##4;
namespace metal {
PM_PACKED_NAMES(bool) PM_PACKED_NAMES(char) PM_PACKED_NAMES(uchar) PM_PACKED_NAMES(short) PM_PACKED_NAMES(ushort)
PM_PACKED_NAMES(int) PM_PACKED_NAMES(uint) PM_PACKED_NAMES(long) PM_PACKED_NAMES(ulong) PM_PACKED_NAMES(half)
PM_PACKED_NAMES(bfloat) PM_PACKED_NAMES(float)
}  // namespace metal
#undef PM_PACKED_NAMES
