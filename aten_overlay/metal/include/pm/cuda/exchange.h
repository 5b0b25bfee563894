// Barriers, and how values go from lane to lane: what ../simdgroup.h is made of. A simdgroup is a warp. As in Metal, those
// lanes take part that are active, be they all or not.
#pragma once
#include "instructions.h"
#define PM_SIMD_WIDTH 32u
#define PM_MAX_VALUE 32

PM_INLINE uint pm_lane() { return uint(__nvvm_read_ptx_sreg_laneid()); }
PM_INLINE uint pm_index() { return uint(__nvvm_read_ptx_sreg_tid_x()); }

#ifdef PM_SCHEDULED
#include "schedule.h"
#endif

namespace pm {
PM_INLINE uint active_lanes() { return active_mask(); }
// What memory a barrier orders beyond the threadgroup's own, which the barrier itself orders.
PM_INLINE void order_memory(metal::mem_flags flags) {
  if (uint(flags & (metal::mem_flags::mem_device | metal::mem_flags::mem_texture))) __nvvm_membar_gl();
}
}  // namespace pm

namespace metal {
#ifdef PM_SCHEDULED
PM_INLINE void threadgroup_barrier(mem_flags flags, uint line = __builtin_LINE(), const char* file = __builtin_FILE()) {
  pm::order_memory(flags);
  pm::meet(line, file);
}
#else
PM_INLINE void threadgroup_barrier(mem_flags flags) {
  pm::order_memory(flags);
  __syncthreads();
}
#endif
PM_INLINE void threadgroup_barrier(mem_flags flags, memory_order) { threadgroup_barrier(flags); }
PM_INLINE void simdgroup_barrier(mem_flags flags) {
  pm::order_memory(flags);
  __nvvm_bar_warp_sync(pm::active_lanes());
}
PM_INLINE void atomic_thread_fence(mem_flags, memory_order, thread_scope scope = thread_scope_device) {
  if (scope == thread_scope_device) __nvvm_membar_gl();
  else if (scope != thread_scope_thread) __nvvm_membar_cta();
}
}  // namespace metal

namespace pm {
template <class T> using combination = T (*)(T, T);

// Any type of 1, 2 or a multiple of 4 bytes travels, a word at a time.
template <class T, class F> PM_INLINE T by_words(const T& v, F f) {
  T r;
  if constexpr (sizeof(T) % 4 == 0) {
    int words[sizeof(T) / 4];
    __builtin_memcpy(words, &v, sizeof(T));
#pragma unroll
    for (uint i = 0; i < sizeof(T) / 4; ++i) words[i] = f(words[i]);
    __builtin_memcpy(&r, words, sizeof(T));
  } else {
    static_assert(sizeof(T) < 4, "a simdgroup function takes 1, 2 or a multiple of 4 bytes");
    int word = 0;
    __builtin_memcpy(&word, &v, sizeof(T));
    word = f(word);
    __builtin_memcpy(&r, &word, sizeof(T));
  }
  return r;
}
template <class T> PM_INLINE T from_lane(uint mask, T v, uint lane) {
  return by_words(v, [=](int word) { return __nvvm_shfl_sync_idx_i32(mask, word, int(lane), 31); });
}
template <class T> PM_INLINE T from_above(uint mask, T v, uint by) {
  return by_words(v, [=](int word) { return __nvvm_shfl_sync_down_i32(mask, word, int(by), 31); });
}
template <class T> PM_INLINE T from_below(uint mask, T v, uint by) {
  return by_words(v, [=](int word) { return __nvvm_shfl_sync_up_i32(mask, word, int(by), 0); });
}
template <class T> PM_INLINE T from_partner(uint mask, T v, uint bits) {
  return by_words(v, [=](int word) { return __nvvm_shfl_sync_bfly_i32(mask, word, int(bits), 31); });
}

template <class T> inline constexpr bool fits_word = __is_integral(T) && sizeof(T) <= 4 && !__is_same(T, bool);
template <class T, combination<T> F> inline constexpr bool has_instruction = false;
template <class T> inline constexpr bool is_signed = T(-1) < T(0);
// One instruction combines integers, of any lanes.
template <class T, combination<T> F> PM_INLINE T reduce_integers(uint mask, T v) {
  if constexpr (F == &add<T>) return T(__nvvm_redux_sync_add(int(v), int(mask)));
  else if constexpr (F == &least<T>) return T(is_signed<T> ? __nvvm_redux_sync_min(int(v), int(mask)) : __nvvm_redux_sync_umin(uint(v), int(mask)));
  else if constexpr (F == &greatest<T>) return T(is_signed<T> ? __nvvm_redux_sync_max(int(v), int(mask)) : __nvvm_redux_sync_umax(uint(v), int(mask)));
  else if constexpr (F == &bit_and<T>) return T(__nvvm_redux_sync_and(int(v), int(mask)));
  else if constexpr (F == &bit_or<T>) return T(__nvvm_redux_sync_or(int(v), int(mask)));
  else return T(__nvvm_redux_sync_xor(int(v), int(mask)));
}
// All 32 lanes combine pairwise, in the order of the host's; fewer lanes one after the other.
template <class T, combination<T> F> PM_INLINE T reduce(T v) {
  const uint mask = active_lanes();
  if constexpr (fits_word<T>) {
    if constexpr (F != &multiply<T>) return reduce_integers<T, F>(mask, v);
  }
  if (mask == ~0u) {
#pragma unroll
    for (uint bits = 16; bits; bits /= 2) {
      const T other = from_partner(mask, v, bits);
      v = pm_lane() & bits ? F(other, v) : F(v, other);
    }
    return v;
  }
  T sum = from_lane(mask, v, uint(__builtin_ctz(mask)));
  for (uint left = mask & (mask - 1); left; left &= left - 1) sum = F(sum, from_lane(mask, v, uint(__builtin_ctz(left))));
  return sum;
}
template <class T, combination<T> F> PM_INLINE T quad_reduce(T v) {
  const uint mask = active_lanes(), base = pm_lane() & ~3u;
  T sum = v;
  bool first = true;
#pragma unroll
  for (uint i = 0; i < 4; ++i) {
    const T other = from_lane(mask, v, base + i);
    if (mask >> (base + i) & 1) sum = first ? other : F(sum, other), first = false;
  }
  return sum;
}
template <class T, combination<T> F, int Start, bool Inclusive, uint Width> PM_INLINE T prefix(T v) {
  const uint mask = active_lanes(), lane = pm_lane(), at = lane & (Width - 1);
  if (mask == ~0u) {
    T sum = v;
#pragma unroll
    for (uint by = 1; by < Width; by *= 2) {
      const T below = from_below(mask, sum, by);
      if (at >= by) sum = F(below, sum);
    }
    if constexpr (Inclusive) return sum;
    const T before = from_below(mask, sum, 1);
    return at ? before : T(Start);
  }
  T sum = T(Start);
  for (uint i = 0; i < Width; ++i) {
    const uint from = (lane & ~(Width - 1)) + i;
    const T other = from_lane(mask, v, from);
    if ((mask >> from & 1) && (from < lane || (Inclusive && from == lane))) sum = F(sum, other);
  }
  return sum;
}
PM_INLINE uint existing(uint lane) { return lane & 31; }
// The input of lane `from`; `otherwise` beyond the simdgroup, and where nothing defines it: for an inactive lane.
template <class T> PM_INLINE T fetch(T v, uint from, T otherwise) {
  const uint mask = active_lanes();
  const T value = from_lane(mask, v, from & 31);
  return from < 32 && (mask >> from & 1) ? value : otherwise;
}
// Lane `at` of the part of a simdgroup that starts at `base`; beyond that part, the filler's, which continues it.
template <class T> PM_INLINE T fetch_or_fill(T v, T filler, uint base, uint at, uint modulo) {
  const bool inside = at < modulo;
  const T own = fetch(v, inside ? base + at : pm_lane(), T(0));
  const T filled = fetch(filler, inside ? pm_lane() : base + (at & (modulo - 1)), filler);
  return inside ? own : filled;
}
template <class T> PM_INLINE T fetch_first(T v) {
  const uint mask = active_lanes();
  return from_lane(mask, v, uint(__builtin_ctz(mask)));
}
PM_INLINE uint ballot(bool b) { return uint(__nvvm_vote_ballot_sync(active_lanes(), b)); }
// Calls f with each lane and its value.
template <class T, class F> PM_INLINE void for_each_lane(const T& v, F f) {
  const uint mask = active_lanes();
  for (uint lane = 0; lane < 32; ++lane) f(lane, from_lane(mask, v, lane));
}
}  // namespace pm
