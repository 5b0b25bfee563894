// <metal_tensor>: tensors that a kernel makes over memory (MSL section 2.22). Indices begin with the fastest dimension.
#pragma once

namespace metal {
inline constexpr size_t dynamic_extent = size_t(-1);
template <class T> inline constexpr T dynamic_length_v = T(dynamic_extent);

// The sizes of a tensor; those that are not dynamic_extent are part of the type.
template <class I, size_t... E> struct extents {
  using index_type = I;
  static constexpr size_t count = sizeof...(E);
  I sizes_[count];
  PM_INLINE constexpr extents() : sizes_{I(E)...} {}
  template <class... A, enable_if_t<sizeof...(A) == sizeof...(E) && (sizeof...(A) > 0), int> = 0>
  PM_INLINE constexpr extents(A... sizes) : sizes_{I(sizes)...} {}
  PM_INLINE static constexpr size_t rank() { return count; }
  PM_INLINE static constexpr size_t static_extent(size_t d) {
    constexpr size_t known[] = {E...};
    return known[d];
  }
  PM_INLINE constexpr I extent(size_t d) const { return sizes_[d]; }
};
}  // namespace metal

namespace pm {
template <class I, class Numbers> struct dynamic;
template <size_t...> struct numbers {};
template <class I, size_t... N> struct dynamic<I, numbers<N...>> { using type = metal::extents<I, (N, metal::dynamic_extent)...>; };
template <class T, T... N> using numbers_to = numbers<size_t(N)...>;
}  // namespace pm

namespace metal {
template <class I, size_t Rank> using dextents = typename pm::dynamic<I, __make_integer_seq<pm::numbers_to, size_t, Rank>>::type;

// Where a tensor's sizes and address are kept. On the host a kernel makes its own, whatever it says here.
struct tensor_inline {};
struct tensor_offset {};
struct tensor_handle {};

template <class T, class Extents, class Descriptor = tensor_inline, class... Tags> struct tensor {
  using element_type = T;
  using value_type = remove_cv_t<T>;
  using extents_type = Extents;
  using index_type = typename Extents::index_type;
  using data_handle_type = T*;
  static constexpr size_t count = Extents::count;

  T* data_;
  Extents extents_;
  long strides_[count];

  PM_INLINE constexpr tensor(T* data, const Extents& sizes) : data_(data), extents_(sizes), strides_{} {
    long stride = 1;
    for (size_t d = 0; d < count; ++d) {
      strides_[d] = stride;
      stride *= long(sizes.extent(d));
    }
  }
  template <class S>
  PM_INLINE constexpr tensor(T* data, const Extents& sizes, const array<S, count>& strides) : data_(data), extents_(sizes), strides_{} {
    for (size_t d = 0; d < count; ++d) strides_[d] = long(strides[d]);
  }
  PM_INLINE static constexpr size_t get_rank() { return count; }
  PM_INLINE static constexpr size_t get_static_extent(size_t d) { return Extents::static_extent(d); }
  PM_INLINE constexpr index_type get_extent(size_t d) const { return extents_.extent(d); }
  PM_INLINE constexpr index_type get_stride(size_t d) const { return index_type(strides_[d]); }
  PM_INLINE constexpr T* data_handle() const { return data_; }
  template <class... A> PM_INLINE constexpr T& operator[](A... at) const { return data_[offset(at...)]; }

  // What follows the index on: its sizes are what is left, or given.
  template <class... A, enable_if_t<sizeof...(A) == count, int> = 0> PM_INLINE constexpr auto slice(A... at) const {
    using Rest = dextents<index_type, count>;
    const long first[] = {long(at)...};
    Rest left;
    for (size_t d = 0; d < count; ++d) left.sizes_[d] = index_type(long(extents_.extent(d)) - first[d]);
    return with<Rest>(data_ + offset(at...), left);
  }
  template <size_t... E, class... A, enable_if_t<(sizeof...(E) > 0) && sizeof...(A) == count, int> = 0>
  PM_INLINE constexpr auto slice(A... at) const {
    auto left = slice(at...).extents_;
    extents<index_type, E...> sizes;
    for (size_t d = 0; d < count; ++d)
      if (sizes.static_extent(d) == dynamic_extent) sizes.sizes_[d] = left.extent(d);
    return with<extents<index_type, E...>>(data_ + offset(at...), sizes);
  }
  PM_INLINE constexpr bool holds(long column, long row) const {
    return column >= 0 && row >= 0 && column < long(extents_.extent(0)) && row < long(extents_.extent(1));
  }

 private:
  template <class... A> PM_INLINE constexpr long offset(A... at) const {
    static_assert(sizeof...(A) == count, "one index for each dimension");
    long sum = 0, d = 0;
    ((sum += long(at) * strides_[d++]), ...);
    return sum;
  }
  template <class E> PM_INLINE constexpr auto with(T* data, const E& sizes) const {
    array<long, count> strides{};
    for (size_t d = 0; d < count; ++d) strides[d] = strides_[d];
    return tensor<T, E, tensor_inline>(data, sizes, strides);
  }
};
template <class T, class E> tensor(T*, E) -> tensor<T, E, tensor_inline>;
template <class T, class E, class S, size_t N> tensor(T*, E, array<S, N>) -> tensor<T, E, tensor_inline>;

// Who carries out an operation on tensors together.
template <int N> struct execution_simdgroups {
  static constexpr uint simdgroups = N, lanes = 32 * N;
  PM_INLINE static uint lane() { return pm_index() % lanes; }
};
template <int N> struct execution_threads {
  static_assert(N == 1, "operations on tensors are carried out by one thread, or by simdgroups");
  static constexpr uint simdgroups = 1, lanes = 1;
  PM_INLINE static uint lane() { return 0; }
};
using execution_simdgroup = execution_simdgroups<1>;
using execution_thread = execution_threads<1>;
}  // namespace metal

namespace pm {
// Which elements of a tile a thread has: the tile in blocks, in the order of rows, an equal share for each simdgroup. A
// lane's part of a block of 16x16 is two runs of four, of one of 8x8 a pair; one thread alone has all. With PM_OLDER_TILES
// lanes follow each other along rows: what Apple's order is before macOS 26.2 is not said, but that it is another.
template <int Rows, int Columns, class Scope, bool Relaxed> struct tile {
  static constexpr int rows = Rows, columns = Columns;
  using scope = Scope;
  static constexpr bool alone = Scope::lanes == 1;
  static constexpr int side = Relaxed && Rows % 16 == 0 && Columns % 16 == 0 ? 16 : 8;
  static constexpr int held = alone ? 1 : side * side / 32;  // of a block
  static constexpr int across = (Columns + side - 1) / side, down = (Rows + side - 1) / side;
  static constexpr int blocks = alone ? Rows * Columns : (across * down + int(Scope::simdgroups) - 1) / int(Scope::simdgroups);
  static constexpr int capacity = blocks * held;

  PM_INLINE static int block(uint lane, int i) { return int(lane / 32) * blocks + i / held; }
  PM_INLINE static int row(uint lane, int i) {
    if constexpr (alone) return i / Columns;
#ifdef PM_OLDER_TILES
    return block(lane, i) / across * side + int(lane % 32) * held / side;
#endif
    const int part = i % held, in = int(lane % 32), half = (in >> 2 & 4) + (in >> 1 & 3);
    return block(lane, i) / across * side + half + (side == 16 ? part / 4 * 8 : 0);
  }
  PM_INLINE static int column(uint lane, int i) {
    if constexpr (alone) return i % Columns;
#ifdef PM_OLDER_TILES
    return block(lane, i) % across * side + int(lane % 32) * held % side + i % held;
#endif
    const int part = i % held, in = int(lane % 32), run = (in >> 2 & 2) + (in & 1);
    return block(lane, i) % across * side + (side == 16 ? run * 4 + part % 4 : run * 2 + part);
  }
  PM_INLINE static bool holds(uint lane, int i) { return row(lane, i) < Rows && column(lane, i) < Columns; }
};
}  // namespace pm

namespace metal {
// A tile in registers, spread over threads.
template <class T, class Tile> struct cooperative_tensor {
  using element_type = T;
  using value_type = T;
  using tile_type = Tile;
  T elements_[Tile::capacity];
  PM_INLINE static constexpr ushort get_capacity() { return Tile::capacity; }
  PM_INLINE T& operator[](int i) { return elements_[i]; }
  PM_INLINE const T& operator[](int i) const { return elements_[i]; }
  PM_INLINE T* begin() { return elements_; }
  PM_INLINE T* end() { return elements_ + Tile::capacity; }
  PM_INLINE static bool is_valid_element(int i) { return Tile::holds(Tile::scope::lane(), i); }
  PM_INLINE static bool get_mask(int i) { return is_valid_element(i); }
  PM_INLINE static array<int, 2> get_multidimensional_index(int i) {
    const uint lane = Tile::scope::lane();
    return {{Tile::column(lane, i), Tile::row(lane, i)}};
  }
  // Elements outside of the tensor are zero when loaded, and not stored.
  template <class Tensor> PM_INLINE void load(const Tensor& from) {
    for (int i = 0; i < Tile::capacity; ++i) {
      const auto at = get_multidimensional_index(i);
      elements_[i] = is_valid_element(i) && from.holds(at[0], at[1]) ? T(from[at[0], at[1]]) : T(0);
    }
  }
  template <class Tensor> PM_INLINE void store(const Tensor& to) const {
    for (int i = 0; i < Tile::capacity; ++i) {
      const auto at = get_multidimensional_index(i);
      if (is_valid_element(i) && to.holds(at[0], at[1])) to[at[0], at[1]] = typename Tensor::value_type(elements_[i]);
    }
  }
};
}  // namespace metal
