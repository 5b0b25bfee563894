// Elementwise kernels. A file writes a functor, `struct x_functor` with an
// operator(), and registers it with one REGISTER_* line for each pair of input
// and output types. Each line instantiates the flavors of the kernel under the
// names that MetalShaderLibrary::exec_*_kernel looks for:
//
//   <op>_<flavor>_<output type>_<input type>[_<alpha type>]
//
// dense       operands that fill one run of memory, in the registered types
// strided     operands of any strides
// *_cast      inputs of any types, read as the registered one (ternary: an
//             output of any type too, so that no name has it)
// *_castout   an output of any type, written from the registered one
//
// dense_ilp, dense_scalar, dense_broadcast and inner_contiguous, which only
// make large tensors faster, are launched where a header has them.
//
// Strides and offsets are in bytes.
#pragma once
#include <c10/metal/common.h>
#include <c10/metal/utils.h>
#include <metal_stdlib>

namespace c10 {
namespace metal {

// The position of an element: the first dimension comes from the grid's x,
// the others from its y (2D), y and z (3D) or, together with the first, from
// one index (1D).
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
inline void pos_from_thread_index(
    uint3 index,
    thread T pos[max_ndim],
    constant long* sizes,
    uint ndim) {
  T rest = static_cast<T>(index.z);
  for (uint i = 0; i < ndim; ++i) {
    pos[i] = i == 0 ? T(index.x) : i == 1 ? T(index.y) : rest % T(sizes[i]);
    rest = i < 2 ? rest : rest / T(sizes[i]);
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

template <typename T>
inline T cast_val(constant void* base, long offset, uint type) {
  return val_at_offs<T>(base, offset, static_cast<ScalarType>(type));
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

// The same, and writes the output in the last type of `ndim_types`.
template <typename T, typename F, typename OM>
kernel void binary_strided_castout(
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
  const auto a = cast_val<OM>(
      input, offset_from_coord(pos, input_strides, ndim_types.x), ndim_types.y);
  const auto b = cast_val<OM>(
      other, offset_from_coord(pos, other_strides, ndim_types.x), ndim_types.z);
  store_at_offs<result_of<F, T, T>>(
      output,
      offset_from_coord(pos, output_strides, ndim_types.x),
      static_cast<ScalarType>(ndim_types.w),
      f(a, b));
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

// Three operands: the grid has their first two dimensions, and the others in
// its z. `types` and `sizes` have those of the inputs, then the output's.
template <typename T, typename F, typename OM>
kernel void ternary_dense(
    device result_of<F, T, T, T>* output [[buffer(0)]],
    constant T* first [[buffer(1)]],
    constant T* second [[buffer(2)]],
    constant T* third [[buffer(3)]],
    uint index [[thread_position_in_grid]]) {
  F f;
  output[index] = static_cast<result_of<F, T, T, T>>(
      f(static_cast<OM>(first[index]),
        static_cast<OM>(second[index]),
        static_cast<OM>(third[index])));
}

template <typename T, typename F, typename OM>
kernel void ternary_dense_cast(
    device void* output [[buffer(0)]],
    constant void* first [[buffer(1)]],
    constant void* second [[buffer(2)]],
    constant void* third [[buffer(3)]],
    constant uint4& sizes [[buffer(4)]],
    constant uint4& types [[buffer(5)]],
    uint index [[thread_position_in_grid]]) {
  F f;
  const auto a = cast_val<OM>(first, long(index) * sizes.x, types.x);
  const auto b = cast_val<OM>(second, long(index) * sizes.y, types.y);
  const auto c = cast_val<OM>(third, long(index) * sizes.z, types.z);
  store_at_offs<result_of<F, T, T, T>>(
      output,
      long(index) * sizes.w,
      static_cast<ScalarType>(types.w),
      static_cast<result_of<F, T, T, T>>(f(a, b, c)));
}

template <typename T, typename F, typename OM>
kernel void ternary_strided(
    device void* output [[buffer(0)]],
    constant void* first [[buffer(1)]],
    constant void* second [[buffer(2)]],
    constant void* third [[buffer(3)]],
    constant long* sizes [[buffer(4)]],
    constant long* output_strides [[buffer(5)]],
    constant long* first_strides [[buffer(6)]],
    constant long* second_strides [[buffer(7)]],
    constant long* third_strides [[buffer(8)]],
    constant uint& ndim [[buffer(9)]],
    uint3 index [[thread_position_in_grid]]) {
  F f;
  int pos[max_ndim];
  pos_from_thread_index(index, pos, sizes, ndim);
  const auto a =
      val_at_offs<T>(first, offset_from_coord(pos, first_strides, ndim));
  const auto b =
      val_at_offs<T>(second, offset_from_coord(pos, second_strides, ndim));
  const auto c =
      val_at_offs<T>(third, offset_from_coord(pos, third_strides, ndim));
  ref_at_offs<result_of<F, T, T, T>>(
      output, offset_from_coord(pos, output_strides, ndim)) =
      static_cast<result_of<F, T, T, T>>(
          f(static_cast<OM>(a), static_cast<OM>(b), static_cast<OM>(c)));
}

template <typename T, typename F, typename OM>
kernel void ternary_strided_cast(
    device void* output [[buffer(0)]],
    constant void* first [[buffer(1)]],
    constant void* second [[buffer(2)]],
    constant void* third [[buffer(3)]],
    constant long* sizes [[buffer(4)]],
    constant long* output_strides [[buffer(5)]],
    constant long* first_strides [[buffer(6)]],
    constant long* second_strides [[buffer(7)]],
    constant long* third_strides [[buffer(8)]],
    constant uint& ndim [[buffer(9)]],
    constant uint4& types [[buffer(10)]],
    uint3 index [[thread_position_in_grid]]) {
  F f;
  int pos[max_ndim];
  pos_from_thread_index(index, pos, sizes, ndim);
  const auto a =
      cast_val<OM>(first, offset_from_coord(pos, first_strides, ndim), types.x);
  const auto b = cast_val<OM>(
      second, offset_from_coord(pos, second_strides, ndim), types.y);
  const auto c =
      cast_val<OM>(third, offset_from_coord(pos, third_strides, ndim), types.z);
  store_at_offs<result_of<F, T, T, T>>(
      output,
      offset_from_coord(pos, output_strides, ndim),
      static_cast<ScalarType>(types.w),
      static_cast<result_of<F, T, T, T>>(f(a, b, c)));
}

template <typename T, typename A, typename F, typename OM>
kernel void ternary_alpha_dense(
    device result_of<F, T, T, T, A>* output [[buffer(0)]],
    constant T* first [[buffer(1)]],
    constant T* second [[buffer(2)]],
    constant T* third [[buffer(3)]],
    constant A& alpha [[buffer(4)]],
    uint index [[thread_position_in_grid]]) {
  F f;
  output[index] = static_cast<result_of<F, T, T, T, A>>(
      f(static_cast<OM>(first[index]),
        static_cast<OM>(second[index]),
        static_cast<OM>(third[index]),
        alpha));
}

template <typename T, typename A, typename F, typename OM>
kernel void ternary_alpha_dense_cast(
    device void* output [[buffer(0)]],
    constant void* first [[buffer(1)]],
    constant void* second [[buffer(2)]],
    constant void* third [[buffer(3)]],
    constant A& alpha [[buffer(4)]],
    constant uint4& sizes [[buffer(5)]],
    constant uint4& types [[buffer(6)]],
    uint index [[thread_position_in_grid]]) {
  F f;
  const auto a = cast_val<OM>(first, long(index) * sizes.x, types.x);
  const auto b = cast_val<OM>(second, long(index) * sizes.y, types.y);
  const auto c = cast_val<OM>(third, long(index) * sizes.z, types.z);
  store_at_offs<result_of<F, T, T, T, A>>(
      output,
      long(index) * sizes.w,
      static_cast<ScalarType>(types.w),
      static_cast<result_of<F, T, T, T, A>>(f(a, b, c, alpha)));
}

template <typename T, typename A, typename F, typename OM>
kernel void ternary_alpha_strided(
    device void* output [[buffer(0)]],
    constant void* first [[buffer(1)]],
    constant void* second [[buffer(2)]],
    constant void* third [[buffer(3)]],
    constant A& alpha [[buffer(4)]],
    constant long* sizes [[buffer(5)]],
    constant long* output_strides [[buffer(6)]],
    constant long* first_strides [[buffer(7)]],
    constant long* second_strides [[buffer(8)]],
    constant long* third_strides [[buffer(9)]],
    constant uint& ndim [[buffer(10)]],
    uint3 index [[thread_position_in_grid]]) {
  F f;
  int pos[max_ndim];
  pos_from_thread_index(index, pos, sizes, ndim);
  const auto a =
      val_at_offs<T>(first, offset_from_coord(pos, first_strides, ndim));
  const auto b =
      val_at_offs<T>(second, offset_from_coord(pos, second_strides, ndim));
  const auto c =
      val_at_offs<T>(third, offset_from_coord(pos, third_strides, ndim));
  ref_at_offs<result_of<F, T, T, T, A>>(
      output, offset_from_coord(pos, output_strides, ndim)) =
      static_cast<result_of<F, T, T, T, A>>(
          f(static_cast<OM>(a), static_cast<OM>(b), static_cast<OM>(c), alpha));
}

template <typename T, typename A, typename F, typename OM>
kernel void ternary_alpha_strided_cast(
    device void* output [[buffer(0)]],
    constant void* first [[buffer(1)]],
    constant void* second [[buffer(2)]],
    constant void* third [[buffer(3)]],
    constant A& alpha [[buffer(4)]],
    constant long* sizes [[buffer(5)]],
    constant long* output_strides [[buffer(6)]],
    constant long* first_strides [[buffer(7)]],
    constant long* second_strides [[buffer(8)]],
    constant long* third_strides [[buffer(9)]],
    constant uint& ndim [[buffer(10)]],
    constant uint4& types [[buffer(11)]],
    uint3 index [[thread_position_in_grid]]) {
  F f;
  int pos[max_ndim];
  pos_from_thread_index(index, pos, sizes, ndim);
  const auto a =
      cast_val<OM>(first, offset_from_coord(pos, first_strides, ndim), types.x);
  const auto b = cast_val<OM>(
      second, offset_from_coord(pos, second_strides, ndim), types.y);
  const auto c =
      cast_val<OM>(third, offset_from_coord(pos, third_strides, ndim), types.z);
  store_at_offs<result_of<F, T, T, T, A>>(
      output,
      offset_from_coord(pos, output_strides, ndim),
      static_cast<ScalarType>(types.w),
      static_cast<result_of<F, T, T, T, A>>(f(a, b, c, alpha)));
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

// For outputs of another type than the functor's, beside the line that
// registers it.
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
          constant uint4& ndim_types,                                   \
          uint index)

#define REGISTER_TERNARY_OP_(NAME, DTYPEI, DTYPEO, OMT)                        \
  C10_METAL_CHECK_RESULT(NAME, DTYPEO, DTYPEI, DTYPEI, DTYPEI);                \
  template [[host_name(#NAME "_dense_" #DTYPEO "_" #DTYPEI)]] kernel void ::   \
      c10::metal::ternary_dense<DTYPEI, NAME##_functor, OMT>(                  \
          device::c10::metal::                                                 \
                  result_of<NAME##_functor, DTYPEI, DTYPEI, DTYPEI> *          \
              output,                                                          \
          constant DTYPEI * first,                                             \
          constant DTYPEI * second,                                            \
          constant DTYPEI * third,                                             \
          uint index);                                                         \
  template [[host_name(#NAME "_dense_cast_" #DTYPEI)]] kernel void ::c10::     \
      metal::ternary_dense_cast<DTYPEI, NAME##_functor, OMT>(                  \
          device void* output,                                                 \
          constant void* first,                                                \
          constant void* second,                                               \
          constant void* third,                                                \
          constant uint4& sizes,                                               \
          constant uint4& types,                                               \
          uint index);                                                         \
  template [[host_name(#NAME "_strided_" #DTYPEO "_" #DTYPEI)]] kernel void :: \
      c10::metal::ternary_strided<DTYPEI, NAME##_functor, OMT>(                \
          device void* output,                                                 \
          constant void* first,                                                \
          constant void* second,                                               \
          constant void* third,                                                \
          constant long* sizes,                                                \
          constant long* output_strides,                                       \
          constant long* first_strides,                                        \
          constant long* second_strides,                                       \
          constant long* third_strides,                                        \
          constant uint& ndim,                                                 \
          uint3 index);                                                        \
  template [[host_name(#NAME "_strided_cast_" #DTYPEI)]] kernel void ::c10::   \
      metal::ternary_strided_cast<DTYPEI, NAME##_functor, OMT>(                \
          device void* output,                                                 \
          constant void* first,                                                \
          constant void* second,                                               \
          constant void* third,                                                \
          constant long* sizes,                                                \
          constant long* output_strides,                                       \
          constant long* first_strides,                                        \
          constant long* second_strides,                                       \
          constant long* third_strides,                                        \
          constant uint& ndim,                                                 \
          constant uint4& types,                                               \
          uint3 index)

#define REGISTER_TERNARY_OP(NAME, DTYPEI, DTYPEO) \
  REGISTER_TERNARY_OP_(NAME, DTYPEI, DTYPEO, DTYPEI)

#define REGISTER_OPMATH_TERNARY_OP(NAME, DTYPEI, DTYPEO) \
  REGISTER_TERNARY_OP_(NAME, DTYPEI, DTYPEO, ::c10::metal::opmath_t<DTYPEI>)

#define REGISTER_TERNARY_ALPHA_OP_(NAME, DTYPEI, DTYPEA, DTYPEO, OMT)          \
  C10_METAL_CHECK_RESULT(NAME, DTYPEO, DTYPEI, DTYPEI, DTYPEI, DTYPEA);        \
  template [[host_name(                                                        \
      #NAME "_dense_" #DTYPEO "_" #DTYPEI "_" #DTYPEA)]] kernel void ::c10::   \
      metal::ternary_alpha_dense<DTYPEI, DTYPEA, NAME##_functor, OMT>(         \
          device::c10::metal::                                                 \
                  result_of<NAME##_functor, DTYPEI, DTYPEI, DTYPEI, DTYPEA> *  \
              output,                                                          \
          constant DTYPEI * first,                                             \
          constant DTYPEI * second,                                            \
          constant DTYPEI * third,                                             \
          constant DTYPEA & alpha,                                             \
          uint index);                                                         \
  template [[host_name(                                                        \
      #NAME "_dense_cast_" #DTYPEI "_" #DTYPEA)]] kernel void ::c10::metal::   \
      ternary_alpha_dense_cast<DTYPEI, DTYPEA, NAME##_functor, OMT>(           \
          device void* output,                                                 \
          constant void* first,                                                \
          constant void* second,                                               \
          constant void* third,                                                \
          constant DTYPEA& alpha,                                              \
          constant uint4& sizes,                                               \
          constant uint4& types,                                               \
          uint index);                                                         \
  template [[host_name(                                                        \
      #NAME "_strided_" #DTYPEO "_" #DTYPEI "_" #DTYPEA)]] kernel void ::c10:: \
      metal::ternary_alpha_strided<DTYPEI, DTYPEA, NAME##_functor, OMT>(       \
          device void* output,                                                 \
          constant void* first,                                                \
          constant void* second,                                               \
          constant void* third,                                                \
          constant DTYPEA& alpha,                                              \
          constant long* sizes,                                                \
          constant long* output_strides,                                       \
          constant long* first_strides,                                        \
          constant long* second_strides,                                       \
          constant long* third_strides,                                        \
          constant uint& ndim,                                                 \
          uint3 index);                                                        \
  template [[host_name(                                                        \
      #NAME "_strided_cast_" #DTYPEI "_" #DTYPEA)]] kernel void ::c10::metal:: \
      ternary_alpha_strided_cast<DTYPEI, DTYPEA, NAME##_functor, OMT>(         \
          device void* output,                                                 \
          constant void* first,                                                \
          constant void* second,                                               \
          constant void* third,                                                \
          constant DTYPEA& alpha,                                              \
          constant long* sizes,                                                \
          constant long* output_strides,                                       \
          constant long* first_strides,                                        \
          constant long* second_strides,                                       \
          constant long* third_strides,                                        \
          constant uint& ndim,                                                 \
          constant uint4& types,                                               \
          uint3 index)

#define REGISTER_TERNARY_ALPHA_OP(NAME, DTYPEI, DTYPEA, DTYPEO) \
  REGISTER_TERNARY_ALPHA_OP_(NAME, DTYPEI, DTYPEA, DTYPEO, DTYPEI)

#define REGISTER_OPMATH_TERNARY_ALPHA_OP(NAME, DTYPEI, DTYPEA, DTYPEO) \
  REGISTER_TERNARY_ALPHA_OP_(                                          \
      NAME, DTYPEI, DTYPEA, DTYPEO, ::c10::metal::opmath_t<DTYPEI>)

} // namespace metal
} // namespace c10
