// Products of tensors in the forms that public kernels use. A is (M, K), B (K, N) or (N, K), C (M, N).
#include <metal_stdlib>
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;

struct Sizes {
  int m, n, k;
};

// Tiles of 64x32 by four simdgroups, from memory to memory; what is at the edges is smaller.
kernel void to_memory(
    device half* a, device half* b, device float* c, constant Sizes& sizes, uint2 group [[threadgroup_position_in_grid]]) {
  auto A = tensor<device half, dextents<int32_t, 2>, tensor_inline>(a, dextents<int32_t, 2>(sizes.k, sizes.m));
  auto B = tensor<device half, dextents<int32_t, 2>, tensor_inline>(b, dextents<int32_t, 2>(sizes.n, sizes.k));
  auto C = tensor(c, dextents<int32_t, 2>(sizes.n, sizes.m), array<int, 2>({1, sizes.n}));
  constexpr auto descriptor = matmul2d_descriptor(64, 32, static_cast<int>(dynamic_extent));
  matmul2d<descriptor, execution_simdgroups<4>> product;
  auto left = A.slice(0, int(group.y) * 64);
  auto right = B.slice(int(group.x) * 32, 0);
  auto out = C.slice(int(group.x) * 32, int(group.y) * 64);
  product.run(left, right, out);
}

// The same over threadgroup memory, in steps of 16 of k, with B transposed and the sum in registers.
kernel void in_steps(
    device const half* a, device const half* b, device float* c, constant Sizes& sizes, threadgroup half* shared,
    uint2 group [[threadgroup_position_in_grid]], uint index [[thread_index_in_threadgroup]]) {
  threadgroup half* sa = shared;
  threadgroup half* sb = shared + 32 * 16;
  auto tA = tensor<threadgroup half, dextents<int, 2>, tensor_inline>(sa, dextents<int, 2>(16, 32));
  auto tB = tensor<threadgroup half, dextents<int, 2>, tensor_inline>(sb, dextents<int, 2>(16, 48));
  matmul2d<matmul2d_descriptor(32, 48, 16, false, true, true, matmul2d_descriptor::mode::multiply_accumulate), execution_simdgroups<4>> product;
  auto sum = product.get_destination_cooperative_tensor<decltype(tA), decltype(tB), float>();
  for (ushort i = 0; i < sum.get_capacity(); ++i)
    if (sum.is_valid_element(i)) sum[i] = 0;
  const int m0 = int(group.y) * 32, n0 = int(group.x) * 48;
  for (int k0 = 0; k0 < sizes.k; k0 += 16) {
    for (int i = int(index); i < 32 * 16; i += 128) {
      const int m = m0 + i / 16, k = k0 + i % 16;
      sa[i] = m < sizes.m && k < sizes.k ? a[m * sizes.k + k] : half(0);
    }
    for (int i = int(index); i < 48 * 16; i += 128) {
      const int n = n0 + i / 16, k = k0 + i % 16;
      sb[i] = n < sizes.n && k < sizes.k ? b[n * sizes.k + k] : half(0);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    product.run(tA.slice<16, 32>(0, 0), tB.slice<16, 48>(0, 0), sum);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (ushort i = 0; i < sum.get_capacity(); ++i) {
    if (!sum.is_valid_element(i)) continue;
    const auto at = sum.get_multidimensional_index(i);
    if (m0 + at[1] < sizes.m && n0 + at[0] < sizes.n) c[(m0 + at[1]) * sizes.n + n0 + at[0]] = sum[i];
  }
}

// One simdgroup whose operands are in registers, in the order that relaxed tiles of 16x16 have.
template <typename T, bool Transposed>
kernel void in_registers(device const T* a, device const T* b, device float* c, uint lane [[thread_index_in_simdgroup]]) {
  constexpr auto descriptor = matmul2d_descriptor(16, 32, 16, false, Transposed, true, matmul2d_descriptor::mode::multiply_accumulate);
  matmul2d<descriptor, execution_simdgroup> product;
  auto left = product.template get_left_input_cooperative_tensor<T, T, float>();
  auto right = product.template get_right_input_cooperative_tensor<T, T, float>();
  auto sum = product.template get_destination_cooperative_tensor<remove_addrspace_t<decltype(left)>, remove_addrspace_t<decltype(right)>, float>();
  const short quad = lane >> 2, row = (quad & 4) | ((lane >> 1) & 3), column = ((quad & 2) | (lane & 1)) * 4;
  vec<float, 8> first(0);
  for (short i = 0; i < 8; ++i) {
    const short r = row + i / 4 * 8, k = column + i % 4;
    left[i] = a[r * 16 + k];
    for (short part = 0; part < 2; ++part) right[8 * part + i] = Transposed ? b[(r + 16 * part) * 16 + k] : b[r * 32 + k + 16 * part];
    sum[i] = first[i] + 1;
    sum[8 + i] = 2;
  }
  product.run(left, right, sum);
  for (short i = 0; i < 8; ++i) {
    const short r = row + i / 4 * 8, n = column + i % 4;
    c[r * 32 + n] = sum[i];
    c[r * 32 + n + 16] = sum[8 + i];
  }
}
template [[host_name("in_registers_half")]] kernel void in_registers<half, false>(device const half*, device const half*, device float*, uint);
template [[host_name("in_registers_float_t")]] kernel void in_registers<float, true>(device const float*, device const float*, device float*, uint);

// Integers, with the left operand in registers and transposed, and the strict order of elements.
kernel void integers(device int8_t* a, device int8_t* b, device int* c) {
  matmul2d<matmul2d_descriptor(8, 24, 40, true, false, false), execution_simdgroup> product;
  auto left = product.get_left_input_cooperative_tensor<int8_t, int8_t, int>();
  left.load(tensor(a, extents<int, 8, 40>()));
  auto right = tensor(b, dextents<int, 2>{24, 40});
  auto out = product.get_destination_cooperative_tensor<decltype(left), decltype(right), int>();
  product.run(left, right, out);
  out.store(tensor(c, extents<int, 24, 8>{}));
}

kernel void alone(device float* a, device float* b, device float* c) {
  matmul2d<matmul2d_descriptor(4, 6, 5), execution_thread> product;
  auto left = tensor(a, dextents<int, 2>(5, 4));
  auto right = tensor(b, dextents<int, 2>(6, 5)), out = tensor(c, dextents<int, 2>(6, 4));
  product.run(left, right, out);
  out[5, 3] += left.get_extent(0) * 1000;
}

kernel void handed(tensor<device float, dextents<int, 2>> a [[buffer(0)]], device float* out [[buffer(1)]]) { out[0] = a[0, 0]; }
