// The functions of <metal_atomic>: MSL section 6.15.
#pragma once

namespace metal {
// What a family of Apple's GPUs has, where the sources are compiled for one (see family.py).
#ifdef PM_FAMILY
#define PM_REQUIRE_NARROW(T) static_assert(sizeof(T) < 8, "PTR276 Metal has no such atomic function of 64 bits")
#define PM_REQUIRE_ULONG(T) \
  static_assert(sizeof(T) < 8 || (__is_same(T, ulong) && PM_FAMILY_ULONG_ATOMICS), "PTR276 family " PM_FAMILY " has no atomic minimum or maximum of this type")
#else
#define PM_REQUIRE_NARROW(T)
#define PM_REQUIRE_ULONG(T)
#endif
template <class T> PM_INLINE T atomic_load_explicit(const volatile atomic<T>* p, memory_order) {
  PM_REQUIRE_NARROW(T);
  T r;
  __atomic_load(&p->value_, &r, __ATOMIC_RELAXED);
  return r;
}
template <class T> PM_INLINE void atomic_store_explicit(volatile atomic<T>* p, type_identity_t<T> v, memory_order) {
  PM_REQUIRE_NARROW(T);
  __atomic_store(&p->value_, &v, __ATOMIC_RELAXED);
}
template <class T> PM_INLINE T atomic_exchange_explicit(volatile atomic<T>* p, type_identity_t<T> v, memory_order) {
  PM_REQUIRE_NARROW(T);
  T r;
  __atomic_exchange(&p->value_, &v, &r, __ATOMIC_RELAXED);
  return r;
}
template <class T>
PM_INLINE bool atomic_compare_exchange_weak_explicit(
    volatile atomic<T>* p, T* expected, type_identity_t<T> v, memory_order, memory_order) {
  PM_REQUIRE_NARROW(T);
#ifdef PM_SANITIZE
  // Apple's GPUs compare floats as numbers: one that expects a NaN never exchanges (pytorch/pytorch#196203).
  if constexpr (__is_same(T, float))
    if ((__builtin_bit_cast(uint, *expected) & 0x7FFFFFFFu) > 0x7F800000u) {
      __atomic_load(&p->value_, expected, __ATOMIC_RELAXED);
      return false;
    }
#endif
  return __atomic_compare_exchange(&p->value_, expected, &v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
// One instruction of the compiler, not a loop of ours: lanes stay together.
#define PM_ATOMIC(name) \
  template <class T> PM_INLINE T atomic_fetch_##name##_explicit(volatile atomic<T>* p, type_identity_t<T> b, memory_order) { \
    PM_REQUIRE_NARROW(T); \
    return __atomic_fetch_##name(&p->value_, b, __ATOMIC_RELAXED); \
  }
PM_ATOMIC(add) PM_ATOMIC(sub) PM_ATOMIC(and) PM_ATOMIC(or) PM_ATOMIC(xor) PM_ATOMIC(min) PM_ATOMIC(max)
#undef PM_ATOMIC
template <class T> PM_INLINE void atomic_max_explicit(volatile atomic<T>* p, type_identity_t<T> v, memory_order) {
  PM_REQUIRE_ULONG(T);
  __atomic_fetch_max(&p->value_, v, __ATOMIC_RELAXED);
}
template <class T> PM_INLINE void atomic_min_explicit(volatile atomic<T>* p, type_identity_t<T> v, memory_order) {
  PM_REQUIRE_ULONG(T);
  __atomic_fetch_min(&p->value_, v, __ATOMIC_RELAXED);
}
#undef PM_REQUIRE_NARROW
#undef PM_REQUIRE_ULONG
}  // namespace metal
