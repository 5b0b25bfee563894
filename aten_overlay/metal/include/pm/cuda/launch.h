// What the entries of kernels are made of. A block has one dimension and numbers its threads as Metal numbers those of a
// threadgroup, also of a smaller one at the edge of the grid.
#pragma once
#include "../positions.h"

extern "C" {
PM_DYNAMIC unsigned char pm_dynamic[];
}

namespace pm {
// The first parameter of every entry.
struct dims {
  uint grid[3], group[3], groups[3];  // threads per grid, threads per threadgroup, threadgroups per grid
};
struct place {
  uint position[3], local[3], group[3], size[3], index;
  const dims* grid;

  PM_INLINE explicit place(const dims& d) : index(pm_index()), grid(&d) {}
  // Whether the thread exists. Blocks have the dimensions of the grid, or one that counts threadgroups if a dimension of these
  // is too large for that.
  PM_INLINE bool find() {
    const dims& d = *grid;
#ifdef PM_SCHEDULED
    if (!find_scheduled(group)) return false;
    wait_a_while(0);
#else
    if (d.groups[1] > 65535 || d.groups[2] > 65535) {
      const ulong all = uint(__nvvm_read_ptx_sreg_ctaid_x()) + ulong(uint(__nvvm_read_ptx_sreg_nctaid_x())) * uint(__nvvm_read_ptx_sreg_ctaid_y());
      const ulong row = all / d.groups[0];
      group[0] = uint(all % d.groups[0]), group[1] = uint(row % d.groups[1]);
      if (row / d.groups[1] >= d.groups[2]) return false;
      group[2] = uint(row / d.groups[1]);
    } else {
      group[0] = __nvvm_read_ptx_sreg_ctaid_x(), group[1] = __nvvm_read_ptx_sreg_ctaid_y(), group[2] = __nvvm_read_ptx_sreg_ctaid_z();
    }
#endif
    for (int i = 0; i < 3; ++i) {
      const uint left = d.grid[i] - group[i] * d.group[i];
      size[i] = left < d.group[i] ? left : d.group[i];
    }
    if (index >= size[0] * size[1] * size[2]) return false;
    const uint row = index / size[0];
    local[0] = index - row * size[0], local[2] = row / size[1], local[1] = row - local[2] * size[1];
    for (int i = 0; i < 3; ++i) position[i] = group[i] * d.group[i] + local[i];
    return true;
  }
  // The same of a grid and threadgroups of one dimension.
  PM_INLINE bool find_flat() {
    const uint n = __nvvm_read_ptx_sreg_ntid_x();
    set_first(__nvvm_read_ptx_sreg_ctaid_x());
    local[0] = index;
    position[0] = group[0] * n + index;
    const uint left = grid->grid[0] - group[0] * n;
    size[0] = left < n ? left : n;
    return index < left;
  }
  // The first of `count` neighboring positions that the thread has; of a grid of one dimension, less than 2^31 long.
  PM_INLINE uint find_first(uint count) {
    const uint first = (uint(__nvvm_read_ptx_sreg_ctaid_x()) * uint(__nvvm_read_ptx_sreg_ntid_x()) + index) * count;
    __builtin_assume(first < 0x7fffffffu - 32 && first % count == 0);
    set_first(0);
    return first;
  }

 private:
  PM_INLINE void set_first(uint x) {
    group[0] = x;
    for (int i = 1; i < 3; ++i) position[i] = local[i] = group[i] = 0, size[i] = 1;
  }
};

template <class S> struct signature;
template <int I, class A, class... B> struct nth { using type = typename nth<I - 1, B...>::type; };
template <class A, class... B> struct nth<0, A, B...> { using type = A; };
template <class... A> struct signature<void (*)(A...)> { template <int I> using argument = typename nth<I, A...>::type; };
template <class S, int I> using argument = typename signature<S>::template argument<I>;
template <class S, int I> using position_type = __remove_cv(__remove_reference_t(argument<S, I>));

// How an argument is passed: a pointer as it is, a reference by value (bytes -1), or either as a pointer (0) or as so many bytes.
template <class T> struct value {
  T v;
};
template <int Bytes> struct inlined {
  alignas(16) unsigned char v[Bytes];
};
template <class A, int Bytes> struct passed;
template <class T> struct passed<T*, -1> {
  using type = T*;
  PM_INLINE static T* give(T* p) { return p; }
  template <int Alignment> PM_INLINE static T* give_aligned(T* p) { return static_cast<T*>(__builtin_assume_aligned(p, Alignment)); }
};
template <class T> struct passed<T*, 0> : passed<T*, -1> {};
template <class T> struct passed<T&, 0> {
  using type = T*;
  PM_INLINE static T& give(T* p) { return *p; }
  template <int> PM_INLINE static T& give_aligned(T* p) { return *p; }
};
template <class T> struct passed<T&, -1> {
  using type = value<__remove_cv(T)>;
  PM_INLINE static T& give(const type& p) { return const_cast<T&>(p.v); }
  template <int> PM_INLINE static T& give_aligned(const type& p) { return give(p); }
};
template <class T, int Bytes> struct passed<T*, Bytes> {
  using type = inlined<Bytes>;
  PM_INLINE static T* give(const type& p) { return reinterpret_cast<T*>(const_cast<unsigned char*>(p.v)); }
  template <int> PM_INLINE static T* give_aligned(const type& p) { return give(p); }
};
template <class A> struct pointee;
template <class T> struct pointee<T*> { using type = T; };
template <class T> struct pointee<T&> { using type = T; };

template <class A> PM_INLINE decltype(auto) in_threadgroup(uint offset) {
  using P = typename passed<A, 0>::type;
  return (passed<A, 0>::give(reinterpret_cast<P>(pm_dynamic + offset)));
}

// Neighboring positions that a thread has: elements in 16 bytes of a buffer.
template <class A> constexpr uint positions_of() {
  if constexpr (__is_pointer(A)) {
    constexpr uint size = size_of<typename pointee<A>::type>();
    return size == 1 || size == 2 || size == 4 || size == 8 ? 16 / size : 1;
  } else {
    return 1;
  }
}
constexpr uint larger(uint a, uint b) { return a > b ? a : b; }

// What a launcher has to know of an argument, as numbers that are read back from the compiled text (see module.py).
template <class A> constexpr uint element_size = size_of<typename pointee<A>::type>();
template <class A> constexpr uint element_alignment = align_of<typename pointee<A>::type>();
template <class A> constexpr uint is_writable = !__is_const(typename pointee<A>::type);
}  // namespace pm
