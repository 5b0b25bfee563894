// Barriers, and how values go from lane to lane: what simdgroup.h is made of.
#pragma once
#include "internal.h"

namespace metal {
// Tells the sanitizer of what orders memory.
PM_INLINE void pm_note_order([[maybe_unused]] mem_flags flags, [[maybe_unused]] bool simdgroup) {
#ifdef PM_SANITIZE
  pm_note_barrier(uint(flags), simdgroup);
#endif
}
PM_INLINE void threadgroup_barrier(mem_flags flags) {
  pm_note_order(flags, false);
  pm_threadgroup_barrier();
}
PM_INLINE void threadgroup_barrier(mem_flags flags, memory_order) { threadgroup_barrier(flags); }
PM_INLINE void simdgroup_barrier(mem_flags flags) {
  pm_note_order(flags, true);
  pm_simd_begin(nullptr, 0);
  pm_simd_wait(nullptr);
}
PM_INLINE void atomic_thread_fence([[maybe_unused]] mem_flags flags, memory_order, thread_scope = thread_scope_device) {
#ifdef PM_SANITIZE
  pm_note_fence(uint(flags));
#endif
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
}  // namespace metal

namespace pm {
// Reads at this point of the program: a later operation of the simdgroup overwrites the same bytes.
template <class W> PM_INLINE W load_word(const unsigned char* from, uint i = 0) {
  W word = reinterpret_cast<const volatile W*>(from)[i];
  asm volatile("" : "+r"(word));
  return word;
}
template <class T> PM_INLINE T load(const unsigned char* from) {
  T r;
  if constexpr (sizeof(T) % 4 == 0) {
    uint words[sizeof(T) / 4];
    for (uint i = 0; i < sizeof(T) / 4; ++i) words[i] = load_word<uint>(from, i);
    __builtin_memcpy(&r, words, sizeof(T));
  } else if constexpr (sizeof(T) == 2) {
    const ushort word = load_word<ushort>(from);
    __builtin_memcpy(&r, &word, 2);
  } else {
    static_assert(sizeof(T) == 1, "a simdgroup function takes 1, 2 or a multiple of 4 bytes");
    const uchar word = load_word<uchar>(from);
    __builtin_memcpy(&r, &word, 1);
  }
  return r;
}
template <class T> constexpr uint step_of() {
  uint step = 1;
  while (step < sizeof(T)) step *= 2;
  return step;
}
template <class T> constexpr uint offset_of(uint thread) { return (PM_MAX_THREADS_PER_GROUP + thread) * step_of<T>(); }
PM_INLINE uint active_lanes(const pm_exchange* x) {
  return load_word<uint>(reinterpret_cast<const unsigned char*>(x->mask), pm_index() >> 5);
}
template <class T> constexpr bool has_64_bits = __is_same(T, long) || __is_same(T, ulong);
template <class T, int N> constexpr bool has_64_bits<metal::vec<T, N>> = has_64_bits<T>;
// Contributes v, and waits until `step` has computed the outputs from the inputs of all lanes.
template <class T> PM_INLINE const pm_exchange* exchange(const T& v, pm_step step) {
  static_assert(sizeof(T) <= PM_MAX_VALUE, "a simdgroup function takes at most 32 bytes");
#ifdef PM_FAMILY
  static_assert(!has_64_bits<T>, "PTR276 Metal's simdgroup functions take no integers of 64 bits");
#endif
  pm_exchange* x = pm_simd_begin(step, 0);
  __builtin_memcpy(x->inputs + offset_of<T>(pm_index()), &v, sizeof(T));
  pm_simd_wait(step);
  return x;
}
// The output for thread `i` of the threadgroup.
template <class T> PM_INLINE T read_output(const pm_exchange* x, uint i) { return load<T>(x->outputs + offset_of<T>(i)); }
template <class T> PM_INLINE T read_own_output(const pm_exchange* x) { return read_output<T>(x, pm_index()); }

template <class T> struct Lanes {
  T v[32];
  PM_INLINE Lanes(const pm_exchange* x, uint simd) {
    for (uint i = 0; i < 32; ++i) __builtin_memcpy(&v[i], x->inputs + offset_of<T>(simd * 32 + i), sizeof(T));
  }
  PM_INLINE void publish(pm_exchange* x, uint simd) const {
    for (uint i = 0; i < 32; ++i) __builtin_memcpy(x->outputs + offset_of<T>(simd * 32 + i), &v[i], sizeof(T));
  }
};
template <class T> using combination = T (*)(T, T);

// The steps, each once per operation and simdgroup. All 32 lanes combine pairwise as on a GPU: lane i with lane i + 16,
// then with i + 8, and so on; fewer lanes one after the other.
template <class T> void share_step(pm_exchange* x, uint simd) {
  const uint from = offset_of<T>(simd * 32);
  __builtin_memcpy(x->outputs + from, x->inputs + from, 32 * step_of<T>());
}
template <class T, combination<T> F> PM_INLINE T combine(const Lanes<T>& lanes, uint mask, bool backwards) {
  T acc{};
  bool first = true;
  for (uint k = 0; k < 32; ++k) {
    const uint i = backwards ? 31 - k : k;
    if (!(mask >> i & 1)) continue;
    acc = first ? lanes.v[i] : F(acc, lanes.v[i]);
    first = false;
  }
  return acc;
}
template <class T, combination<T> F> void reduce_step(pm_exchange* x, uint simd) {
  Lanes<T> lanes(x, simd);
  if (x->mask[simd] == ~0u && !x->reorder) {
    for (uint width = 16; width > 0; width /= 2)
      for (uint i = 0; i < width; ++i) lanes.v[i] = F(lanes.v[i], lanes.v[i + width]);
  } else {
    lanes.v[0] = combine<T, F>(lanes, x->mask[simd], x->reorder);
  }
  for (uint i = 1; i < 32; ++i) lanes.v[i] = lanes.v[0];
  lanes.publish(x, simd);
}
template <class T, combination<T> F> void quad_step(pm_exchange* x, uint simd) {
  Lanes<T> lanes(x, simd);
  for (uint quad = 0; quad < 32; quad += 4) {
    const T r = combine<T, F>(lanes, x->mask[simd] & 0xfu << quad, x->reorder);
    for (uint i = 0; i < 4; ++i) lanes.v[quad + i] = r;
  }
  lanes.publish(x, simd);
}
template <class T, combination<T> F, int Start, bool Inclusive, uint Width> void prefix_step(pm_exchange* x, uint simd) {
  Lanes<T> lanes(x, simd);
  T acc = T(Start);
  for (uint i = 0; i < 32; ++i) {
    if (i % Width == 0) acc = T(Start);
    const bool active = x->mask[simd] >> i & 1;
    const T next = active ? F(acc, lanes.v[i]) : acc;
    lanes.v[i] = Inclusive ? next : acc;
    acc = next;
  }
  lanes.publish(x, simd);
}
template <class T, combination<T> F> PM_INLINE T reduce(T v) { return read_own_output<T>(exchange(v, reduce_step<T, F>)); }
template <class T, combination<T> F> PM_INLINE T quad_reduce(T v) { return read_own_output<T>(exchange(v, quad_step<T, F>)); }
template <class T, combination<T> F, int Start, bool Inclusive, uint Width> PM_INLINE T prefix(T v) {
  return read_own_output<T>(exchange(v, prefix_step<T, F, Start, Inclusive, Width>));
}
// Stands for a lane that is not one, and that nothing defines the value of.
constexpr uint no_lane = 64;
PM_INLINE uint existing(uint lane) {
#ifdef PM_SANITIZE
  return lane < 32 ? lane : no_lane;
#else
  return lane & 31;
#endif
}
// The bytes of the pattern are no small number in any type: a sum with one would look like a sum with 0.
template <class T> PM_INLINE T open_value([[maybe_unused]] uint from, [[maybe_unused]] T own, T otherwise) {
#ifdef PM_SANITIZE
  const uint how = pm_inactive_lane(from);
  if (how < 2) __builtin_memset(&own, how ? 0 : 0x47, sizeof(T));
  return own;
#else
  return otherwise;
#endif
}
// The input of lane `from`; `otherwise` beyond the simdgroup, and where nothing defines it: for an inactive lane, or none.
template <class T> PM_INLINE T fetch(T v, uint from, T otherwise) {
  const pm_exchange* x = exchange(v, share_step<T>);
  const T value = read_output<T>(x, (pm_index() & ~31u) + (from & 31));
  if (from < 32 && (active_lanes(x) >> from & 1)) return value;
  return from < 32 || from == no_lane ? open_value(from, v, otherwise) : otherwise;
}
// Lane `at` of the part of a simdgroup that starts at `base`; beyond that part, the filler's, which continues it.
template <class T> PM_INLINE T fetch_or_fill(T v, T filler, uint base, uint at, uint modulo) {
  const bool inside = at < modulo;
  const T own = fetch(v, inside ? base + at : pm_lane(), T(0));
  const T filled = fetch(filler, inside ? pm_lane() : base + (at & (modulo - 1)), filler);
  return inside ? own : filled;
}
template <class T> PM_INLINE T fetch_first(T v) {
  const pm_exchange* x = exchange(v, share_step<T>);
  const uint first = __builtin_ctz(active_lanes(x));
  return read_output<T>(x, (pm_index() & ~31u) + first);
}
PM_INLINE uint ballot(bool b) { return reduce<uint, bit_or<uint>>(b ? 1u << pm_lane() : 0u); }
PM_INLINE uint active_lanes() { return active_lanes(exchange(0u, share_step<uint>)); }
// Calls f with each lane and its value.
template <class T, class F> PM_INLINE void for_each_lane(const T& v, F f) {
  const pm_exchange* x = exchange(v, share_step<T>);
  for (uint lane = 0; lane < 32; ++lane) f(lane, read_output<T>(x, (pm_index() & ~31u) + lane));
}
}  // namespace pm
