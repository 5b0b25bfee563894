// <metal_simdgroup>, quadgroups and barriers: MSL sections 6.9.1 to 6.9.3.
#pragma once
#include "internal.h"

namespace metal {
enum class mem_flags : uint { mem_none = 0, mem_device = 1, mem_threadgroup = 2, mem_texture = 4, mem_threadgroup_imageblock = 8, mem_object_data = 16 };
PM_INLINE constexpr mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(uint(a) | uint(b)); }
PM_INLINE constexpr mem_flags operator&(mem_flags a, mem_flags b) { return mem_flags(uint(a) & uint(b)); }
PM_INLINE void threadgroup_barrier(mem_flags) { pm_threadgroup_barrier(); }
PM_INLINE void threadgroup_barrier(mem_flags, memory_order) { pm_threadgroup_barrier(); }
PM_INLINE void simdgroup_barrier(mem_flags) {
  pm_simd_begin();
  pm_simd_wait();
}
PM_INLINE void atomic_thread_fence(mem_flags, memory_order, thread_scope = thread_scope_device) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
}  // namespace metal

namespace pm {
template <class T> PM_INLINE T read(const unsigned char* from) {
  T r;
  __builtin_memcpy(&r, from, sizeof(T));
  return r;
}
template <class T> PM_INLINE pm_slot* exchange(const T& v) {
  static_assert(sizeof(T) <= 32, "a simdgroup function takes at most 32 bytes");
  pm_slot* s = pm_simd_begin();
  __builtin_memcpy(s->data + s->lane * sizeof(T), &v, sizeof(T));
  pm_simd_wait();
  return s;
}
// Combines what all 32 lanes gave, pairwise as a GPU does: lane i with lane i + 16, then with i + 8, and so on.
template <class T, class F> PM_INLINE T combine_all(const pm_slot* s, F f) {
  T v[32];
  __builtin_memcpy(v, s->data, sizeof(v));
  for (uint width = 16; width > 0; width /= 2)
    for (uint i = 0; i < width; ++i) v[i] = f(v[i], v[i + width]);
  return v[0];
}
// Combines what the active lanes in `among` gave, one after the other.
template <class T, class F> PM_INLINE T combine(const pm_slot* s, uint among, F f) {
  const uint mask = s->mask & among;
  T acc{};
  bool first = true;
  for (uint k = 0; k < 32; ++k) {
    const uint i = s->reorder ? 31 - k : k;
    if (!(mask >> i & 1)) continue;
    const T v = read<T>(s->data + i * sizeof(T));
    acc = first ? v : f(acc, v);
    first = false;
  }
  return acc;
}
// Once per operation, and so out of line: what every lane runs through stays small enough to be inlined.
template <class T, class F> __attribute__((noinline)) void reduce_once(pm_slot* s, F f) {
  const T r = s->mask == ~0u && !s->reorder ? combine_all<T>(s, f) : combine<T>(s, ~0u, f);
  __builtin_memcpy(s->result, &r, sizeof(T));
  s->done = 1;
}
template <class T, class F> PM_INLINE T reduce(T v, F f) {
  pm_slot* s = exchange(v);
  if (!s->done) reduce_once<T>(s, f);
  return read<T>(s->result);
}
PM_INLINE uint quad_mask() { return 0xfu << (pm_lane() & ~3u); }
template <class T, class F> PM_INLINE T quad_reduce(T v, F f) { return combine<T>(exchange(v), quad_mask(), f); }
// What lane `from` gave; `otherwise` when it does not take part.
template <class T> PM_INLINE T fetch(T v, uint from, T otherwise) {
  const pm_slot* s = exchange(v);
  return from < 32 && (s->mask >> from & 1) ? read<T>(s->data + from * sizeof(T)) : otherwise;
}
template <class T, class F> PM_INLINE T prefix(T v, T start, bool inclusive, uint among, F f) {
  const pm_slot* s = exchange(v);
  const uint lane = pm_lane(), end = inclusive ? lane + 1 : lane;
  T acc = start;
  for (uint i = 0; i < end; ++i)
    if (s->mask & among & (1u << i)) acc = f(acc, read<T>(s->data + i * sizeof(T)));
  return acc;
}
template <class T> PM_INLINE T add(T a, T b) { return T(a + b); }
template <class T> PM_INLINE T multiply(T a, T b) { return T(a * b); }
template <class T> PM_INLINE T least(T a, T b) { return metal::min(a, b); }
template <class T> PM_INLINE T greatest(T a, T b) { return metal::max(a, b); }
template <class T> PM_INLINE T bit_and(T a, T b) { return T(a & b); }
template <class T> PM_INLINE T bit_or(T a, T b) { return T(a | b); }
template <class T> PM_INLINE T bit_xor(T a, T b) { return T(a ^ b); }
}  // namespace pm

namespace metal {
#define PM_REDUCTION(name, f) \
  template <class T> PM_INLINE T simd_##name(T v) { return pm::reduce(v, [](T a, T b) { return pm::f(a, b); }); } \
  template <class T> PM_INLINE T quad_##name(T v) { return pm::quad_reduce(v, [](T a, T b) { return pm::f(a, b); }); }
PM_REDUCTION(sum, add) PM_REDUCTION(product, multiply) PM_REDUCTION(min, least) PM_REDUCTION(max, greatest)
PM_REDUCTION(and, bit_and) PM_REDUCTION(or, bit_or) PM_REDUCTION(xor, bit_xor)
#undef PM_REDUCTION
#define PM_PREFIX(name, f, start) \
  template <class T> PM_INLINE T simd_prefix_inclusive_##name(T v) { \
    return pm::prefix(v, T(start), true, ~0u, [](T a, T b) { return pm::f(a, b); }); \
  } \
  template <class T> PM_INLINE T simd_prefix_exclusive_##name(T v) { \
    return pm::prefix(v, T(start), false, ~0u, [](T a, T b) { return pm::f(a, b); }); \
  } \
  template <class T> PM_INLINE T quad_prefix_inclusive_##name(T v) { \
    return pm::prefix(v, T(start), true, pm::quad_mask(), [](T a, T b) { return pm::f(a, b); }); \
  } \
  template <class T> PM_INLINE T quad_prefix_exclusive_##name(T v) { \
    return pm::prefix(v, T(start), false, pm::quad_mask(), [](T a, T b) { return pm::f(a, b); }); \
  }
PM_PREFIX(sum, add, 0) PM_PREFIX(product, multiply, 1)
#undef PM_PREFIX

struct simd_vote {
  using vote_t = ulong;
  vote_t votes;
  PM_INLINE explicit constexpr simd_vote(vote_t v = 0) : votes(v) {}
  PM_INLINE explicit constexpr operator vote_t() const { return votes; }
  PM_INLINE constexpr bool any() const { return votes != 0; }
  PM_INLINE constexpr bool all() const { return votes == 0xffffffffUL; }
};
PM_INLINE simd_vote simd_ballot(bool b) {
  return simd_vote(pm::reduce(b ? 1u << pm_lane() : 0u, [](uint x, uint y) { return x | y; }));
}
PM_INLINE bool simd_any(bool b) { return pm::reduce(uint(b), [](uint x, uint y) { return x | y; }); }
PM_INLINE bool simd_all(bool b) { return pm::reduce(uint(b), [](uint x, uint y) { return x & y; }); }
PM_INLINE simd_vote simd_active_threads_mask() {
  const uint nothing = 0;
  return simd_vote(pm::exchange(nothing)->mask);
}
PM_INLINE bool simd_is_first() {
  const uint nothing = 0;
  return pm_lane() == uint(__builtin_ctz(pm::exchange(nothing)->mask));
}
PM_INLINE bool simd_is_helper_thread() { return false; }
template <class T> PM_INLINE T simd_shuffle(T v, ushort lane) { return pm::fetch(v, lane & 31, T(0)); }
template <class T> PM_INLINE T simd_broadcast(T v, ushort lane) { return pm::fetch(v, lane & 31, T(0)); }
template <class T> PM_INLINE T simd_shuffle_xor(T v, ushort mask) { return pm::fetch(v, (pm_lane() ^ mask) & 31, T(0)); }
template <class T> PM_INLINE T simd_shuffle_down(T v, ushort delta) { return pm::fetch(v, pm_lane() + delta, v); }
template <class T> PM_INLINE T simd_shuffle_up(T v, ushort delta) { return pm::fetch(v, pm_lane() - delta, v); }
template <class T> PM_INLINE T simd_shuffle_rotate_down(T v, ushort delta) { return pm::fetch(v, (pm_lane() + delta) & 31, T(0)); }
template <class T> PM_INLINE T simd_shuffle_rotate_up(T v, ushort delta) { return pm::fetch(v, (pm_lane() - delta) & 31, T(0)); }
// Lanes shifted in from beyond the simdgroup come from `filler`, which continues it.
template <class T> PM_INLINE T simd_shuffle_and_fill_down(T v, T filler, ushort delta, ushort modulo = 32) {
  const uint lane = pm_lane(), base = lane & ~uint(modulo - 1), at = (lane - base) + delta;
  const T inside = pm::fetch(v, base + at, T(0)), outside = pm::fetch(filler, base + (at & (modulo - 1)), filler);
  return at < modulo ? inside : outside;
}
template <class T> PM_INLINE T simd_shuffle_and_fill_up(T v, T filler, ushort delta, ushort modulo = 32) {
  const uint lane = pm_lane(), base = lane & ~uint(modulo - 1), at = (lane - base) - delta;
  const T inside = pm::fetch(v, base + at, T(0)), outside = pm::fetch(filler, base + (at & (modulo - 1)), filler);
  return at < modulo ? inside : outside;
}
template <class T> PM_INLINE T simd_broadcast_first(T v) {
  const pm_slot* s = pm::exchange(v);
  return pm::read<T>(s->data + __builtin_ctz(s->mask) * sizeof(T));
}

struct quad_vote {
  using vote_t = ulong;
  vote_t votes;
  PM_INLINE explicit constexpr quad_vote(vote_t v = 0) : votes(v) {}
  PM_INLINE explicit constexpr operator vote_t() const { return votes; }
  PM_INLINE constexpr bool any() const { return votes != 0; }
  PM_INLINE constexpr bool all() const { return votes == 0xf; }
};
PM_INLINE quad_vote quad_ballot(bool b) {
  return quad_vote(pm::quad_reduce(b ? 1u << (pm_lane() & 3) : 0u, [](uint x, uint y) { return x | y; }));
}
PM_INLINE bool quad_any(bool b) { return quad_or(uint(b)); }
PM_INLINE bool quad_all(bool b) { return quad_and(uint(b)); }
template <class T> PM_INLINE T quad_shuffle(T v, ushort lane) { return pm::fetch(v, (pm_lane() & ~3u) | (lane & 3), T(0)); }
template <class T> PM_INLINE T quad_broadcast(T v, ushort lane) { return quad_shuffle(v, lane); }
template <class T> PM_INLINE T quad_shuffle_xor(T v, ushort mask) { return pm::fetch(v, pm_lane() ^ (mask & 3), T(0)); }
template <class T> PM_INLINE T quad_shuffle_down(T v, ushort delta) {
  const uint at = (pm_lane() & 3) + delta;
  return pm::fetch(v, at < 4 ? (pm_lane() & ~3u) + at : 32, v);
}
template <class T> PM_INLINE T quad_shuffle_up(T v, ushort delta) {
  const uint at = (pm_lane() & 3) - delta;
  return pm::fetch(v, at < 4 ? (pm_lane() & ~3u) + at : 32, v);
}
}  // namespace metal
