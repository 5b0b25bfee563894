// Conversion between real and complex numbers: a real one has no imaginary
// part, and that of a complex one only counts for bool
template <typename T>
constant constexpr bool is_pair =
    ::metal::is_same_v<T, float2> || ::metal::is_same_v<T, half2>;

template <
    typename T,
    typename U,
    ::metal::enable_if_t<is_pair<T> == is_pair<U>, bool> = true>
inline T cast_to(U value) {
  return static_cast<T>(value);
}

template <
    typename T,
    typename U,
    ::metal::enable_if_t<is_pair<T> && !is_pair<U>, bool> = true>
inline T cast_to(U value) {
  return T(static_cast<float>(value), 0);
}

template <
    typename T,
    typename U,
    ::metal::enable_if_t<!is_pair<T> && is_pair<U>, bool> = true>
inline T cast_to(U value) {
  return ::metal::is_same_v<T, bool> ? value.x != 0 || value.y != 0
                                     : static_cast<T>(value.x);
}
