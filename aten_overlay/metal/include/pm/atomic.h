// <metal_atomic>: MSL section 6.15.
#pragma once

namespace metal {
enum memory_order { memory_order_relaxed, memory_order_acquire, memory_order_release, memory_order_acq_rel, memory_order_seq_cst };
enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device };
template <class T> struct atomic {
  T value_;
};
template <class T> using _atomic = atomic<T>;
using atomic_int = atomic<int>;
using atomic_uint = atomic<uint>;
using atomic_bool = atomic<bool>;
using atomic_float = atomic<float>;
using atomic_long = atomic<long>;
using atomic_ulong = atomic<ulong>;

template <class T> PM_INLINE T atomic_load_explicit(const volatile atomic<T>* p, memory_order) {
  T r;
  __atomic_load(&p->value_, &r, __ATOMIC_RELAXED);
  return r;
}
template <class T> PM_INLINE void atomic_store_explicit(volatile atomic<T>* p, type_identity_t<T> v, memory_order) {
  __atomic_store(&p->value_, &v, __ATOMIC_RELAXED);
}
template <class T> PM_INLINE T atomic_exchange_explicit(volatile atomic<T>* p, type_identity_t<T> v, memory_order) {
  T r;
  __atomic_exchange(&p->value_, &v, &r, __ATOMIC_RELAXED);
  return r;
}
template <class T>
PM_INLINE bool atomic_compare_exchange_weak_explicit(
    volatile atomic<T>* p, T* expected, type_identity_t<T> v, memory_order, memory_order) {
  return __atomic_compare_exchange(&p->value_, expected, &v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
#define PM_ATOMIC(name, next) \
  template <class T> PM_INLINE T atomic_fetch_##name##_explicit(volatile atomic<T>* p, type_identity_t<T> b, memory_order) { \
    T a; \
    __atomic_load(&p->value_, &a, __ATOMIC_RELAXED); \
    for (;;) { \
      T n = next; \
      if (__atomic_compare_exchange(&p->value_, &a, &n, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return a; \
    } \
  }
PM_ATOMIC(add, a + b) PM_ATOMIC(sub, a - b) PM_ATOMIC(and, a & b) PM_ATOMIC(or, a | b) PM_ATOMIC(xor, a ^ b)
PM_ATOMIC(min, b < a ? b : a) PM_ATOMIC(max, a < b ? b : a)
#undef PM_ATOMIC
template <class T> PM_INLINE void atomic_max_explicit(volatile atomic<T>* p, type_identity_t<T> v, memory_order o) {
  atomic_fetch_max_explicit(p, v, o);
}
template <class T> PM_INLINE void atomic_min_explicit(volatile atomic<T>* p, type_identity_t<T> v, memory_order o) {
  atomic_fetch_min_explicit(p, v, o);
}
}  // namespace metal
