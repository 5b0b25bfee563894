// <metal_simdgroup> and quadgroups: MSL sections 6.9.2 and 6.9.3. A target has the barriers, and in namespace pm the
// exchanges: reduce, quad_reduce, prefix, fetch, fetch_or_fill, fetch_first, existing, ballot and active_lanes.
#pragma once

namespace metal {
// Lanes exchange no bools. A swizzle goes by the forms of forms.h.
#define PM_EXCHANGE template <class T, class = enable_if_t<!pm::stands_for_vector<T> && !is_same_v<T, bool>>> PM_INLINE
#define PM_REDUCTION(name, f) \
  PM_EXCHANGE T simd_##name(T v) { return pm::reduce<T, pm::f<T>>(v); } \
  PM_EXCHANGE T quad_##name(T v) { return pm::quad_reduce<T, pm::f<T>>(v); }
PM_REDUCTION(sum, add) PM_REDUCTION(product, multiply) PM_REDUCTION(min, least) PM_REDUCTION(max, greatest)
PM_REDUCTION(and, bit_and) PM_REDUCTION(or, bit_or) PM_REDUCTION(xor, bit_xor)
#undef PM_REDUCTION
#define PM_PREFIX(name, f, start) \
  PM_EXCHANGE T simd_prefix_inclusive_##name(T v) { return pm::prefix<T, pm::f<T>, start, true, 32>(v); } \
  PM_EXCHANGE T simd_prefix_exclusive_##name(T v) { return pm::prefix<T, pm::f<T>, start, false, 32>(v); } \
  PM_EXCHANGE T quad_prefix_inclusive_##name(T v) { return pm::prefix<T, pm::f<T>, start, true, 4>(v); } \
  PM_EXCHANGE T quad_prefix_exclusive_##name(T v) { return pm::prefix<T, pm::f<T>, start, false, 4>(v); }
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
PM_INLINE simd_vote simd_ballot(bool b) { return simd_vote(pm::ballot(b)); }
PM_INLINE bool simd_any(bool b) { return simd_or(uint(b)); }
PM_INLINE bool simd_all(bool b) { return simd_and(uint(b)); }
PM_INLINE simd_vote simd_active_threads_mask() { return simd_vote(pm::active_lanes()); }
PM_INLINE bool simd_is_first() {
  return pm_lane() == uint(__builtin_ctzl(ulong(simd_active_threads_mask())));
}
PM_INLINE bool simd_is_helper_thread() { return false; }
PM_EXCHANGE T simd_shuffle(T v, ushort lane) { return pm::fetch(v, pm::existing(lane), T(0)); }
PM_EXCHANGE T simd_broadcast(T v, ushort lane) { return pm::fetch(v, pm::existing(lane), T(0)); }
PM_EXCHANGE T simd_shuffle_xor(T v, ushort mask) { return pm::fetch(v, pm::existing(pm_lane() ^ mask), T(0)); }
PM_EXCHANGE T simd_shuffle_down(T v, ushort delta) { return pm::fetch(v, pm_lane() + delta, v); }
PM_EXCHANGE T simd_shuffle_up(T v, ushort delta) { return pm::fetch(v, pm_lane() - delta, v); }
PM_EXCHANGE T simd_shuffle_rotate_down(T v, ushort delta) { return pm::fetch(v, (pm_lane() + delta) & 31, T(0)); }
PM_EXCHANGE T simd_shuffle_rotate_up(T v, ushort delta) { return pm::fetch(v, (pm_lane() - delta) & 31, T(0)); }
// Lanes shifted in from beyond the simdgroup come from `filler`, which continues it.
PM_EXCHANGE T simd_shuffle_and_fill_down(T v, T filler, ushort delta, ushort modulo = 32) {
  const uint lane = pm_lane(), base = lane & ~uint(modulo - 1), at = (lane - base) + delta;
  return pm::fetch_or_fill(v, filler, base, at, modulo);
}
PM_EXCHANGE T simd_shuffle_and_fill_up(T v, T filler, ushort delta, ushort modulo = 32) {
  const uint lane = pm_lane(), base = lane & ~uint(modulo - 1), at = (lane - base) - delta;
  return pm::fetch_or_fill(v, filler, base, at, modulo);
}
PM_EXCHANGE T simd_broadcast_first(T v) { return pm::fetch_first(v); }

struct quad_vote {
  using vote_t = ulong;
  vote_t votes;
  PM_INLINE explicit constexpr quad_vote(vote_t v = 0) : votes(v) {}
  PM_INLINE explicit constexpr operator vote_t() const { return votes; }
  PM_INLINE constexpr bool any() const { return votes != 0; }
  PM_INLINE constexpr bool all() const { return votes == 0xf; }
};
PM_INLINE quad_vote quad_ballot(bool b) {
  return quad_vote(pm::quad_reduce<uint, pm::bit_or<uint>>(b ? 1u << (pm_lane() & 3) : 0u));
}
PM_INLINE bool quad_any(bool b) { return quad_or(uint(b)); }
PM_INLINE bool quad_all(bool b) { return quad_and(uint(b)); }
PM_EXCHANGE T quad_shuffle(T v, ushort lane) { return pm::fetch(v, (pm_lane() & ~3u) | (lane & 3), T(0)); }
PM_EXCHANGE T quad_broadcast(T v, ushort lane) { return quad_shuffle(v, lane); }
PM_EXCHANGE T quad_shuffle_xor(T v, ushort mask) { return pm::fetch(v, pm_lane() ^ (mask & 3), T(0)); }
PM_EXCHANGE T quad_shuffle_down(T v, ushort delta) {
  const uint at = (pm_lane() & 3) + delta;
  return pm::fetch(v, at < 4 ? (pm_lane() & ~3u) + at : 32, v);
}
PM_EXCHANGE T quad_shuffle_up(T v, ushort delta) {
  const uint at = (pm_lane() & 3) - delta;
  return pm::fetch(v, at < 4 ? (pm_lane() & ~3u) + at : 32, v);
}
PM_EXCHANGE T quad_shuffle_rotate_down(T v, ushort delta) { return quad_shuffle(v, ushort(pm_lane() + delta)); }
PM_EXCHANGE T quad_shuffle_rotate_up(T v, ushort delta) { return quad_shuffle(v, ushort(pm_lane() - delta)); }
PM_EXCHANGE T quad_shuffle_and_fill_down(T v, T filler, ushort delta, ushort modulo = 4) {
  return simd_shuffle_and_fill_down(v, filler, delta, modulo);
}
PM_EXCHANGE T quad_shuffle_and_fill_up(T v, T filler, ushort delta, ushort modulo = 4) {
  return simd_shuffle_and_fill_up(v, filler, delta, modulo);
}
PM_INLINE quad_vote quad_active_threads_mask() {
  return quad_vote(ulong(simd_active_threads_mask()) >> (pm_lane() & ~3u) & 0xf);
}
PM_INLINE uint pm_first_of_quad() { return __builtin_ctzl(ulong(quad_active_threads_mask())); }
PM_INLINE bool quad_is_first() { return (pm_lane() & 3) == pm_first_of_quad(); }
PM_INLINE bool quad_is_helper_thread() { return false; }
PM_EXCHANGE T quad_broadcast_first(T v) { return quad_shuffle(v, ushort(pm_first_of_quad())); }
#undef PM_EXCHANGE
}  // namespace metal
