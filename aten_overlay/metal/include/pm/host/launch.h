// Turns a kernel function into the entries of the launch table. The parameter types are deduced from the function itself;
// the front end only says, by a Spec, which attribute each parameter had.
#pragma once
#include "../../porter_metal_abi.h"
#include "internal.h"
#include "../positions.h"

namespace pm {
struct parameter {
  attribute kind;
  unsigned index;
  const char* name;
  bool streamed = false;  // the buffer's element for a thread is at the thread's position
};

template <class A> struct bound {};
template <class T> struct bound<T*> {
  static constexpr bool reference = false, writable = !__is_const(T);
  using target = T;
  PM_INLINE static T* from(void* p) { return static_cast<T*>(p); }
};
template <class T> struct bound<T&> {
  static constexpr bool reference = true, writable = !__is_const(T);
  using target = T;
  PM_INLINE static T& from(void* p) { return *static_cast<T*>(p); }
};
// How many bindings an argument takes: an array of textures or samplers has one for each.
template <class D> inline constexpr unsigned bindings_of = 1;
template <class T, size_t N> inline constexpr unsigned bindings_of<metal::array<T, N>> = N;
template <class D> struct resource { PM_INLINE static D from(void* const* bound) { return D::from(bound[0]); } };
template <class T, size_t N> struct resource<metal::array<T, N>> {
  PM_INLINE static metal::array<T, N> from(void* const* bound) {
    metal::array<T, N> all;
    for (size_t i = 0; i < N; ++i) all[i] = T::from(bound[i]);
    return all;
  }
};
template <class D> struct element_of { using type = D; };
template <class T, size_t N> struct element_of<metal::array<T, N>> { using type = T; };

template <attribute K, unsigned I, class A>
PM_INLINE decltype(auto) argument(void* const* buffers, void* const* threadgroup, const pm_thread& t) {
  using D = __remove_cv(__remove_reference_t(A));
  if constexpr (K == attribute::buffer) return (bound<A>::from(buffers[I]));
  else if constexpr (K == attribute::texture || K == attribute::sampler) return resource<D>::from(buffers + I);
  else if constexpr (K == attribute::absent) return (none<A>::make());
  else if constexpr (K == attribute::threadgroup) return (bound<A>::from(threadgroup[I]));
  else return position<K, D>(t);
}

// Memory is asked for ahead of the threads that use it: a processor by itself does not look past the end of a page. First
// a few pages at once, whose addresses are then looked up side by side, later their lines.
inline constexpr uint32_t between_lines = 64, between_pages = 8192;  // threads
inline constexpr uint64_t line = 64, page = 4096, pages_ahead = 4096, read_ahead = 2048, write_ahead = 512;  // bytes
template <attribute K, class B> PM_INLINE void request(const parameter& p, void* const* buffers, uint64_t x) {
  if constexpr (K == attribute::buffer) {
    using M = bound<B>;
    constexpr uint64_t size = size_of<typename M::target>();
    if (!p.streamed || M::reference) return;
    const char* at = static_cast<const char*>(buffers[p.index]) + x * size;
    if (x % between_pages == 0)
      for (uint64_t i = 0; i < between_pages * size; i += page) __builtin_prefetch(at + pages_ahead + i, M::writable);
#pragma unroll
    for (uint64_t i = 0; i < between_lines * size; i += line)
      __builtin_prefetch(at + (M::writable ? write_ahead : read_ahead) + i, M::writable);
  }
}

template <attribute K, class B> constexpr bool is_half_stream(const parameter& p) {
  if constexpr (K == attribute::buffer) return p.streamed && __is_same(__remove_cv(typename bound<B>::target), half);
  else return false;
}

template <size_t...> struct indices {};
template <class T, T... I> using make_indices = indices<I...>;

template <class T> constexpr uint32_t type_of() {
  if constexpr (__is_same(T, bool)) return PM_BOOL;
  else if constexpr (__is_same(T, half)) return PM_HALF;
  else if constexpr (__is_same(T, float)) return PM_FLOAT;
  else if constexpr (__is_same(T, bfloat)) return PM_BFLOAT;
  else if constexpr (__is_integral(T)) return (sizeof(T) == 1 ? PM_CHAR : sizeof(T) == 2 ? PM_SHORT : sizeof(T) == 4 ? PM_INT : PM_LONG) + !__is_signed(T);
  else return PM_OTHER;
}

// What a kernel's arguments are bound to. The instances of a template have this in common.
template <attribute K, class B> constexpr pm_argument describe(const parameter& p) {
  if constexpr (K == attribute::buffer || K == attribute::threadgroup) {
    using M = bound<B>;
    using T = typename M::target;
    const uint32_t kind = K == attribute::threadgroup ? PM_THREADGROUP : M::reference ? PM_CONSTANT_REFERENCE : PM_BUFFER;
    return {p.name, kind, p.index, size_of<T>(), align_of<T>(), K == attribute::buffer && M::writable, type_of<element_t<T>>()};
  } else if constexpr (K == attribute::texture || K == attribute::sampler) {
    return {p.name, K == attribute::texture ? PM_TEXTURE : PM_SAMPLER, p.index, 1, 1,
            K == attribute::texture && element_of<__remove_cv(__remove_reference_t(B))>::type::writable, PM_OTHER};
  } else {
    return {};
  }
}
template <attribute K, class B> inline constexpr unsigned bindings =
    K == attribute::buffer || K == attribute::threadgroup;
template <class B> inline constexpr unsigned bindings<attribute::texture, B> = bindings_of<__remove_cv(__remove_reference_t(B))>;
template <class B> inline constexpr unsigned bindings<attribute::sampler, B> = bindings_of<__remove_cv(__remove_reference_t(B))>;

// The axes whose threads, or threadgroups from bit 3 on, a kernel places in 16 bits; from bit 6 on, it counts them so.
template <class D> inline constexpr uint32_t narrow_axes = __is_integral(D) && sizeof(D) == 2;
template <class T, int N> inline constexpr uint32_t narrow_axes<metal::vec<T, N>> = sizeof(T) == 2 ? (1u << N) - 1 : 0;
template <attribute K, class A> constexpr uint32_t find_narrow() {
  using D = __remove_cv(__remove_reference_t(A));
  if constexpr (K == attribute::thread_position_in_grid) return narrow_axes<D>;
  else if constexpr (K == attribute::threadgroup_position_in_grid) return narrow_axes<D> << 3;
  else if constexpr (K == attribute::threads_per_grid || K == attribute::grid_size) return narrow_axes<D> << 6;
  else if constexpr (K == attribute::threadgroups_per_grid) return narrow_axes<D> << 9;
  else return 0;
}

template <class Spec, class Signature> struct described;
template <class Spec, class... A> struct described<Spec, void (*)(A...)> {
  static_assert(sizeof...(A) == Spec::count, "a kernel's instantiation has other parameters than its definition");
  template <size_t... I> static constexpr unsigned count_all(indices<I...>) { return (0u + ... + bindings<Spec::parameters[I].kind, A>); }
  static constexpr unsigned count = count_all(__make_integer_seq<make_indices, size_t, sizeof...(A)>{});
  struct table { pm_argument rows[count + 1]; };
  template <size_t... I> static constexpr table describe_all(indices<I...>) {
    const pm_argument all[] = {describe<Spec::parameters[I].kind, A>(Spec::parameters[I])..., {}};
    const unsigned taken[] = {bindings<Spec::parameters[I].kind, A>..., 0};
    table bound_only = {};
    unsigned n = 0;
    for (size_t i = 0; i < sizeof...(A); ++i)
      for (unsigned k = 0; k < taken[i]; ++k) {
        bound_only.rows[n] = all[i];
        bound_only.rows[n++].index += k;
      }
    return bound_only;
  }
  static constexpr table all = describe_all(__make_integer_seq<make_indices, size_t, sizeof...(A)>{});
  static constexpr const pm_argument* arguments() { return all.rows; }
  template <size_t... I> static constexpr uint32_t find_all_narrow(indices<I...>) { return (0u | ... | find_narrow<Spec::parameters[I].kind, A>()); }
  static constexpr uint32_t narrow = find_all_narrow(__make_integer_seq<make_indices, size_t, sizeof...(A)>{});
};

template <class Spec, class Signature, Signature Function> struct kernel;
template <class Spec, class... A, void (*Function)(A...)> struct kernel<Spec, void (*)(A...), Function> {
  using order = __make_integer_seq<make_indices, size_t, sizeof...(A)>;

  template <size_t... I>
  PM_INLINE static void call(indices<I...>, void* const* buffers, void* const* threadgroup, const pm_thread& t) {
    Function(argument<Spec::parameters[I].kind, Spec::parameters[I].index, A>(buffers, threadgroup, t)...);
  }
  PM_INLINE static void lane(
      void* const* buffers, void* const* threadgroup, const pm_group* where, uint32_t index, uint32_t x, uint32_t y, uint32_t z) {
    pm_thread t;
    const uint32_t local[3] = {x, y, z};
    for (int d = 0; d < 3; ++d) {
      t.local[d] = local[d];
      t.group[d] = where->at[d];
      t.size[d] = where->size[d];
      t.position[d] = where->at[d] * where->grid->group[d] + local[d];
    }
    t.index = index;
    t.grid = where->grid;
    call(order{}, buffers, threadgroup, t);
    pm_lane_ended();
  }

  static constexpr bool any_streamed() {
    for (const parameter& p : Spec::parameters)
      if (p.streamed) return true;
    return false;
  }
  template <size_t... I> static constexpr bool streams_halves(indices<I...>) {
    return (is_half_stream<Spec::parameters[I].kind, A>(Spec::parameters[I]) || ...);
  }
  template <size_t... I> PM_INLINE static void request_all(indices<I...>, void* const* buffers, uint32_t x) {
    (request<Spec::parameters[I].kind, A>(Spec::parameters[I], buffers, x), ...);
  }

  // Addresses are copied first: were they read through the argument, a store of the kernel could change them.
  static void rows(void* const* given, const pm_grid* grid, uint64_t begin, uint64_t end) {
    void* buffers[Spec::buffers + 1];
    for (unsigned i = 0; i < Spec::buffers; ++i) buffers[i] = given[i];
    const pm_grid g = *grid;
    pm_thread t{};
    t.grid = &g;
    const uint64_t width = g.grid[0], height = g.grid[1];
    for (uint64_t i = begin; i < end;) {
      const uint64_t x0 = i % width, row = i / width;
      const uint64_t n = width - x0 < end - i ? width - x0 : end - i;
      t.position[1] = uint32_t(row % height);
      t.position[2] = uint32_t(row / height);
      const uint32_t last = uint32_t(x0 + n);
      for (uint32_t x = uint32_t(x0); x < last;) {
        const uint32_t stop = any_streamed() && last - x > between_lines ? x + between_lines : last;
        request_all(order{}, buffers, x);
        if constexpr (streams_halves(order{})) {
#pragma clang loop vectorize_width(16)  // left to itself, the compiler takes 4 halves at a time
          for (; x < stop; ++x) {
            t.position[0] = x;
            call(order{}, buffers, nullptr, t);
          }
        } else {
          for (; x < stop; ++x) {
            t.position[0] = x;
            call(order{}, buffers, nullptr, t);
          }
        }
      }
      i += n;
    }
  }

  static void groups(void* const* given, void* const* threadgroup, const pm_grid* grid, uint64_t begin, uint64_t end) {
    void* buffers[Spec::buffers + 1];
    for (unsigned i = 0; i < Spec::buffers; ++i) buffers[i] = given[i];
    const pm_grid g = *grid;
    pm_thread t{};
    t.grid = &g;
    for (uint64_t i = begin; i < end; ++i) {
      const uint64_t at[3] = {i % g.groups[0], i / g.groups[0] % g.groups[1], i / g.groups[0] / g.groups[1]};
      for (int d = 0; d < 3; ++d) {
        t.group[d] = uint32_t(at[d]);
        const uint32_t left = g.grid[d] - t.group[d] * g.group[d];
        t.size[d] = left < g.group[d] ? left : g.group[d];
      }
      for (uint32_t z = 0; z < t.size[2]; ++z)
        for (uint32_t y = 0; y < t.size[1]; ++y)
          for (uint32_t x = 0; x < t.size[0]; ++x) {
            t.local[0] = x, t.local[1] = y, t.local[2] = z;
            for (int d = 0; d < 3; ++d) t.position[d] = t.group[d] * g.group[d] + t.local[d];
            t.index = x + t.size[0] * (y + t.size[1] * z);
            call(order{}, buffers, threadgroup, t);
          }
    }
  }
};
}  // namespace pm

// For kernel number `n`: what the generated code is completed with (see shared.py), and what that is made of.
#define PM_TYPE(...) __VA_ARGS__
#define PM_SHARES(n) \
  extern "C" __attribute__((weak, visibility("hidden"))) void pm_lockstep_##n(void* const*, void* const*, const pm_group*, pm_lanes*); \
  extern "C" __attribute__((visibility("hidden"))) const unsigned pm_static_bytes_##n;
#define PM_LANE_SOURCE(n, type, function) \
  extern "C" __attribute__((visibility("hidden"))) void pm_lane_source_##n( \
      void* const* buffers, void* const* threadgroup, const pm_group* where, unsigned index, unsigned x, unsigned y, unsigned z) { \
    using pm_type = type; \
    constexpr pm_type pm_function = function; \
    pm::kernel<::pm_spec_##n, pm_type, pm_function>::lane(buffers, threadgroup, where, index, x, y, z); \
  }
