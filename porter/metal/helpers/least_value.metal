// What a maximum starts from
template <typename T>
inline T least_value() {
  using limits = ::metal::numeric_limits<T>;
  return limits::has_infinity ? -limits::infinity() : limits::lowest();
}
