// The functions that they call, in place of ATen/native/Math.h.
template <typename T>
inline T soft_impl(T v) {
  return std::abs(v) + T(1);
}
template <typename T>
inline typename std::enable_if_t<std::is_integral_v<T>, T>
steps(T a, T b) {
  while (b != 0) {
    T c = a % b;
    a = b;
    b = c;
  }
  return a;
}
template <typename TYPE>
inline TYPE flip_impl(TYPE z) { return z; }
template<>
inline c10::complex<float> flip_impl <c10::complex<float>> (c10::complex<float> z) {
  return c10::complex<float>(z.real(), -z.imag());
}
