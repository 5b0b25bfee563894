// Other forms of the functions above: of swizzles and packed vectors, of numbers beside vectors, as precise:: and fast::,
// and as the builtins that public headers call.
#pragma once

namespace pm {
template <class... A> inline constexpr bool any_stands_for_vector = (stands_for_vector<A> || ...);
template <class... A> inline constexpr bool any_vector = (is_vector<A> || ...);
template <class... A> inline constexpr bool any_number = (is_number<A> || ...);
template <class... A> inline constexpr bool only_vectors_and_numbers =
    ((is_number<A> || (is_vector<A> && !stands_for_vector<A>)) && ...);
// The one vector type among some types.
template <class A, class... B> struct vector_among : vector_among<B...> {};
template <class T, int N, class... B> struct vector_among<metal::vec<T, N>, B...> { using type = metal::vec<T, N>; };
}  // namespace pm

#define PM_EACH_QUICK(F) F(exp) PM_EACH_QUICK_BUT_EXP(F)
#define PM_EACH_QUICK_BUT_EXP(F) F(exp2) F(exp10) F(log) F(log2) F(log10) F(sin) F(cos) F(tan)
#define PM_EACH_FUNCTION(F) PM_EACH_QUICK(F) PM_EACH_SLOW(F)
#define PM_EACH_SLOW(F) PM_EACH_ERRING(F) PM_EACH_REST(F)
#define PM_EACH_ERRING(F) F(sinh) F(cosh) F(tanh) F(rsqrt)
#define PM_EACH_REST(F) \
  F(sinpi) F(cospi) F(tanpi) F(asin) F(acos) F(atan) \
  F(asinh) F(acosh) F(atanh) F(sqrt) F(fabs) F(floor) F(ceil) F(trunc) F(round) F(rint) \
  F(atan2) F(pow) F(powr) F(fmod) F(copysign) F(fdim) F(divide) F(fmin) F(fmax) F(fract) F(nextafter) F(fma) F(ldexp) \
  F(abs) F(min) F(max) F(min3) F(max3) F(median3) F(fmin3) F(fmax3) F(fmedian3) F(clamp) F(saturate) F(sign) F(mix) F(step) \
  F(smoothstep) F(isnan) F(isinf) F(isfinite) F(isnormal) F(signbit) F(dot) F(cross) F(length) F(length_squared) F(distance) \
  F(distance_squared) F(normalize)
#define PM_EACH_OTHER(F) \
  F(mad) F(isordered) F(isunordered) F(all) F(any) F(select) F(faceforward) F(reflect) F(refract) F(clz) F(ctz) F(popcount) \
  F(reverse_bits) F(rotate) F(mulhi) F(addsat) F(subsat) F(hadd) F(rhadd) F(absdiff) F(mul24) F(mad24) F(madhi) F(madsat) F(extract_bits) F(insert_bits) \
  PM_EACH_EXCHANGE(F, simd) PM_EACH_EXCHANGE(F, quad)
#define PM_EACH_EXCHANGE(F, scope) \
  F(scope##_sum) F(scope##_product) F(scope##_min) F(scope##_max) F(scope##_and) F(scope##_or) F(scope##_xor) \
  F(scope##_broadcast) F(scope##_shuffle) F(scope##_shuffle_xor) F(scope##_shuffle_down) F(scope##_shuffle_up) \
  F(scope##_prefix_inclusive_sum) F(scope##_prefix_exclusive_sum) F(scope##_prefix_inclusive_product) \
  F(scope##_prefix_exclusive_product) F(scope##_shuffle_rotate_down) F(scope##_shuffle_rotate_up) \
  F(scope##_shuffle_and_fill_down) F(scope##_shuffle_and_fill_up) F(scope##_broadcast_first)
#define PM_EACH_SPREAD(F) \
  F(min) F(max) F(fmin) F(fmax) F(pow) F(powr) F(fmod) F(atan2) F(copysign) F(fdim) F(divide) F(mix) F(step) F(smoothstep) \
  F(clamp) F(fma)

namespace metal {
#define PM_FORM(name) \
  template <class... A, class = enable_if_t<pm::any_stands_for_vector<A...>>> PM_INLINE auto name(const A&... a) { \
    return name(pm::plain(a)...); \
  }
PM_EACH_FUNCTION(PM_FORM) PM_EACH_OTHER(PM_FORM)
#undef PM_FORM
#define PM_FORM(name) \
  template < \
      class... A, \
      class = enable_if_t<pm::any_vector<A...> && pm::any_number<A...> && pm::only_vectors_and_numbers<A...>>, class = void> \
  PM_INLINE auto name(const A&... a) { \
    using V = typename pm::vector_among<A...>::type; \
    return name(V(a)...); \
  }
PM_EACH_SPREAD(PM_FORM)
#undef PM_FORM

// By name, so that what a kernel's own headers add to precise:: does not hide what is there.
#define PM_FORM(name) using metal::name;
namespace precise {
#if defined(PM_FAST) || defined(PM_MATH_ERRORS)
// Beside fast math these stay as they are.
#define PM_EXACT(name) \
  PM_UNARY(name, pm::exact::name) \
  template <class A, class = enable_if_t<pm::stands_for_vector<A>>, class = void> PM_INLINE auto name(const A& a) { return name(pm::plain(a)); }
PM_EACH_QUICK(PM_EXACT) PM_EACH_ERRING(PM_EXACT)
#undef PM_EXACT
#else
PM_EACH_QUICK(PM_FORM) PM_EACH_ERRING(PM_FORM)
#endif
PM_EACH_REST(PM_FORM)
using metal::frexp; using metal::modf; using metal::sincos; using metal::mad; using metal::ilogb;
}
namespace fast {
PM_EACH_QUICK_BUT_EXP(PM_FORM) PM_EACH_SLOW(PM_FORM)
PM_UNARY(exp, pm::fast_exp)
template <class A, class = enable_if_t<pm::stands_for_vector<A>>> PM_INLINE auto exp(const A& a) { return metal::fast::exp(pm::plain(a)); }
using metal::frexp; using metal::modf; using metal::sincos; using metal::mad; using metal::ilogb;
}
#undef PM_FORM
}  // namespace metal

// The builtins under Apple's functions. Those of floats are also told how precise to be; here they always are.
#define PM_FORM(name) \
  template <class T> PM_INLINE T __metal_##name(T a, int = 0) { return metal::name(a); }
PM_FORM(acos) PM_FORM(acosh) PM_FORM(asin) PM_FORM(asinh) PM_FORM(atan) PM_FORM(atanh) PM_FORM(ceil) PM_FORM(cos)
PM_FORM(cosh) PM_FORM(cospi) PM_FORM(exp) PM_FORM(exp10) PM_FORM(exp2) PM_FORM(fabs) PM_FORM(floor) PM_FORM(fract)
PM_FORM(log) PM_FORM(log10) PM_FORM(log2) PM_FORM(rint) PM_FORM(round) PM_FORM(rsqrt) PM_FORM(sin) PM_FORM(sinh)
PM_FORM(sinpi) PM_FORM(sqrt) PM_FORM(tan) PM_FORM(tanh) PM_FORM(tanpi) PM_FORM(trunc)
#undef PM_FORM
#define PM_FORM(name) \
  template <class T> PM_INLINE T __metal_##name(T a, T b, int = 0) { return metal::name(a, b); }
PM_FORM(atan2) PM_FORM(divide) PM_FORM(fmax) PM_FORM(fmin) PM_FORM(fmod) PM_FORM(pow) PM_FORM(powr) PM_FORM(copysign)
PM_FORM(fdim)
#undef PM_FORM
#define PM_FORM(name) \
  template <class T> PM_INLINE T __metal_##name(T a, T b, T c, int = 0) { return metal::name(a, b, c); }
PM_FORM(fma) PM_FORM(fmax3) PM_FORM(fmedian3) PM_FORM(fmin3) PM_FORM(clamp) PM_FORM(mix)
#undef PM_FORM
template <class T> PM_INLINE T __metal_ldexp(T a, int b, int = 0) { return metal::ldexp(a, b); }
template <class T> PM_INLINE T __metal_frexp(T a, int* b) { return metal::frexp(a, *b); }
template <class T> PM_INLINE T __metal_nextafter(T a, T b) { return metal::nextafter(a, b); }
#define PM_FORM(name) \
  template <class... A> PM_INLINE auto __metal_simd_##name(A... a) { return metal::simd_##name(a...); }
PM_FORM(sum) PM_FORM(product) PM_FORM(min) PM_FORM(max) PM_FORM(and) PM_FORM(or) PM_FORM(xor) PM_FORM(broadcast)
PM_FORM(shuffle) PM_FORM(shuffle_xor) PM_FORM(shuffle_up) PM_FORM(shuffle_down) PM_FORM(shuffle_rotate_up)
PM_FORM(shuffle_rotate_down) PM_FORM(shuffle_and_fill_up) PM_FORM(shuffle_and_fill_down) PM_FORM(prefix_inclusive_sum)
PM_FORM(prefix_exclusive_sum) PM_FORM(prefix_inclusive_product) PM_FORM(prefix_exclusive_product)
#undef PM_FORM
PM_INLINE ushort __metal_get_simdgroup_size(ushort) { return PM_SIMD_WIDTH; }
PM_INLINE ushort __metal_get_thread_index_in_simdgroup(ushort) { return ushort(pm_lane()); }
