// Elementwise kernels. A file writes a functor, `struct x_functor` with an
// operator(), and registers it with one REGISTER_* line for each pair of input
// and output types. Each line instantiates the flavors of the kernel under the
// names that MetalShaderLibrary::exec_*_kernel looks for:
//
//   <op>_<flavor>_<output type>_<input type>[_<alpha type>]
//
// dense       operands that fill one run of memory, in the registered types
// strided     operands of any strides
// *_cast      (binary) inputs of any types, read as the registered one
// *_castout   (unary) an output of any type, written from the registered one
//
// Strides and offsets are in bytes.
#pragma once
#include <c10/metal/common.h>
#include <c10/metal/utils.h>
#include <metal_stdlib>

namespace c10 {
namespace metal {

// The position of an element: the first dimension comes from the grid's x,
// the others from its y (2D) or, together with the first, from one index (1D).
template <typename T>
inline void pos_from_thread_index(
    T index,
    thread T pos[max_ndim],
    constant long* sizes,
    uint ndim) {
  for (uint i = 0; i < ndim; ++i) {
    pos[i] = index % T(sizes[i]);
    index /= T(sizes[i]);
  }
}

template <typename T>
inline void pos_from_thread_index(
    uint2 index,
    thread T pos[max_ndim],
    constant long* sizes,
    uint ndim) {
  pos[0] = static_cast<T>(index.x);
  T rest = static_cast<T>(index.y);
  for (uint i = 1; i < ndim; ++i) {
    pos[i] = rest % T(sizes[i]);
    rest /= T(sizes[i]);
  }
}

template <typename T>
inline T offset_from_coord(
    thread T pos[max_ndim],
    constant long* strides,
    uint ndim) {
  T offset = 0;
  for (uint i = 0; i < ndim; ++i) {
    offset += pos[i] * T(strides[i]);
  }
  return offset;
}

template <typename T>
inline T val_at_offs(constant void* base, long offset) {
  return *reinterpret_cast<constant T*>(
      static_cast<constant char*>(base) + offset);
}

template <typename T>
inline device T& ref_at_offs(device void* base, long offset) {
  return *reinterpret_cast<device T*>(static_cast<device char*>(base) + offset);
}

// Reads an element of a type known only when the kernel runs.
template <typename T>
inline T val_at_offs(constant void* base, long offset, ScalarType type) {
  switch (type) {
#define CASE_OF_TYPE(name, code, Stored) \
  case ScalarType::name:                 \
    return cast_to<T>(val_at_offs<Stored>(base, offset));
    C10_METAL_ALL_TYPES_FUNCTOR(CASE_OF_TYPE)
#undef CASE_OF_TYPE
  }
}

// Writes an element of a type known only when the kernel runs.
template <typename T>
inline void store_at_offs(
    device void* base,
    long offset,
    ScalarType type,
    T value) {
  switch (type) {
#define CASE_OF_TYPE(name, code, Stored)                        \
  case ScalarType::name:                                        \
    ref_at_offs<Stored>(base, offset) = cast_to<Stored>(value); \
    return;
    C10_METAL_ALL_TYPES_FUNCTOR(CASE_OF_TYPE)
#undef CASE_OF_TYPE
  }
}

// Each thread computes ILP_PER_THREAD neighbours.
template <typename T, typename F>
kernel void unary_dense(
    device result_of<F, T>* output [[buffer(0)]],
    constant T* input [[buffer(1)]],
    constant uint& numel [[buffer(2)]],
    uint index [[thread_position_in_grid]]) {
  F f;
  const uint begin = index * ILP_PER_THREAD;
  const uint end = ::metal::min(begin + ILP_PER_THREAD, numel);
  for (uint i = begin; i < end; ++i) {
    output[i] = f(input[i]);
  }
}

// One thread per element, for tensors too small to keep the GPU busy otherwise.
template <typename T, typename F>
kernel void unary_dense_scalar(
    device result_of<F, T>* output [[buffer(0)]],
    constant T* input [[buffer(1)]],
    uint index [[thread_position_in_grid]]) {
  F f;
  output[index] = f(input[index]);
}

template <typename T, typename F>
kernel void unary_strided(
    device void* output [[buffer(0)]],
    constant void* input [[buffer(1)]],
    constant long* sizes [[buffer(2)]],
    constant long* input_strides [[buffer(3)]],
    constant long* output_strides [[buffer(4)]],
    constant uint& ndim [[buffer(5)]],
    uint2 index [[thread_position_in_grid]]) {
  F f;
  int pos[max_ndim];
  pos_from_thread_index(index, pos, sizes, ndim);
  ref_at_offs<result_of<F, T>>(
      output, offset_from_coord(pos, output_strides, ndim)) =
      f(val_at_offs<T>(input, offset_from_coord(pos, input_strides, ndim)));
}

// `size_type` holds the size and the type code of an output element.
template <typename T, typename F>
kernel void unary_dense_castout(
    device void* output [[buffer(0)]],
    constant T* input [[buffer(1)]],
    constant uint2& size_type [[buffer(2)]],
    uint index [[thread_position_in_grid]]) {
  F f;
  store_at_offs(
      output,
      long(index) * size_type.x,
      static_cast<ScalarType>(size_type.y),
      f(input[index]));
}

// `ndim_type` holds the number of dimensions and the output's type code.
template <typename T, typename F>
kernel void unary_strided_castout(
    device void* output [[buffer(0)]],
    constant void* input [[buffer(1)]],
    constant long* sizes [[buffer(2)]],
    constant long* input_strides [[buffer(3)]],
    constant long* output_strides [[buffer(4)]],
    constant uint2& ndim_type [[buffer(5)]],
    uint2 index [[thread_position_in_grid]]) {
  F f;
  int pos[max_ndim];
  pos_from_thread_index(index, pos, sizes, ndim_type.x);
  store_at_offs(
      output,
      offset_from_coord(pos, output_strides, ndim_type.x),
      static_cast<ScalarType>(ndim_type.y),
      f(val_at_offs<T>(
          input, offset_from_coord(pos, input_strides, ndim_type.x))));
}

template <typename T, typename A, typename F>
kernel void unary_alpha_dense(
    device result_of<F, T, A>* output [[buffer(0)]],
    constant T* input [[buffer(1)]],
    constant A& alpha [[buffer(2)]],
    uint index [[thread_position_in_grid]]) {
  F f;
  output[index] = f(input[index], alpha);
}

template <typename T, typename A, typename F>
kernel void unary_alpha_strided(
    device void* output [[buffer(0)]],
    constant void* input [[buffer(1)]],
    constant long* sizes [[buffer(2)]],
    constant long* input_strides [[buffer(3)]],
    constant long* output_strides [[buffer(4)]],
    constant uint& ndim [[buffer(5)]],
    constant A& alpha [[buffer(6)]],
    uint2 index [[thread_position_in_grid]]) {
  F f;
  int pos[max_ndim];
  pos_from_thread_index(index, pos, sizes, ndim);
  ref_at_offs<result_of<F, T, A>>(
      output, offset_from_coord(pos, output_strides, ndim)) =
      f(val_at_offs<T>(input, offset_from_coord(pos, input_strides, ndim)),
        alpha);
}

// OM, the type the functor computes in, is T or opmath_t<T>.
template <typename T, typename F, typename OM>
kernel void binary_dense(
    device result_of<F, T, T>* output [[buffer(0)]],
    constant T* input [[buffer(1)]],
    constant T* other [[buffer(2)]],
    uint index [[thread_position_in_grid]]) {
  F f;
  output[index] = static_cast<result_of<F, T, T>>(
      f(static_cast<OM>(input[index]), static_cast<OM>(other[index])));
}

template <typename T, typename F, typename OM>
kernel void binary_strided(
    device void* output [[buffer(0)]],
    constant void* input [[buffer(1)]],
    constant void* other [[buffer(2)]],
    constant long* sizes [[buffer(3)]],
    constant long* output_strides [[buffer(4)]],
    constant long* input_strides [[buffer(5)]],
    constant long* other_strides [[buffer(6)]],
    constant uint3& ndim [[buffer(7)]],
    uint index [[thread_position_in_grid]]) {
  F f;
  int pos[max_ndim];
  pos_from_thread_index(int(index), pos, sizes, ndim.x);
  const auto a =
      val_at_offs<T>(input, offset_from_coord(pos, input_strides, ndim.x));
  const auto b =
      val_at_offs<T>(other, offset_from_coord(pos, other_strides, ndim.x));
  ref_at_offs<result_of<F, T, T>>(
      output, offset_from_coord(pos, output_strides, ndim.x)) =
      static_cast<result_of<F, T, T>>(
          f(static_cast<OM>(a), static_cast<OM>(b)));
}

// `sizes_types` holds the element sizes of both inputs, then their type codes.
template <typename T, typename F, typename OM>
kernel void binary_dense_cast(
    device result_of<F, T, T>* output [[buffer(0)]],
    constant void* input [[buffer(1)]],
    constant void* other [[buffer(2)]],
    constant uint4& sizes_types [[buffer(3)]],
    uint index [[thread_position_in_grid]]) {
  F f;
  const auto a = val_at_offs<OM>(
      input,
      long(index) * sizes_types.x,
      static_cast<ScalarType>(sizes_types.z));
  const auto b = val_at_offs<OM>(
      other,
      long(index) * sizes_types.y,
      static_cast<ScalarType>(sizes_types.w));
  output[index] = static_cast<result_of<F, T, T>>(f(a, b));
}

// `ndim_types` holds the number of dimensions and the inputs' type codes.
template <typename T, typename F, typename OM>
kernel void binary_strided_cast(
    device void* output [[buffer(0)]],
    constant void* input [[buffer(1)]],
    constant void* other [[buffer(2)]],
    constant long* sizes [[buffer(3)]],
    constant long* output_strides [[buffer(4)]],
    constant long* input_strides [[buffer(5)]],
    constant long* other_strides [[buffer(6)]],
    constant uint4& ndim_types [[buffer(7)]],
    uint index [[thread_position_in_grid]]) {
  F f;
  int pos[max_ndim];
  pos_from_thread_index(int(index), pos, sizes, ndim_types.x);
  const auto a = val_at_offs<OM>(
      input,
      offset_from_coord(pos, input_strides, ndim_types.x),
      static_cast<ScalarType>(ndim_types.y));
  const auto b = val_at_offs<OM>(
      other,
      offset_from_coord(pos, other_strides, ndim_types.x),
      static_cast<ScalarType>(ndim_types.z));
  ref_at_offs<result_of<F, T, T>>(
      output, offset_from_coord(pos, output_strides, ndim_types.x)) =
      static_cast<result_of<F, T, T>>(f(a, b));
}

template <typename T, typename A, typename F>
kernel void binary_alpha_dense(
    device result_of<F, T, T, A>* output [[buffer(0)]],
    constant T* input [[buffer(1)]],
    constant T* other [[buffer(2)]],
    constant A& alpha [[buffer(3)]],
    uint index [[thread_position_in_grid]]) {
  F f;
  output[index] = f(input[index], other[index], alpha);
}

template <typename T, typename A, typename F>
kernel void binary_alpha_strided_cast(
    device void* output [[buffer(0)]],
    constant void* input [[buffer(1)]],
    constant void* other [[buffer(2)]],
    constant A& alpha [[buffer(3)]],
    constant long* sizes [[buffer(4)]],
    constant long* output_strides [[buffer(5)]],
    constant long* input_strides [[buffer(6)]],
    constant long* other_strides [[buffer(7)]],
    constant uint4& ndim_types [[buffer(8)]],
    uint index [[thread_position_in_grid]]) {
  F f;
  int pos[max_ndim];
  pos_from_thread_index(int(index), pos, sizes, ndim_types.x);
  const auto a = val_at_offs<T>(
      input,
      offset_from_coord(pos, input_strides, ndim_types.x),
      static_cast<ScalarType>(ndim_types.y));
  const auto b = val_at_offs<T>(
      other,
      offset_from_coord(pos, other_strides, ndim_types.x),
      static_cast<ScalarType>(ndim_types.z));
  ref_at_offs<result_of<F, T, T, A>>(
      output, offset_from_coord(pos, output_strides, ndim_types.x)) =
      f(a, b, alpha);
}

#define C10_METAL_CHECK_RESULT(NAME, DTYPEO, ...)                \
  static_assert(                                                 \
      ::metal::is_same_v<                                        \
          DTYPEO,                                                \
          ::c10::metal::result_of<NAME##_functor, __VA_ARGS__>>, \
      #NAME "_functor does not return " #DTYPEO " for " #__VA_ARGS__)

// Each (NAME, DTYPEI) may be registered once: castout names carry no DTYPEO.
#define REGISTER_UNARY_OP(NAME, DTYPEI, DTYPEO)                                \
  C10_METAL_CHECK_RESULT(NAME, DTYPEO, DTYPEI);                                \
  template [[host_name(#NAME "_dense_" #DTYPEO "_" #DTYPEI)]] kernel void ::   \
      c10::metal::unary_dense<DTYPEI, NAME##_functor>(                         \
          device::c10::metal::result_of<NAME##_functor, DTYPEI> * output,      \
          constant DTYPEI * input,                                             \
          constant uint & numel,                                               \
          uint index);                                                         \
  template                                                                     \
      [[host_name(#NAME "_dense_scalar_" #DTYPEO "_" #DTYPEI)]] kernel void :: \
          c10::metal::unary_dense_scalar<DTYPEI, NAME##_functor>(              \
              device::c10::metal::result_of<NAME##_functor, DTYPEI> * output,  \
              constant DTYPEI * input,                                         \
              uint index);                                                     \
  template [[host_name(#NAME "_strided_" #DTYPEO "_" #DTYPEI)]] kernel void :: \
      c10::metal::unary_strided<DTYPEI, NAME##_functor>(                       \
          device void* output,                                                 \
          constant void* input,                                                \
          constant long* sizes,                                                \
          constant long* input_strides,                                        \
          constant long* output_strides,                                       \
          constant uint& ndim,                                                 \
          uint2 index);                                                        \
  template [[host_name(#NAME "_dense_castout_" #DTYPEI)]] kernel void ::c10::  \
      metal::unary_dense_castout<DTYPEI, NAME##_functor>(                      \
          device void* output,                                                 \
          constant DTYPEI* input,                                              \
          constant uint2& size_type,                                           \
          uint index);                                                         \
  template [[host_name(#NAME "_strided_castout_" #DTYPEI)]] kernel void ::     \
      c10::metal::unary_strided_castout<DTYPEI, NAME##_functor>(               \
          device void* output,                                                 \
          constant void* input,                                                \
          constant long* sizes,                                                \
          constant long* input_strides,                                        \
          constant long* output_strides,                                       \
          constant uint2& ndim_type,                                           \
          uint2 index)

#define REGISTER_UNARY_ALPHA_OP(NAME, DTYPEI, DTYPEA, DTYPEO)                  \
  C10_METAL_CHECK_RESULT(NAME, DTYPEO, DTYPEI, DTYPEA);                        \
  template [[host_name(                                                        \
      #NAME "_dense_" #DTYPEO "_" #DTYPEI "_" #DTYPEA)]] kernel void ::c10::   \
      metal::unary_alpha_dense<DTYPEI, DTYPEA, NAME##_functor>(                \
          device::c10::metal::result_of<NAME##_functor, DTYPEI, DTYPEA> *      \
              output,                                                          \
          constant DTYPEI * input,                                             \
          constant DTYPEA & alpha,                                             \
          uint index);                                                         \
  template [[host_name(                                                        \
      #NAME "_strided_" #DTYPEO "_" #DTYPEI "_" #DTYPEA)]] kernel void ::c10:: \
      metal::unary_alpha_strided<DTYPEI, DTYPEA, NAME##_functor>(              \
          device void* output,                                                 \
          constant void* input,                                                \
          constant long* sizes,                                                \
          constant long* input_strides,                                        \
          constant long* output_strides,                                       \
          constant uint& ndim,                                                 \
          constant DTYPEA& alpha,                                              \
          uint2 index)

#define REGISTER_BINARY_OP_(NAME, DTYPEI, DTYPEO, OMT)                         \
  C10_METAL_CHECK_RESULT(NAME, DTYPEO, DTYPEI, DTYPEI);                        \
  template [[host_name(#NAME "_dense_" #DTYPEO "_" #DTYPEI)]] kernel void ::   \
      c10::metal::binary_dense<DTYPEI, NAME##_functor, OMT>(                   \
          device::c10::metal::result_of<NAME##_functor, DTYPEI, DTYPEI> *      \
              output,                                                          \
          constant DTYPEI * input,                                             \
          constant DTYPEI * other,                                             \
          uint index);                                                         \
  template [[host_name(#NAME "_strided_" #DTYPEO "_" #DTYPEI)]] kernel void :: \
      c10::metal::binary_strided<DTYPEI, NAME##_functor, OMT>(                 \
          device void* output,                                                 \
          constant void* input,                                                \
          constant void* other,                                                \
          constant long* sizes,                                                \
          constant long* output_strides,                                       \
          constant long* input_strides,                                        \
          constant long* other_strides,                                        \
          constant uint3& ndim,                                                \
          uint index);                                                         \
  template                                                                     \
      [[host_name(#NAME "_dense_cast_" #DTYPEO "_" #DTYPEI)]] kernel void ::   \
          c10::metal::binary_dense_cast<DTYPEI, NAME##_functor, OMT>(          \
              device::c10::metal::result_of<NAME##_functor, DTYPEI, DTYPEI> *  \
                  output,                                                      \
              constant void* input,                                            \
              constant void* other,                                            \
              constant uint4& sizes_types,                                     \
              uint index);                                                     \
  template                                                                     \
      [[host_name(#NAME "_strided_cast_" #DTYPEO "_" #DTYPEI)]] kernel void :: \
          c10::metal::binary_strided_cast<DTYPEI, NAME##_functor, OMT>(        \
              device void* output,                                             \
              constant void* input,                                            \
              constant void* other,                                            \
              constant long* sizes,                                            \
              constant long* output_strides,                                   \
              constant long* input_strides,                                    \
              constant long* other_strides,                                    \
              constant uint4& ndim_types,                                      \
              uint index)

#define REGISTER_BINARY_OP(NAME, DTYPEI, DTYPEO) \
  REGISTER_BINARY_OP_(NAME, DTYPEI, DTYPEO, DTYPEI)

// The functor is given opmath_t<DTYPEI>: float for half and bfloat.
#define REGISTER_OPMATH_BINARY_OP(NAME, DTYPEI, DTYPEO) \
  REGISTER_BINARY_OP_(NAME, DTYPEI, DTYPEO, ::c10::metal::opmath_t<DTYPEI>)

#define REGISTER_BINARY_ALPHA_OP(NAME, DTYPEI, DTYPEA, DTYPEO)                 \
  C10_METAL_CHECK_RESULT(NAME, DTYPEO, DTYPEI, DTYPEI, DTYPEA);                \
  template [[host_name(                                                        \
      #NAME "_dense_" #DTYPEO "_" #DTYPEI "_" #DTYPEA)]] kernel void ::c10::   \
      metal::binary_alpha_dense<DTYPEI, DTYPEA, NAME##_functor>(               \
          device::c10::metal::                                                 \
                  result_of<NAME##_functor, DTYPEI, DTYPEI, DTYPEA> *          \
              output,                                                          \
          constant DTYPEI * input,                                             \
          constant DTYPEI * other,                                             \
          constant DTYPEA & alpha,                                             \
          uint index);                                                         \
  template [[host_name(                                                        \
      #NAME "_strided_cast_" #DTYPEO "_" #DTYPEI "_" #DTYPEA)]] kernel void :: \
      c10::metal::binary_alpha_strided_cast<DTYPEI, DTYPEA, NAME##_functor>(   \
          device void* output,                                                 \
          constant void* input,                                                \
          constant void* other,                                                \
          constant DTYPEA& alpha,                                              \
          constant long* sizes,                                                \
          constant long* output_strides,                                       \
          constant long* input_strides,                                        \
          constant long* other_strides,                                        \
          constant uint4& ndim_types,                                          \
          uint index)

} // namespace metal
} // namespace c10
