// The type that ATen accumulates in
template <typename T>
using acc_t = ::metal::conditional_t<::metal::is_integral_v<T>, long, c10::metal::opmath_t<T>>;
