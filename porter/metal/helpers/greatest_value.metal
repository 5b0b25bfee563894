// What a minimum starts from
template <typename T>
inline T greatest_value() {
  using limits = ::metal::numeric_limits<T>;
  return limits::has_infinity ? limits::infinity() : limits::max();
}
