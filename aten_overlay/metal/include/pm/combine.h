// What reductions combine two values with.
#pragma once

namespace pm {
template <class T> PM_INLINE T add(T a, T b) { return T(a + b); }
template <class T> PM_INLINE T multiply(T a, T b) { return T(a * b); }
template <class T> PM_INLINE T least(T a, T b) { return metal::min(a, b); }
template <class T> PM_INLINE T greatest(T a, T b) { return metal::max(a, b); }
template <class T> PM_INLINE T bit_and(T a, T b) { return T(a & b); }
template <class T> PM_INLINE T bit_or(T a, T b) { return T(a | b); }
template <class T> PM_INLINE T bit_xor(T a, T b) { return T(a ^ b); }
}  // namespace pm
