// Vector types (MSL section 2.2): components, constructors, swizzles, operators.
#pragma once
#include "swizzles.h"

namespace pm {
template <class T, int N> struct packed;
// Gives a vector its alignment. Not by alignas, which would let the compiler rely on it: kernels read vectors from addresses
// that are aligned for their components alone, as Apple's GPUs do without complaint (see -fmax-type-align in build.py).
template <unsigned long Bytes> using aligned_to = unsigned char __attribute__((ext_vector_type(Bytes)));
// A swizzle is a member that shares a vector's storage, N elements. It has no friend operators: those made every lookup slow.
template <class T, int N, int... I> struct swizzle {
  T v_[N];
  static constexpr int size = sizeof...(I);
  using value = metal::vec<T, size>;
  swizzle() = default;
  swizzle(const swizzle&) = default;
  PM_INLINE constexpr operator value() const { return value(v_[I]...); }
  PM_INLINE constexpr swizzle& operator=(const value& o) {
    int j = 0;
    ((v_[I] = o.v_[j++]), ...);
    return *this;
  }
  PM_INLINE constexpr swizzle& operator=(const swizzle& o) { return *this = value(o); }
  PM_INLINE constexpr value operator-() const { return -value(*this); }
  PM_INLINE constexpr value operator+() const { return value(*this); }
  PM_INLINE constexpr value operator~() const { return ~value(*this); }
  PM_INLINE constexpr metal::vec<bool, size> operator!() const { return !value(*this); }
  PM_INLINE constexpr T operator[](int i) const { return value(*this).v_[i]; }
  PM_INLINE constexpr swizzle& operator++() { return *this = value(*this) + value(1); }
  PM_INLINE constexpr swizzle& operator--() { return *this = value(*this) - value(1); }
  PM_INLINE constexpr value operator++(int) { return ++*this - value(1); }
  PM_INLINE constexpr value operator--(int) { return --*this + value(1); }
#define PM_ASSIGN(op) \
  PM_INLINE constexpr swizzle& operator op##=(const value& o) { return *this = value(*this) op o; }
  PM_ASSIGN(+) PM_ASSIGN(-) PM_ASSIGN(*) PM_ASSIGN(/) PM_ASSIGN(%) PM_ASSIGN(&) PM_ASSIGN(|) PM_ASSIGN(^) PM_ASSIGN(<<)
  PM_ASSIGN(>>)
#undef PM_ASSIGN
};
template <class T> inline constexpr bool stands_for_vector = false;  // without being one
template <class T, int N, int... I> inline constexpr bool stands_for_vector<swizzle<T, N, I...>> = true;
template <class T, int N> inline constexpr bool stands_for_vector<packed<T, N>> = true;
template <class T> PM_INLINE constexpr const T& plain(const T& v) { return v; }
template <class T, int N, int... I> PM_INLINE constexpr auto plain(const swizzle<T, N, I...>& v) {
  return metal::vec<T, sizeof...(I)>(v);
}
template <class T, int N> PM_INLINE constexpr metal::vec<T, N> plain(const packed<T, N>& v) { return v; }
template <class T, int N, int... I> struct element<swizzle<T, N, I...>> {
  using type = T;
  static constexpr int size = sizeof...(I);
};

// Of the elements of vectors, which have no integer promotion (MSL section 3.1): a shift's amount is taken modulo their own
// width, and their own least value divided by -1 is left open, as that of int is (see undefined.py).
template <class T> inline constexpr bool is_narrow = false;
template <> inline constexpr bool is_narrow<char> = true;
template <> inline constexpr bool is_narrow<signed char> = true;
template <> inline constexpr bool is_narrow<short> = true;
template <class T> PM_INLINE constexpr bool overflows(T a, T b) {
  if constexpr (is_narrow<T>) return b == T(-1) && a == T(1 << (8 * sizeof(T) - 1));
  else return false;
}
template <class T> PM_INLINE constexpr T quotient(T a, T b) {
  return overflows(a, b) ? T((-2147483647 - 1) / int(b)) : T(a / b);
}
template <class T> PM_INLINE constexpr T remainder(T a, T b) {
  return overflows(a, b) ? T((-2147483647 - 1) % int(b)) : T(a % b);
}
template <class T> PM_INLINE constexpr T shifted_left(T a, T b) { return T(a << (b & T(8 * sizeof(T) - 1))); }
template <class T> PM_INLINE constexpr T shifted_right(T a, T b) { return T(a >> (b & T(8 * sizeof(T) - 1))); }
}  // namespace pm

namespace metal {
#define PM_MEMBER_2(E) E(x) E(y)
#define PM_MEMBER_3(E) E(x) E(y) E(z)
#define PM_MEMBER_4(E) E(x) E(y) E(z) E(w)
#define PM_LIST_2(E) E(x), E(y)
#define PM_LIST_3(E) E(x), E(y), E(z)
#define PM_LIST_4(E) E(x), E(y), E(z), E(w)
#define PM_NAMES_2 struct { T x, y; }; struct { T r, g; };
#define PM_NAMES_3 struct { T x, y, z; }; struct { T r, g, b; };
#define PM_NAMES_4 struct { T x, y, z, w; }; struct { T r, g, b, a; };
#define PM_COPY(c) c = o.c;
#define PM_RELOAD(c) c(o.c)
#define PM_SPLAT(c) c(T(s))
#define PM_CONVERT(c) c(T(o.c))
#define PM_DECLARE(c) class U##c
#define PM_IS_NUMBER(c) pm::is_number<U##c>
#define PM_PARAMETER(c) U##c c##_
#define PM_INIT(c) c(T(c##_))
#define PM_NEGATE(c) T(-o.c)
#define PM_INVERT(c) T(~o.c)
#define PM_NOT(c) !o.c
#define PM_AND_2 PM_IS_NUMBER(x) && PM_IS_NUMBER(y)
#define PM_AND_3 PM_AND_2 && PM_IS_NUMBER(z)
#define PM_AND_4 PM_AND_3 && PM_IS_NUMBER(w)
#define PM_SWIZZLE(name, ...) pm::swizzle<T, PM_N, __VA_ARGS__> name;
#ifdef PM_WITHOUT_SWIZZLES
#define PM_SWIZZLES(N)
#else
#define PM_SWIZZLES(N) PM_SWIZZLES_##N(PM_SWIZZLE)
#endif

#define PM_EACH_2(op) vec(T(a.x op b.x), T(a.y op b.y))
#define PM_EACH_3(op) vec(T(a.x op b.x), T(a.y op b.y), T(a.z op b.z))
#define PM_EACH_4(op) vec(T(a.x op b.x), T(a.y op b.y), T(a.z op b.z), T(a.w op b.w))
#define PM_APPLY_2(f) vec(f(a.x, b.x), f(a.y, b.y))
#define PM_APPLY_3(f) vec(f(a.x, b.x), f(a.y, b.y), f(a.z, b.z))
#define PM_APPLY_4(f) vec(f(a.x, b.x), f(a.y, b.y), f(a.z, b.z), f(a.w, b.w))
#define PM_TEST_2(op) vec<bool, 2>(a.x op b.x, a.y op b.y)
#define PM_TEST_3(op) vec<bool, 3>(a.x op b.x, a.y op b.y, a.z op b.z)
#define PM_TEST_4(op) vec<bool, 4>(a.x op b.x, a.y op b.y, a.z op b.z, a.w op b.w)
#define PM_OPERATOR(N, op) \
  friend PM_INLINE constexpr vec operator op(const vec& a, const vec& b) { return PM_EACH_##N(op); } \
  PM_INLINE constexpr vec& operator op##=(const vec& b) { return *this = *this op b; }
#define PM_INTEGER_OPERATOR(N, op, function) \
  friend PM_INLINE constexpr vec operator op(const vec& a, const vec& b) { return PM_APPLY_##N(function<T>); } \
  PM_INLINE constexpr vec& operator op##=(const vec& b) { return *this = *this op b; }
#define PM_COMPARISON(N, op) \
  friend PM_INLINE constexpr vec<bool, N> operator op(const vec& a, const vec& b) { return PM_TEST_##N(op); }

// The alignment comes of an array of no elements, which is no part of the value: the padding of three components is none.
#define PM_VECTOR(N, ALIGN) \
  template <class T> struct vec<T, N> { \
    pm::aligned_to<sizeof(T) * ALIGN> alignment_[0]; \
    union { \
      PM_NAMES_##N \
      T v_[N]; \
      PM_SWIZZLES(N) \
    }; \
    vec() = default; \
    vec(const vec&) = default; \
    PM_INLINE constexpr vec& operator=(const vec& o) { PM_MEMBER_##N(PM_COPY) return *this; } \
    template <class V, class = enable_if_t<__is_same(V, vec)>> PM_INLINE vec(const volatile V& o) : PM_LIST_##N(PM_RELOAD) {} \
    template <class V, class = enable_if_t<__is_same(V, vec)>> PM_INLINE void operator=(const V& o) volatile { PM_MEMBER_##N(PM_COPY) } \
    template <class U, class = enable_if_t<pm::is_number<U> || __is_enum(U)>> \
    PM_INLINE constexpr vec(U s) : PM_LIST_##N(PM_SPLAT) {} \
    template <PM_LIST_##N(PM_DECLARE), class = enable_if_t<PM_AND_##N>> \
    PM_INLINE constexpr vec(PM_LIST_##N(PM_PARAMETER)) : PM_LIST_##N(PM_INIT) {} \
    template <class U, class = enable_if_t<!__is_same(U, T)>> \
    PM_INLINE explicit constexpr vec(const vec<U, N>& o) : PM_LIST_##N(PM_CONVERT) {} \
    template <class U, int M, int... I, class = enable_if_t<!__is_same(U, T) && sizeof...(I) == N>> \
    PM_INLINE explicit constexpr vec(const pm::swizzle<U, M, I...>& s) : vec(vec<U, N>(s)) {} \
    template <class U, class = enable_if_t<!__is_same(U, T)>> \
    PM_INLINE explicit constexpr vec(const pm::packed<U, N>& o) : vec(vec<U, N>(o)) {} \
    PM_COMPOUND_##N \
    PM_INLINE constexpr T& operator[](int i) { return v_[i]; } \
    PM_INLINE constexpr const T& operator[](int i) const { return v_[i]; } \
    PM_OPERATOR(N, +) PM_OPERATOR(N, -) PM_OPERATOR(N, *) PM_OPERATOR(N, &) PM_OPERATOR(N, |) PM_OPERATOR(N, ^) \
    PM_INTEGER_OPERATOR(N, /, pm::quotient) PM_INTEGER_OPERATOR(N, %, pm::remainder) \
    PM_INTEGER_OPERATOR(N, <<, pm::shifted_left) PM_INTEGER_OPERATOR(N, >>, pm::shifted_right) \
    PM_COMPARISON(N, ==) PM_COMPARISON(N, !=) PM_COMPARISON(N, <) PM_COMPARISON(N, >) PM_COMPARISON(N, <=) \
    PM_COMPARISON(N, >=) PM_COMPARISON(N, &&) PM_COMPARISON(N, ||) \
    friend PM_INLINE constexpr vec operator-(const vec& o) { return vec(PM_LIST_##N(PM_NEGATE)); } \
    friend PM_INLINE constexpr vec operator+(const vec& o) { return o; } \
    friend PM_INLINE constexpr vec operator~(const vec& o) { return vec(PM_LIST_##N(PM_INVERT)); } \
    friend PM_INLINE constexpr vec<bool, N> operator!(const vec& o) { return vec<bool, N>(PM_LIST_##N(PM_NOT)); } \
    PM_INLINE constexpr vec& operator++() { return *this += vec(1); } \
    PM_INLINE constexpr vec& operator--() { return *this -= vec(1); } \
    PM_INLINE constexpr vec operator++(int) { const vec old = *this; ++*this; return old; } \
    PM_INLINE constexpr vec operator--(int) { const vec old = *this; --*this; return old; } \
  };
// A list of fewer numbers than there are components leaves zeros, as of an aggregate.
#define PM_COMPOUND_2
#define PM_COMPOUND_3 \
  template <class A, class B, class = enable_if_t<pm::is_number<A> && pm::is_number<B>>> \
  PM_INLINE constexpr vec(A a, B b) : x(T(a)), y(T(b)), z(T(0)) {} \
  PM_INLINE constexpr vec(const vec<T, 2>& a, T b_) : x(a.x), y(a.y), z(b_) {} \
  PM_INLINE constexpr vec(T a_, const vec<T, 2>& c) : x(a_), y(c.x), z(c.y) {}
#define PM_COMPOUND_4 \
  template <class A, class B, class = enable_if_t<pm::is_number<A> && pm::is_number<B>>> \
  PM_INLINE constexpr vec(A a, B b) : x(T(a)), y(T(b)), z(T(0)), w(T(0)) {} \
  template <class A, class B, class C, class = enable_if_t<pm::is_number<A> && pm::is_number<B> && pm::is_number<C>>> \
  PM_INLINE constexpr vec(A a, B b, C c) : x(T(a)), y(T(b)), z(T(c)), w(T(0)) {} \
  PM_INLINE constexpr vec(const vec<T, 2>& c, const vec<T, 2>& d) : x(c.x), y(c.y), z(d.x), w(d.y) {} \
  PM_INLINE constexpr vec(const vec<T, 3>& c, T d) : x(c.x), y(c.y), z(c.z), w(d) {} \
  PM_INLINE constexpr vec(T c, const vec<T, 3>& d) : x(c), y(d.x), z(d.y), w(d.z) {} \
  PM_INLINE constexpr vec(const vec<T, 2>& c, T d, T e) : x(c.x), y(c.y), z(d), w(e) {} \
  PM_INLINE constexpr vec(T c, T d, const vec<T, 2>& e) : x(c), y(d), z(e.x), w(e.y) {} \
  PM_INLINE constexpr vec(T c, const vec<T, 2>& d, T e) : x(c), y(d.x), z(d.y), w(e) {}

#define PM_N 2
PM_VECTOR(2, 2)
#undef PM_N
#define PM_N 3
PM_VECTOR(3, 4)
#undef PM_N
#define PM_N 4
PM_VECTOR(4, 4)
#undef PM_N
template <class T> struct vec<T, 1>;

// A vector is shifted by one of another type, which may differ in sign or size.
#define PM_SHIFT(op) \
  template <class T, class U, int N, class = enable_if_t<__is_integral(T) && __is_integral(U) && !__is_same(T, U)>> \
  PM_INLINE constexpr vec<T, N> operator op(const vec<T, N>& a, const vec<U, N>& b) { return a op vec<T, N>(b); } \
  template <class T, class U, int N, class = enable_if_t<__is_integral(T) && __is_integral(U) && !__is_same(T, U)>> \
  PM_INLINE constexpr vec<T, N>& operator op##=(vec<T, N>& a, const vec<U, N>& b) { return a = a op vec<T, N>(b); }
PM_SHIFT(<<) PM_SHIFT(>>)
#undef PM_SHIFT

// Vectors that are too long for names of their components.
#undef PM_OPERATOR
#define PM_OPERATOR(op) \
  friend PM_INLINE constexpr vec operator op(const vec& a, const vec& b) { \
    vec r; \
    for (int i = 0; i < count; ++i) r.v_[i] = T(a.v_[i] op b.v_[i]); \
    return r; \
  } \
  PM_INLINE constexpr vec& operator op##=(const vec& b) { return *this = *this op b; }
#define PM_LONG_VECTOR(N) \
  template <class T> struct vec<T, N> { \
    static constexpr int count = N; \
    alignas(sizeof(T) * N) T v_[N]; \
    vec() = default; \
    template <class U, class = enable_if_t<pm::is_number<U>>> PM_INLINE constexpr vec(U s) { \
      for (auto& v : v_) v = T(s); \
    } \
    template <class U, class = enable_if_t<!__is_same(U, T)>> PM_INLINE explicit constexpr vec(const vec<U, N>& o) { \
      for (int i = 0; i < N; ++i) v_[i] = T(o.v_[i]); \
    } \
    PM_INLINE constexpr T& operator[](int i) { return v_[i]; } \
    PM_INLINE constexpr const T& operator[](int i) const { return v_[i]; } \
    PM_OPERATOR(+) PM_OPERATOR(-) PM_OPERATOR(*) PM_OPERATOR(/) \
  };
PM_LONG_VECTOR(8)
PM_LONG_VECTOR(16)
#undef PM_LONG_VECTOR
#undef PM_OPERATOR

}  // namespace metal

namespace pm {
// `e ->* as_vector` is the vector that a swizzle stands for, and anything else itself (see swizzles.py).
inline constexpr struct to_vector {
} as_vector;
template <class A> PM_INLINE constexpr decltype(auto) operator->*(A&& a, to_vector) {
  if constexpr (stands_for_vector<__remove_cv(__remove_reference_t(A))>) return plain(a);
  else return static_cast<A&&>(a);
}
// Operators that take at least one swizzle: as if it were the vector it stands for.
#define PM_SWIZZLE_OPERATOR(op) \
  template <class T, int N, int... I, int M, int... J> \
  PM_INLINE constexpr enable_t<sizeof...(I) == sizeof...(J), decltype(metal::vec<T, sizeof...(I)>() op metal::vec<T, sizeof...(I)>())> \
  operator op(const swizzle<T, N, I...>& a, const swizzle<T, M, J...>& b) { \
    return metal::vec<T, sizeof...(I)>(a) op metal::vec<T, sizeof...(I)>(b); \
  } \
  template <class T, int N, int... I> \
  PM_INLINE constexpr auto operator op(const swizzle<T, N, I...>& a, const metal::vec<T, sizeof...(I)>& b) { \
    return metal::vec<T, sizeof...(I)>(a) op b; \
  } \
  template <class T, int N, int... I> \
  PM_INLINE constexpr auto operator op(const metal::vec<T, sizeof...(I)>& a, const swizzle<T, N, I...>& b) { \
    return a op metal::vec<T, sizeof...(I)>(b); \
  } \
  template <class T, int N, int... I, class A, class = enable_t<is_number<A>>> \
  PM_INLINE constexpr auto operator op(const swizzle<T, N, I...>& a, A b) { \
    return metal::vec<T, sizeof...(I)>(a) op metal::vec<T, sizeof...(I)>(b); \
  } \
  template <class T, int N, int... I, class A, class = enable_t<is_number<A>>> \
  PM_INLINE constexpr auto operator op(A a, const swizzle<T, N, I...>& b) { \
    return metal::vec<T, sizeof...(I)>(a) op metal::vec<T, sizeof...(I)>(b); \
  }
PM_SWIZZLE_OPERATOR(+) PM_SWIZZLE_OPERATOR(-) PM_SWIZZLE_OPERATOR(*) PM_SWIZZLE_OPERATOR(/) PM_SWIZZLE_OPERATOR(%)
PM_SWIZZLE_OPERATOR(&) PM_SWIZZLE_OPERATOR(|) PM_SWIZZLE_OPERATOR(^) PM_SWIZZLE_OPERATOR(<<) PM_SWIZZLE_OPERATOR(>>)
PM_SWIZZLE_OPERATOR(==) PM_SWIZZLE_OPERATOR(!=) PM_SWIZZLE_OPERATOR(<) PM_SWIZZLE_OPERATOR(>) PM_SWIZZLE_OPERATOR(<=)
PM_SWIZZLE_OPERATOR(>=) PM_SWIZZLE_OPERATOR(&&) PM_SWIZZLE_OPERATOR(||)
}  // namespace pm

#define PM_VECTOR_NAMES(T) \
  using T##2 = metal::vec<T, 2>; \
  using T##3 = metal::vec<T, 3>; \
  using T##4 = metal::vec<T, 4>;
PM_VECTOR_NAMES(bool) PM_VECTOR_NAMES(char) PM_VECTOR_NAMES(uchar) PM_VECTOR_NAMES(short) PM_VECTOR_NAMES(ushort)
PM_VECTOR_NAMES(int) PM_VECTOR_NAMES(uint) PM_VECTOR_NAMES(long) PM_VECTOR_NAMES(ulong) PM_VECTOR_NAMES(half)
PM_VECTOR_NAMES(bfloat) PM_VECTOR_NAMES(float)
namespace metal {
using ::bool2; using ::bool3; using ::bool4; using ::char2; using ::char3; using ::char4; using ::uchar2; using ::uchar3;
using ::uchar4; using ::short2; using ::short3; using ::short4; using ::ushort2; using ::ushort3; using ::ushort4;
using ::int2; using ::int3; using ::int4; using ::uint2; using ::uint3; using ::uint4; using ::long2; using ::long3;
using ::long4; using ::ulong2; using ::ulong3; using ::ulong4; using ::half2; using ::half3; using ::half4; using ::bfloat2;
using ::bfloat3; using ::bfloat4; using ::float2; using ::float3; using ::float4; using ::half; using ::bfloat;
}  // namespace metal

template <class T, class U, class = pm::enable_t<pm::stands_for_vector<U>>> PM_INLINE constexpr T as_type(const U& u);
template <class T, class U, class = pm::enable_t<!pm::stands_for_vector<U>>, class = void>
PM_INLINE constexpr T as_type(const U& u) {
  static_assert(sizeof(T) == sizeof(U), "as_type: the two types differ in size");
  if constexpr (__is_trivially_copyable(T) && __is_trivially_copyable(U)) {
    return __builtin_bit_cast(T, u);
  } else {
    T t;
    __builtin_memcpy(&t, &u, sizeof(T));
    return t;
  }
}
template <class T, class U, class> PM_INLINE constexpr T as_type(const U& u) { return as_type<T>(pm::plain(u)); }
namespace metal {
using ::as_type;
}
