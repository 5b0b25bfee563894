// Product of two real or two complex numbers
template <
    typename T,
    typename U,
    ::metal::enable_if_t<
        !::metal::is_same_v<T, float2> && !::metal::is_same_v<T, half2>,
        bool> = true>
inline auto mul(T x, U y) {
  return x * y;
}

inline float2 mul(float2 x, float2 y) {
  return float2(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
}

inline half2 mul(half2 x, half2 y) {
  return half2(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
}
