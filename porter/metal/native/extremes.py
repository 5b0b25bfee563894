"""What extreme values of any type start from, as functions that kernels share."""

LEAST_HELPER = """\
// What a maximum starts from
template <typename T>
inline T least_value() {
  using limits = ::metal::numeric_limits<T>;
  return limits::has_infinity ? -limits::infinity() : limits::lowest();
}

"""
GREATEST_HELPER = """\
// What a minimum starts from
template <typename T>
inline T greatest_value() {
  using limits = ::metal::numeric_limits<T>;
  return limits::has_infinity ? limits::infinity() : limits::max();
}

"""
