// Kernels that tensors of the right type are bound to, and of others.
#include <metal_stdlib>
using namespace metal;

kernel void take_half(device float* out, device const half* x, uint i [[thread_position_in_grid]]) { out[i] = x[i / 4]; }
kernel void take_bfloat(device float* out, device const bfloat* x, uint i [[thread_position_in_grid]]) { out[i] = x[i / 4]; }
kernel void take_float(device float* out, constant float* x, uint i [[thread_position_in_grid]]) { out[i] = x[i / 4]; }
kernel void take_vectors(device float* out, device const float2* x, uint i [[thread_position_in_grid]]) { out[i] = x[i / 8].y; }
kernel void take_int(device float* out, device const int* x, uint i [[thread_position_in_grid]]) { out[i] = float(x[i / 4]); }
kernel void take_uint(device float* out, device const uint* x, uint i [[thread_position_in_grid]]) { out[i] = as_type<float>(x[i / 4]); }
kernel void take_bytes(device float* out, device const uchar* x, uint i [[thread_position_in_grid]]) { out[i] = float(x[i]); }
kernel void take_truth(device float* out, device const bool* x, uint i [[thread_position_in_grid]]) { out[i] = x[i]; }
kernel void skip_half(device float* out, device const half* x, uint i [[thread_position_in_grid]]) {
  out[i] = i > 100 ? float(x[i]) : 1;
}
struct Sizes {
  int rows;
  packed_int2 columns;
};
struct Pair {
  int first, second;
};
kernel void take_pair(device float* out, constant Pair& n, uint i [[thread_position_in_grid]]) { out[i] = n.first + n.second; }
kernel void take_list(device float* out, constant int* n, uint i [[thread_position_in_grid]]) { out[i] = n[i % 3]; }
kernel void take_four(device float* out, constant int4& n, uint i [[thread_position_in_grid]]) { out[i] = n.z; }
kernel void take_three(device float* out, constant uint3& n, uint i [[thread_position_in_grid]]) { out[i] = n.y; }
kernel void take_sizes(device float* out, constant Sizes& n, uint i [[thread_position_in_grid]]) { out[i] = n.columns.x; }
kernel void take_factor(device float* out, constant float& n, uint i [[thread_position_in_grid]]) { out[i] = n; }
kernel void take_small(device float* out, constant half& n, uint i [[thread_position_in_grid]]) { out[i] = n; }
kernel void take_number(device float* out, constant int& n, uint i [[thread_position_in_grid]]) { out[i] = n; }
kernel void take_count(device float* out, constant short& n, uint i [[thread_position_in_grid]]) { out[i] = n; }
