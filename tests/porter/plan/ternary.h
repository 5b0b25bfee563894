// Kernels of three elements, as newer forks have them in c10/metal/indexing.h.
namespace c10 {
namespace metal {

inline long4 ternary_offsets(
    uint3 at,
    constant long* sizes,
    uint ndim,
    constant long* first,
    constant long* second,
    constant long* third,
    constant long* fourth) {
  long rest = at.z;
  long4 offsets(0);
  for (uint i = 0; i < ndim; ++i) {
    const long position = i == 0 ? long(at.x) : i == 1 ? long(at.y) : rest % sizes[i];
    rest = i < 2 ? rest : rest / sizes[i];
    offsets += position * long4(first[i], second[i], third[i], fourth[i]);
  }
  return offsets;
}

template <typename T, typename F>
kernel void ternary_dense(
    device T* output [[buffer(0)]],
    constant T* a [[buffer(1)]],
    constant T* b [[buffer(2)]],
    constant T* c [[buffer(3)]],
    uint index [[thread_position_in_grid]]) {
  F f;
  output[index] = f(a[index], b[index], c[index]);
}

template <typename T, typename F>
kernel void ternary_dense_cast(
    device void* output [[buffer(0)]],
    constant void* a [[buffer(1)]],
    constant void* b [[buffer(2)]],
    constant void* c [[buffer(3)]],
    constant uint4& sizes [[buffer(4)]],
    constant uint4& types [[buffer(5)]],
    uint index [[thread_position_in_grid]]) {
  F f;
  const T x = val_at_offs<T>(a, long(index) * sizes.x, static_cast<ScalarType>(types.x));
  const T y = val_at_offs<T>(b, long(index) * sizes.y, static_cast<ScalarType>(types.y));
  const T z = val_at_offs<T>(c, long(index) * sizes.z, static_cast<ScalarType>(types.z));
  store_at_offs(output, long(index) * sizes.w, static_cast<ScalarType>(types.w), f(x, y, z));
}

template <typename T, typename F>
kernel void ternary_strided(
    device void* output [[buffer(0)]],
    constant void* a [[buffer(1)]],
    constant void* b [[buffer(2)]],
    constant void* c [[buffer(3)]],
    constant long* sizes [[buffer(4)]],
    constant long* output_strides [[buffer(5)]],
    constant long* a_strides [[buffer(6)]],
    constant long* b_strides [[buffer(7)]],
    constant long* c_strides [[buffer(8)]],
    constant uint& ndim [[buffer(9)]],
    uint3 at [[thread_position_in_grid]]) {
  F f;
  const long4 offsets = ternary_offsets(at, sizes, ndim, output_strides, a_strides, b_strides, c_strides);
  ref_at_offs<T>(output, offsets.x) =
      f(val_at_offs<T>(a, offsets.y), val_at_offs<T>(b, offsets.z), val_at_offs<T>(c, offsets.w));
}

template <typename T, typename F>
kernel void ternary_strided_cast(
    device void* output [[buffer(0)]],
    constant void* a [[buffer(1)]],
    constant void* b [[buffer(2)]],
    constant void* c [[buffer(3)]],
    constant long* sizes [[buffer(4)]],
    constant long* output_strides [[buffer(5)]],
    constant long* a_strides [[buffer(6)]],
    constant long* b_strides [[buffer(7)]],
    constant long* c_strides [[buffer(8)]],
    constant uint& ndim [[buffer(9)]],
    constant uint4& types [[buffer(10)]],
    uint3 at [[thread_position_in_grid]]) {
  F f;
  const long4 offsets = ternary_offsets(at, sizes, ndim, output_strides, a_strides, b_strides, c_strides);
  const T x = val_at_offs<T>(a, offsets.y, static_cast<ScalarType>(types.x));
  const T y = val_at_offs<T>(b, offsets.z, static_cast<ScalarType>(types.y));
  const T z = val_at_offs<T>(c, offsets.w, static_cast<ScalarType>(types.z));
  store_at_offs(output, offsets.x, static_cast<ScalarType>(types.w), f(x, y, z));
}

#define REGISTER_TERNARY_OP(NAME, DTYPEI, DTYPEO)                                                 \
  template [[host_name(#NAME "_dense_" #DTYPEO "_" #DTYPEI)]] kernel void                         \
  c10::metal::ternary_dense<DTYPEI, NAME##_functor>(                                              \
      device DTYPEO*, constant DTYPEI*, constant DTYPEI*, constant DTYPEI*, uint);                \
  template [[host_name(#NAME "_dense_cast_" #DTYPEI)]] kernel void                                \
  c10::metal::ternary_dense_cast<DTYPEI, NAME##_functor>(                                         \
      device void*, constant void*, constant void*, constant void*, constant uint4&, constant uint4&, uint); \
  template [[host_name(#NAME "_strided_" #DTYPEO "_" #DTYPEI)]] kernel void                       \
  c10::metal::ternary_strided<DTYPEI, NAME##_functor>(                                            \
      device void*, constant void*, constant void*, constant void*, constant long*, constant long*, \
      constant long*, constant long*, constant long*, constant uint&, uint3);                     \
  template [[host_name(#NAME "_strided_cast_" #DTYPEI)]] kernel void                              \
  c10::metal::ternary_strided_cast<DTYPEI, NAME##_functor>(                                       \
      device void*, constant void*, constant void*, constant void*, constant long*, constant long*, \
      constant long*, constant long*, constant long*, constant uint&, constant uint4&, uint3)

} // namespace metal
} // namespace c10
