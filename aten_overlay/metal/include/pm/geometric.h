// <metal_geometric>: MSL section 6.8.
#pragma once

namespace metal {
template <class T, int N> PM_INLINE T dot(const vec<T, N>& a, const type_identity_t<vec<T, N>>& b) {
  T r = a.v_[0] * b.v_[0];
  for (int i = 1; i < N; ++i) r += a.v_[i] * b.v_[i];
  return r;
}
// Not templates alone, so that they win over a template that a kernel's own headers add.
#define PM_DOT(T, N) \
  PM_INLINE T dot(const vec<T, N>& a, const vec<T, N>& b) { return dot<T, N>(a, b); }
PM_DOT(float, 2) PM_DOT(float, 3) PM_DOT(float, 4) PM_DOT(half, 2) PM_DOT(half, 3) PM_DOT(half, 4)
#undef PM_DOT
template <class T> PM_INLINE vec<T, 3> cross(const vec<T, 3>& a, const vec<T, 3>& b) {
  return vec<T, 3>(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
template <class T, int N> PM_INLINE T length_squared(const vec<T, N>& a) { return dot(a, a); }
template <class T, int N> PM_INLINE T length(const vec<T, N>& a) { return sqrt(dot(a, a)); }
template <class T, int N> PM_INLINE T distance(const vec<T, N>& a, const vec<T, N>& b) { return length(a - b); }
template <class T, int N> PM_INLINE T distance_squared(const vec<T, N>& a, const vec<T, N>& b) { return length_squared(a - b); }
template <class T, int N> PM_INLINE vec<T, N> normalize(const vec<T, N>& a) { return a * rsqrt(dot(a, a)); }
template <class T, int N>
PM_INLINE vec<T, N> faceforward(const vec<T, N>& n, const vec<T, N>& i, const vec<T, N>& reference) {
  return dot(reference, i) < T(0) ? n : -n;
}
template <class T, int N> PM_INLINE vec<T, N> reflect(const vec<T, N>& i, const vec<T, N>& n) { return i - n * (T(2) * dot(n, i)); }
template <class T, int N> PM_INLINE vec<T, N> refract(const vec<T, N>& i, const vec<T, N>& n, T eta) {
  const T d = dot(n, i), k = T(1) - eta * eta * (T(1) - d * d);
  return k < T(0) ? vec<T, N>(0) : i * eta - n * (eta * d + sqrt(k));
}
}  // namespace metal
