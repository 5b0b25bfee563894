// The functions of <metal_atomic>: MSL section 6.15. All orders are relaxed, as Metal's are; the scope is the device.
#pragma once

namespace pm {
template <class T> PM_INLINE T* plain_address(const volatile metal::atomic<T>* p) { return const_cast<T*>(&p->value_); }
// A byte is exchanged with the word around it: the hardware has no narrower exchange.
template <class T, class F> PM_INLINE T exchange_in_word(T* p, F next) {
  static_assert(sizeof(T) == 1, "an atomic type of another size is exchanged by itself");
  const ulong address = reinterpret_cast<ulong>(p);
  const uint shift = uint(address & 3) * 8;
  uint* word = reinterpret_cast<uint*>(address & ~3ul);
  uint seen = __atomic_load_n(word, __ATOMIC_RELAXED);
  for (;;) {
    const uchar old = uchar(seen >> shift);
    const T value = next(__builtin_bit_cast(T, old));
    const uint wanted = (seen & ~(0xffu << shift)) | uint(__builtin_bit_cast(uchar, value)) << shift;
    if (__atomic_compare_exchange_n(word, &seen, wanted, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return __builtin_bit_cast(T, old);
  }
}
template <class T> struct word_of { using type = ulong; };
template <> struct word_of<float> { using type = uint; };
// The value becomes next(value); the old one. Floats are compared by their bits: a NaN differs from itself.
template <class T, class F> PM_INLINE T exchange_with(T* p, F next) {
  if constexpr (sizeof(T) == 1) {
    return exchange_in_word(p, next);
  } else {
    using W = typename word_of<T>::type;
    static_assert(sizeof(T) == sizeof(W), "there is no atomic type of this size");
    W* word = reinterpret_cast<W*>(p);
    W seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    for (;;) {
      const W wanted = __builtin_bit_cast(W, T(next(__builtin_bit_cast(T, seen))));
      if (__atomic_compare_exchange_n(word, &seen, wanted, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return __builtin_bit_cast(T, seen);
    }
  }
}
template <class T> inline constexpr bool is_word = __is_integral(T) && sizeof(T) >= 4;
}  // namespace pm

namespace metal {
template <class T> PM_INLINE T atomic_load_explicit(const volatile atomic<T>* p, memory_order) {
  T r;
  __atomic_load(pm::plain_address(p), &r, __ATOMIC_RELAXED);
  return r;
}
template <class T> PM_INLINE void atomic_store_explicit(volatile atomic<T>* p, type_identity_t<T> v, memory_order) {
  __atomic_store(pm::plain_address(p), &v, __ATOMIC_RELAXED);
}
template <class T> PM_INLINE T atomic_exchange_explicit(volatile atomic<T>* p, type_identity_t<T> v, memory_order) {
  if constexpr (sizeof(T) == 1) {
    return pm::exchange_in_word(pm::plain_address(p), [&](T) { return v; });
  } else {
    T r;
    __atomic_exchange(pm::plain_address(p), &v, &r, __ATOMIC_RELAXED);
    return r;
  }
}
template <class T>
PM_INLINE bool atomic_compare_exchange_weak_explicit(
    volatile atomic<T>* p, T* expected, type_identity_t<T> v, memory_order, memory_order) {
  if constexpr (sizeof(T) == 1) {
    const T wanted = *expected;
    *expected = pm::exchange_in_word(pm::plain_address(p), [&](T old) { return old == wanted ? v : old; });
    return *expected == wanted;
  } else {
    return __atomic_compare_exchange(pm::plain_address(p), expected, &v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
}
#define PM_ATOMIC(name, combined) \
  template <class T> PM_INLINE T atomic_fetch_##name##_explicit(volatile atomic<T>* p, type_identity_t<T> b, memory_order) { \
    if constexpr (pm::is_word<T>) return __atomic_fetch_##name(pm::plain_address(p), b, __ATOMIC_RELAXED); \
    else return pm::exchange_with(pm::plain_address(p), [=](T a) { return T(combined); }); \
  }
PM_ATOMIC(and, a & b) PM_ATOMIC(or, a | b) PM_ATOMIC(xor, a ^ b) PM_ATOMIC(min, metal::min(a, b)) PM_ATOMIC(max, metal::max(a, b))
#undef PM_ATOMIC
template <class T> PM_INLINE T atomic_fetch_add_explicit(volatile atomic<T>* p, type_identity_t<T> b, memory_order) {
  if constexpr (__is_same(T, float)) return __nvvm_atom_add_gen_f(pm::plain_address(p), b);
  else if constexpr (pm::is_word<T>) return __atomic_fetch_add(pm::plain_address(p), b, __ATOMIC_RELAXED);
  else return pm::exchange_with(pm::plain_address(p), [=](T a) { return T(a + b); });
}
template <class T> PM_INLINE T atomic_fetch_sub_explicit(volatile atomic<T>* p, type_identity_t<T> b, memory_order order) {
  return atomic_fetch_add_explicit(p, T(-b), order);
}
template <class T> PM_INLINE void atomic_max_explicit(volatile atomic<T>* p, type_identity_t<T> v, memory_order order) {
  atomic_fetch_max_explicit(p, v, order);
}
template <class T> PM_INLINE void atomic_min_explicit(volatile atomic<T>* p, type_identity_t<T> v, memory_order order) {
  atomic_fetch_min_explicit(p, v, order);
}
}  // namespace metal
