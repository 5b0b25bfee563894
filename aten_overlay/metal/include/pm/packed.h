// Packed vectors (MSL section 2.2.3): the same components and swizzles, aligned to one element.
#pragma once

namespace pm {
#define PM_ASSIGN(op) \
  PM_INLINE constexpr packed& operator op##=(const vector& o) { return *this = vector(*this) op o; }
#define PM_PACKED(N) \
  template <class T> struct packed<T, N> { \
    using vector = metal::vec<T, N>; \
    aligned_to<1> alignment_[0]; \
    union { \
      PM_NAMES_##N \
      T v_[N]; \
      PM_SWIZZLES(N) \
    }; \
    packed() = default; \
    packed(const packed&) = default; \
    PM_INLINE constexpr packed& operator=(const packed& o) { PM_MEMBER_##N(PM_COPY) return *this; } \
    PM_INLINE constexpr packed(const vector& o) : PM_LIST_##N(PM_RELOAD) {} \
    template <int M, int... I, class = enable_t<sizeof...(I) == N>> \
    PM_INLINE constexpr packed(const swizzle<T, M, I...>& s) : packed(vector(s)) {} \
    template <class V, class = enable_t<!__is_same(V, vector) && !is_number<V> && __is_constructible(vector, const V&) && \
                                        !__is_convertible_to(const V&, vector)>> \
    PM_INLINE explicit constexpr packed(const V& o) : packed(vector(o)) {} \
    template <class U, class = enable_t<is_number<U>>> PM_INLINE constexpr packed(U s) : PM_LIST_##N(PM_SPLAT) {} \
    template <class A, class B, class... C, class = enable_t<__is_constructible(vector, A, B, C...)>> \
    PM_INLINE constexpr packed(const A& a, const B& b, const C&... c) : packed(vector(a, b, c...)) {} \
    PM_INLINE constexpr operator vector() const { return vector(PM_LIST_##N(PM_OWN)); } \
    PM_INLINE constexpr T& operator[](int i) { return v_[i]; } \
    PM_INLINE constexpr const T& operator[](int i) const { return v_[i]; } \
    PM_INLINE constexpr vector operator-() const { return -vector(*this); } \
    PM_INLINE constexpr vector operator+() const { return *this; } \
    PM_INLINE constexpr vector operator~() const { return ~vector(*this); } \
    PM_INLINE constexpr metal::vec<bool, N> operator!() const { return !vector(*this); } \
    PM_ASSIGN(+) PM_ASSIGN(-) PM_ASSIGN(*) PM_ASSIGN(/) PM_ASSIGN(%) PM_ASSIGN(&) PM_ASSIGN(|) PM_ASSIGN(^) \
    PM_ASSIGN(<<) PM_ASSIGN(>>) \
  };
#define PM_OWN(c) c
#define PM_N 2
PM_PACKED(2)
#undef PM_N
#define PM_N 3
PM_PACKED(3)
#undef PM_N
#define PM_N 4
PM_PACKED(4)
#undef PM_N
#undef PM_OWN
#undef PM_PACKED
#undef PM_ASSIGN

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
