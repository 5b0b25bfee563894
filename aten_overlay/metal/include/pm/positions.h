// The values of a kernel's parameters that are positions and sizes (MSL section 5.2.3.6), given where a thread is.
#pragma once

namespace pm {
enum class attribute {
  buffer, threadgroup, texture, sampler, absent,
  thread_position_in_grid, thread_position_in_threadgroup, threadgroup_position_in_grid, threads_per_grid,
  threads_per_threadgroup, dispatch_threads_per_threadgroup, threadgroups_per_grid, thread_index_in_threadgroup,
  thread_index_in_simdgroup, simdgroup_index_in_threadgroup, simdgroups_per_threadgroup, dispatch_simdgroups_per_threadgroup,
  threads_per_simdgroup, thread_execution_width, thread_index_in_quadgroup, quadgroup_index_in_threadgroup,
  quadgroups_per_threadgroup, dispatch_quadgroups_per_threadgroup, grid_origin, grid_size,
};

template <class A> struct built_in { PM_INLINE static A from(const uint32_t* p) { return A(p[0]); } };
template <class T> struct built_in<metal::vec<T, 2>> {
  PM_INLINE static metal::vec<T, 2> from(const uint32_t* p) { return metal::vec<T, 2>(p[0], p[1]); }
};
template <class T> struct built_in<metal::vec<T, 3>> {
  PM_INLINE static metal::vec<T, 3> from(const uint32_t* p) { return metal::vec<T, 3>(p[0], p[1], p[2]); }
};
template <class T> constexpr unsigned size_of() {
  if constexpr (__is_void(T)) return 1;
  else return sizeof(T);
}
template <class T> constexpr unsigned align_of() {
  if constexpr (__is_void(T)) return 1;
  else return alignof(T);
}
// A parameter whose condition on function constants is false: nothing may come of it.
template <class A> struct none {
  PM_INLINE static A make() { return A{}; }
};
template <class T> struct none<T&> {
  PM_INLINE static T& make() { return *static_cast<T*>(nullptr); }
};

// t: a thread's position, local, group, size and index, and its grid's grid, group and groups.
template <attribute K, class D, class Thread> PM_INLINE D position(const Thread& t) {
  const auto& g = *t.grid;
  const uint32_t* n = t.size;
  if constexpr (K == attribute::thread_position_in_grid) return built_in<D>::from(t.position);
  else if constexpr (K == attribute::thread_position_in_threadgroup) return built_in<D>::from(t.local);
  else if constexpr (K == attribute::threadgroup_position_in_grid) return built_in<D>::from(t.group);
  else if constexpr (K == attribute::threads_per_grid || K == attribute::grid_size) return built_in<D>::from(g.grid);
  else if constexpr (K == attribute::threads_per_threadgroup) return built_in<D>::from(n);
  else if constexpr (K == attribute::dispatch_threads_per_threadgroup) return built_in<D>::from(g.group);
  else if constexpr (K == attribute::threadgroups_per_grid) return built_in<D>::from(g.groups);
  else if constexpr (K == attribute::grid_origin) return D(0);
  else if constexpr (K == attribute::thread_index_in_threadgroup) return D(t.index);
  else if constexpr (K == attribute::thread_index_in_simdgroup) return D(t.index & 31);
  else if constexpr (K == attribute::simdgroup_index_in_threadgroup) return D(t.index >> 5);
  else if constexpr (K == attribute::simdgroups_per_threadgroup) return D((n[0] * n[1] * n[2] + 31) >> 5);
  else if constexpr (K == attribute::dispatch_simdgroups_per_threadgroup) return D((g.group[0] * g.group[1] * g.group[2] + 31) >> 5);
  else if constexpr (K == attribute::thread_index_in_quadgroup) return D(t.index & 3);
  else if constexpr (K == attribute::quadgroup_index_in_threadgroup) return D(t.index >> 2);
  else if constexpr (K == attribute::quadgroups_per_threadgroup) return D((n[0] * n[1] * n[2] + 3) >> 2);
  else if constexpr (K == attribute::dispatch_quadgroups_per_threadgroup) return D((g.group[0] * g.group[1] * g.group[2] + 3) >> 2);
  else return D(32);
}
}  // namespace pm
