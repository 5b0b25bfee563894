// The functions that Metal has, in place of c10/metal's.
namespace c10 {
namespace metal {
template <typename T>
inline float erf(T x) { return x; }
inline float log1p(float x) { return x; }
inline float2 log1p(float2 x) { return x; }
template <typename T>
inline T max(T a, T b) { return a; }
template <typename T>
inline T wave(T x) { return x; }
template <typename T, typename U>
inline T mul(const T x, const U y) { return x * y; }
template <typename T, typename U>
inline T div(const T x, const U y) { return x / y; }
template <typename T>
inline T conj(T a) { return a; }
template <>
inline float2 conj(float2 a) { return a; }
}
}
