// The kernel of comparisons with outputs of any type, as newer forks have it in c10/metal/indexing.h.
namespace c10 {
namespace metal {

// `types` holds the number of dimensions, then the type codes of the inputs and of the output.
template <typename T, typename F, typename OM>
kernel void binary_strided_castout(
    device void* output [[buffer(0)]],
    constant void* input [[buffer(1)]],
    constant void* other [[buffer(2)]],
    constant long* sizes [[buffer(3)]],
    constant long* output_strides [[buffer(4)]],
    constant long* input_strides [[buffer(5)]],
    constant long* other_strides [[buffer(6)]],
    constant uint4& types [[buffer(7)]],
    uint index [[thread_position_in_grid]]) {
  F f;
  int at[max_ndim];
  pos_from_thread_index(int(index), at, sizes, types.x);
  const OM a = val_at_offs<OM>(input, offset_from_coord(at, input_strides, types.x), static_cast<ScalarType>(types.y));
  const OM b = val_at_offs<OM>(other, offset_from_coord(at, other_strides, types.x), static_cast<ScalarType>(types.z));
  const long offset = offset_from_coord(at, output_strides, types.x);
  store_at_offs<result_of<F, T, T>>(output, offset, static_cast<ScalarType>(types.w), f(a, b));
}

#define REGISTER_BINARY_CASTOUT_OP(NAME, DTYPEI, DTYPEO)                \
  template [[host_name(#NAME "_strided_castout_" #DTYPEO "_" #DTYPEI)]] \
  kernel void ::c10::metal::                                            \
      binary_strided_castout<DTYPEI, NAME##_functor, DTYPEI>(           \
          device void* output,                                          \
          constant void* input,                                         \
          constant void* other,                                         \
          constant long* sizes,                                         \
          constant long* output_strides,                                \
          constant long* input_strides,                                 \
          constant long* other_strides,                                 \
          constant uint4& types,                                        \
          uint index)

} // namespace metal
} // namespace c10
