// MetalPerformancePrimitives: products of tensors.
#pragma once

namespace mpp {
namespace tensor_ops {
struct matmul2d_descriptor {
  enum class mode { multiply, multiply_accumulate };
  int m, n, k;  // k: dynamic_extent as an int, or 0, takes it from the left operand
  bool transpose_left, transpose_right, relaxed_precision;
  mode matmul_mode;
  constexpr matmul2d_descriptor(
      int rows, int columns, int depth = int(metal::dynamic_extent), bool left = false, bool right = false, bool relaxed = false,
      mode how = mode::multiply)
      : m(rows), n(columns), k(depth), transpose_left(left), transpose_right(right), relaxed_precision(relaxed), matmul_mode(how) {}
};
}  // namespace tensor_ops
}  // namespace mpp

namespace pm {
template <class X> inline constexpr bool is_cooperative = false;
template <class T, class Tile> inline constexpr bool is_cooperative<metal::cooperative_tensor<T, Tile>> = true;

// An operand in memory. Outside of its extents there are zeros.
template <class Sum, class X> struct operand {
  const X& tensor;
  PM_INLINE explicit operand(const X& given) : tensor(given) {}
  PM_INLINE Sum at(int column, int row) const { return tensor.holds(column, row) ? Sum(tensor[column, row]) : Sum(0); }
};
// An operand in the registers of a simdgroup or thread: whole, once its lanes have exchanged their parts.
template <class Sum, class T, class Tile> struct operand<Sum, metal::cooperative_tensor<T, Tile>> {
  static_assert(Tile::scope::simdgroups == 1, "an operand in registers has to be of one simdgroup or thread");
  static constexpr int width = PM_MAX_VALUE / int(sizeof(Sum));
  struct Part {
    Sum v[width];
  };
  Sum values[Tile::rows * Tile::columns];
  PM_INLINE explicit operand(const metal::cooperative_tensor<T, Tile>& given) {
    if constexpr (Tile::alone) {
      for (int i = 0; i < Tile::capacity; ++i) values[i] = Sum(given.elements_[i]);
    } else {
      for (int first = 0; first < Tile::capacity; first += width) exchange_part(given, first);
    }
  }
  PM_INLINE Sum at(int column, int row) const { return values[row * Tile::columns + column]; }

 private:
  PM_INLINE void exchange_part(const metal::cooperative_tensor<T, Tile>& given, int first) {
    const int count = Tile::capacity - first < width ? Tile::capacity - first : width;
    Part own{};
    for (int i = 0; i < count; ++i) own.v[i] = Sum(given.elements_[first + i]);
    for_each_lane(own, [&](uint lane, const Part& part) {
      for (int i = 0; i < count; ++i)
        if (Tile::holds(lane, first + i))
          values[Tile::row(lane, first + i) * Tile::columns + Tile::column(lane, first + i)] = part.v[i];
    });
  }
};
template <class L, class R> using sum_of = metal::conditional_t<__is_integral(L) && __is_integral(R), int, float>;
}  // namespace pm

namespace mpp {
namespace tensor_ops {
template <matmul2d_descriptor D, class Scope, class... Rest> class matmul2d {
  static constexpr bool accumulates = D.matmul_mode == matmul2d_descriptor::mode::multiply_accumulate;
  static constexpr bool fixed = D.k > 0;
  template <int Rows, int Columns> using tile = pm::tile<Rows, Columns, Scope, D.relaxed_precision>;
  static constexpr int depth = fixed ? D.k : 1;
  using left_tile = tile<D.transpose_left ? depth : D.m, D.transpose_left ? D.m : depth>;
  using right_tile = tile<D.transpose_right ? D.n : depth, D.transpose_right ? depth : D.n>;
  using destination_tile = tile<D.m, D.n>;

 public:
  template <class L, class R, class T> PM_INLINE static metal::cooperative_tensor<L, left_tile> get_left_input_cooperative_tensor() {
    static_assert(fixed, "an operand in registers needs a descriptor with a fixed k");
    return {};
  }
  template <class L, class R, class T> PM_INLINE static metal::cooperative_tensor<R, right_tile> get_right_input_cooperative_tensor() {
    static_assert(fixed, "an operand in registers needs a descriptor with a fixed k");
    return {};
  }
  template <class L, class R, class T>
  PM_INLINE static metal::cooperative_tensor<T, destination_tile> get_destination_cooperative_tensor() {
    return {};
  }
  // The destination becomes left * right, added to it if the descriptor says so.
  template <class L, class R, class T> PM_INLINE void run(const L& left, const R& right, T&& destination) const {
    using Target = metal::remove_cvref_t<T>;
    if constexpr (pm::is_cooperative<Target>) {
      multiply(left, right, destination);
    } else {
      metal::cooperative_tensor<typename Target::value_type, destination_tile> result;
      if constexpr (accumulates) result.load(destination);
      multiply(left, right, result);
      result.store(destination);
    }
  }

 private:
  template <class L> PM_INLINE static int depth_of(const L& left) {
    if constexpr (fixed) return D.k;
    else return int(left.get_extent(D.transpose_left ? 1 : 0));
  }
  template <class L, class R, class Target> PM_INLINE static void multiply(const L& left, const R& right, Target& result) {
    using Sum = pm::sum_of<typename L::value_type, typename R::value_type>;
    using T = typename Target::value_type;
    const pm::operand<Sum, L> a(left);
    const pm::operand<Sum, R> b(right);
    const int last = depth_of(left);
    for (int i = 0; i < Target::get_capacity(); ++i) {
      if (!result.is_valid_element(i)) continue;
      const auto at = result.get_multidimensional_index(i);
      Sum sum = accumulates ? Sum(result[i]) : Sum(0);
      for (int k = 0; k < last; ++k) {
        const Sum l = D.transpose_left ? a.at(at[1], k) : a.at(k, at[1]);
        const Sum r = D.transpose_right ? b.at(k, at[0]) : b.at(at[0], k);
        sum += l * r;
      }
      result[i] = T(sum);
    }
  }
};
}  // namespace tensor_ops
}  // namespace mpp
