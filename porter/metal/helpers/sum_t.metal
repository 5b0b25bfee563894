// The type that elements are added up in: of 32 bits for floating-point ones of 16
template <typename T>
using sum_t = ::metal::conditional_t<::metal::is_integral_v<T>, T, c10::metal::opmath_t<T>>;
