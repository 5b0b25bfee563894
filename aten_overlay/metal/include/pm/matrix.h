// Matrices, stored by column (MSL section 2.3).
#pragma once

namespace metal {
template <class T, int C, int R> struct matrix {
  vec<T, R> columns[C];
  matrix() = default;
  PM_INLINE explicit matrix(T diagonal) {
    for (int c = 0; c < C; ++c)
      for (int r = 0; r < R; ++r) columns[c].v_[r] = c == r ? diagonal : T(0);
  }
  template <class... A, class = enable_if_t<sizeof...(A) == C && C != 1>>
  PM_INLINE matrix(const A&... column) : columns{vec<T, R>(column)...} {}
  // Of lists in braces, which a template does not take.
  using column = vec<T, R>;
  PM_INLINE matrix(const column& a, const column& b) : columns{a, b} {}
  PM_INLINE matrix(const column& a, const column& b, const column& c) : columns{a, b, c} {}
  PM_INLINE matrix(const column& a, const column& b, const column& c, const column& d) : columns{a, b, c, d} {}
  template <class U, class = enable_if_t<!__is_same(U, T)>> PM_INLINE explicit matrix(const matrix<U, C, R>& o) {
    for (int c = 0; c < C; ++c) columns[c] = vec<T, R>(o.columns[c]);
  }
  template <class... A, class = enable_if_t<sizeof...(A) == C * R && (pm::is_number<A> && ...)>, class = void>
  PM_INLINE matrix(A... element) {
    const T given[] = {T(element)...};
    for (int c = 0; c < C; ++c)
      for (int r = 0; r < R; ++r) columns[c].v_[r] = given[c * R + r];
  }
  PM_INLINE matrix& operator+=(const matrix& o) { return *this = *this + o; }
  PM_INLINE matrix& operator-=(const matrix& o) { return *this = *this - o; }
  PM_INLINE matrix& operator*=(T s) { return *this = *this * s; }
  PM_INLINE matrix& operator/=(T s) { return *this = *this / s; }
  PM_INLINE matrix& operator*=(const matrix<T, C, C>& o) { return *this = *this * o; }
  friend PM_INLINE matrix operator-(const matrix& a) {
    matrix r;
    for (int c = 0; c < C; ++c) r.columns[c] = -a.columns[c];
    return r;
  }
  friend PM_INLINE bool operator==(const matrix& a, const matrix& b) {
    bool r = true;
    for (int c = 0; c < C; ++c) r = r && all(a.columns[c] == b.columns[c]);
    return r;
  }
  friend PM_INLINE bool operator!=(const matrix& a, const matrix& b) { return !(a == b); }
  PM_INLINE vec<T, R>& operator[](int c) { return columns[c]; }
  PM_INLINE const vec<T, R>& operator[](int c) const { return columns[c]; }
  friend PM_INLINE matrix operator+(const matrix& a, const matrix& b) {
    matrix r;
    for (int c = 0; c < C; ++c) r.columns[c] = a.columns[c] + b.columns[c];
    return r;
  }
  friend PM_INLINE matrix operator-(const matrix& a, const matrix& b) {
    matrix r;
    for (int c = 0; c < C; ++c) r.columns[c] = a.columns[c] - b.columns[c];
    return r;
  }
  friend PM_INLINE matrix operator*(const matrix& a, T s) {
    matrix r;
    for (int c = 0; c < C; ++c) r.columns[c] = a.columns[c] * s;
    return r;
  }
  friend PM_INLINE matrix operator*(T s, const matrix& a) { return a * s; }
  friend PM_INLINE matrix operator/(const matrix& a, T s) {
    matrix r;
    for (int c = 0; c < C; ++c) r.columns[c] = a.columns[c] / s;
    return r;
  }
  friend PM_INLINE vec<T, R> operator*(const matrix& a, const vec<T, C>& v) {
    vec<T, R> r = a.columns[0] * v.v_[0];
    for (int c = 1; c < C; ++c) r += a.columns[c] * v.v_[c];
    return r;
  }
  friend PM_INLINE vec<T, C> operator*(const vec<T, R>& v, const matrix& a) {
    vec<T, C> r;
    for (int c = 0; c < C; ++c) r.v_[c] = dot(v, a.columns[c]);
    return r;
  }
};
template <class T, int C, int R, int K> PM_INLINE matrix<T, K, R> operator*(const matrix<T, C, R>& a, const matrix<T, K, C>& b) {
  matrix<T, K, R> r;
  for (int k = 0; k < K; ++k) r.columns[k] = a * b.columns[k];
  return r;
}
template <class T, int C, int R> PM_INLINE matrix<T, R, C> transpose(const matrix<T, C, R>& a) {
  matrix<T, R, C> t;
  for (int c = 0; c < C; ++c)
    for (int r = 0; r < R; ++r) t.columns[r].v_[c] = a.columns[c].v_[r];
  return t;
}
template <class T> PM_INLINE T determinant(const matrix<T, 2, 2>& m) { return m[0].x * m[1].y - m[1].x * m[0].y; }
template <class T> PM_INLINE T determinant(const matrix<T, 3, 3>& m) { return dot(m[0], cross(m[1], m[2])); }
template <class T> PM_INLINE T determinant(const matrix<T, 4, 4>& m) {
  T sum = T(0);
  for (int c = 0; c < 4; ++c) {  // along the first row
    matrix<T, 3, 3> minor;
    for (int k = 0; k < 3; ++k)
      for (int r = 0; r < 3; ++r) minor.columns[k].v_[r] = m.columns[k < c ? k : k + 1].v_[r + 1];
    const T part = m.columns[c].v_[0] * determinant(minor);
    sum = c % 2 ? sum - part : sum + part;
  }
  return sum;
}
}  // namespace metal
#define PM_MATRIX_NAMES(T) \
  using T##2x2 = metal::matrix<T, 2, 2>; using T##2x3 = metal::matrix<T, 2, 3>; using T##2x4 = metal::matrix<T, 2, 4>; \
  using T##3x2 = metal::matrix<T, 3, 2>; using T##3x3 = metal::matrix<T, 3, 3>; using T##3x4 = metal::matrix<T, 3, 4>; \
  using T##4x2 = metal::matrix<T, 4, 2>; using T##4x3 = metal::matrix<T, 4, 3>; using T##4x4 = metal::matrix<T, 4, 4>;
PM_MATRIX_NAMES(float) PM_MATRIX_NAMES(half)
namespace metal {
using ::float2x2; using ::float2x3; using ::float2x4; using ::float3x2; using ::float3x3; using ::float3x4; using ::float4x2;
using ::float4x3; using ::float4x4; using ::half2x2; using ::half2x3; using ::half2x4; using ::half3x2; using ::half3x3;
using ::half3x4; using ::half4x2; using ::half4x3; using ::half4x4;
}
