// <metal_type_traits>: MSL section 6.2. Vector types count as their elements where the specification says so.
#pragma once

namespace metal {
template <class T, T V> struct integral_constant {
  static constexpr T value = V;
  using value_type = T;
  constexpr operator T() const { return V; }
};
template <bool B> using bool_constant = integral_constant<bool, B>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;

template <bool B, class T = void> using enable_if_t = pm::enable_t<B, T>;
template <bool B, class T = void> struct enable_if : pm::enable<B, T> {};
template <bool B, class T, class F> struct conditional { using type = T; };
template <class T, class F> struct conditional<false, T, F> { using type = F; };
template <bool B, class T, class F> using conditional_t = typename conditional<B, T, F>::type;
template <class T> struct type_identity { using type = T; };
template <class T> using type_identity_t = typename type_identity<T>::type;

template <class T, int N> struct vec;
}  // namespace metal

namespace pm {
template <class T> struct element { using type = T; static constexpr int size = 1; };
template <class T, int N> struct element<metal::vec<T, N>> { using type = T; static constexpr int size = N; };
template <class T> using element_t = typename element<__remove_cv(T)>::type;
template <class T> inline constexpr bool is_float = __is_same(T, float) || __is_same(T, half) || __is_same(T, bfloat);
template <class T> inline constexpr bool is_number = is_float<T> || __is_integral(T) || __is_same(T, double);
template <class T> inline constexpr bool is_vector = element<__remove_cv(T)>::size > 1;
}  // namespace pm

namespace metal {
template <class T> using remove_cv_t = __remove_cv(T);
template <class T> using remove_const_t = __remove_const(T);
template <class T> using remove_volatile_t = __remove_volatile(T);
template <class T> using remove_reference_t = __remove_reference_t(T);
template <class T> using remove_pointer_t = __remove_pointer(T);
template <class T> using remove_extent_t = __remove_extent(T);
template <class T> using decay_t = __decay(T);
template <class T> using remove_addrspace_t = __remove_const(T);  // `constant`, which is const here; of a value no other is left
template <class T> struct remove_addrspace { using type = __remove_const(T); };
template <class T> using remove_cvref_t = __remove_cv(__remove_reference_t(T));
template <class... B> struct _disjunction : bool_constant<(B::value || ...)> {};
template <class... B> struct _conjunction : bool_constant<(B::value && ...)> {};
template <class B> struct _negation : bool_constant<!B::value> {};
template <class T> using add_const_t = const T;
template <class T> struct remove_cv { using type = __remove_cv(T); };
template <class T> struct remove_const { using type = __remove_const(T); };
template <class T> struct remove_reference { using type = __remove_reference_t(T); };
template <class T> struct remove_pointer { using type = __remove_pointer(T); };
template <class T> struct decay { using type = __decay(T); };
template <class T> struct underlying_type { using type = __underlying_type(T); };
template <class T> using underlying_type_t = __underlying_type(T);
template <class T> struct make_signed { using type = __make_signed(T); };
template <class T> struct make_unsigned { using type = __make_unsigned(T); };
template <class T, int N> struct make_signed<vec<T, N>> { using type = vec<__make_signed(T), N>; };
template <class T, int N> struct make_unsigned<vec<T, N>> { using type = vec<__make_unsigned(T), N>; };
template <class T> using make_signed_t = typename make_signed<T>::type;
template <class T> using make_unsigned_t = typename make_unsigned<T>::type;
template <class... T> struct common_type;
template <class A> struct common_type<A> { using type = A; };
template <class A, class B> struct common_type<A, B> { using type = __decay(decltype(true ? A() : B())); };
template <class A, class B, class... C> struct common_type<A, B, C...> : common_type<typename common_type<A, B>::type, C...> {};
template <class... T> using common_type_t = typename common_type<T...>::type;

template <class T> T&& declval() noexcept;

template <class A, class B> inline constexpr bool is_same_v = __is_same(A, B);
template <class A, class B> inline constexpr bool is_convertible_v = __is_convertible(A, B);
template <class A, class B> inline constexpr bool is_base_of_v = __is_base_of(A, B);
template <class T, class... A> inline constexpr bool is_constructible_v = __is_constructible(T, A...);
template <class T> inline constexpr bool is_void_v = __is_void(T);
template <class T> inline constexpr bool is_const_v = __is_const(T);
template <class T> inline constexpr bool is_volatile_v = __is_volatile(T);
template <class T> inline constexpr bool is_array_v = __is_array(T);
template <class T> inline constexpr bool is_pointer_v = __is_pointer(T);
template <class T> inline constexpr bool is_reference_v = __is_reference(T);
template <class T> inline constexpr bool is_enum_v = __is_enum(T);
template <class T> inline constexpr bool is_class_v = __is_class(T) && !pm::is_vector<T> && !pm::is_float<__remove_cv(T)>;
template <class T> inline constexpr bool is_union_v = __is_union(T);
template <class T> inline constexpr bool is_trivially_copyable_v = __is_trivially_copyable(T);
template <class T> inline constexpr bool is_floating_point_v = pm::is_float<pm::element_t<T>>;
template <class T> inline constexpr bool is_integral_v = __is_integral(pm::element_t<T>);
template <class T> inline constexpr bool is_arithmetic_v = is_floating_point_v<T> || is_integral_v<T>;
template <class T> inline constexpr bool is_vector_v = pm::is_vector<T>;
template <class T> inline constexpr bool is_scalar_v =
    (is_arithmetic_v<T> && !pm::is_vector<T>) || __is_enum(T) || __is_pointer(T);
template <class T> inline constexpr bool is_fundamental_v = is_arithmetic_v<T> || __is_void(T);
template <class T> inline constexpr bool is_signed_v =
    is_floating_point_v<T> || (is_integral_v<T> && pm::element_t<T>(-1) < pm::element_t<T>(0));
template <class T> inline constexpr bool is_unsigned_v = is_integral_v<T> && !is_signed_v<T>;
template <class T> inline constexpr bool is_function_v = __is_function(T);
template <class T> inline constexpr size_t rank_v = __array_rank(T);
#define PM_TRAIT(name) template <class T> struct name : bool_constant<name##_v<T>> {};
PM_TRAIT(is_void) PM_TRAIT(is_const) PM_TRAIT(is_volatile) PM_TRAIT(is_array) PM_TRAIT(is_pointer) PM_TRAIT(is_reference)
PM_TRAIT(is_enum) PM_TRAIT(is_class) PM_TRAIT(is_union) PM_TRAIT(is_trivially_copyable) PM_TRAIT(is_floating_point)
PM_TRAIT(is_integral) PM_TRAIT(is_arithmetic) PM_TRAIT(is_vector) PM_TRAIT(is_scalar) PM_TRAIT(is_fundamental)
PM_TRAIT(is_signed) PM_TRAIT(is_unsigned) PM_TRAIT(is_function)
// What simdgroup functions take: section 6.9.2 leaves out bool and integers of 64 bits.
template <class T> inline constexpr bool __is_valid_simdgroup_type_v =
    is_arithmetic_v<T> && sizeof(pm::element_t<T>) <= 4 && !__is_same(pm::element_t<T>, bool);
PM_TRAIT(__is_valid_simdgroup_type)
#undef PM_TRAIT
template <class A, class B> struct is_same : bool_constant<__is_same(A, B)> {};
template <class A, class B> struct is_convertible : bool_constant<__is_convertible(A, B)> {};
template <class A, class B> struct is_base_of : bool_constant<__is_base_of(A, B)> {};

// A value that is the same for all threads.
template <class T> struct uniform {
  T value_;
  uniform() = default;
  PM_INLINE constexpr uniform(T v) : value_(v) {}
  PM_INLINE constexpr operator T() const { return value_; }
};
template <class T> PM_INLINE constexpr uniform<T> make_uniform(T v) { return uniform<T>(v); }
template <class T> struct vec_elements : integral_constant<size_t, pm::element<__remove_cv(T)>::size> {};
template <class T> inline constexpr size_t vec_elements_v = vec_elements<T>::value;
}  // namespace metal
