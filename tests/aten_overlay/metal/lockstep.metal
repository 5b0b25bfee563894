// Control flow in which lanes part and meet again, around barriers and simdgroup functions.
#include <metal_stdlib>
using namespace metal;

#define KERNEL(name) \
  kernel void name( \
      constant int* x [[buffer(0)]], device int* out [[buffer(1)]], constant uint& n [[buffer(2)]], \
      uint i [[thread_position_in_grid]], uint id [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]], \
      uint size [[threads_per_threadgroup]])

// Loops of different lengths, nested, with every way out of them.
KERNEL(loops) {
  threadgroup int shared[1024];
  int sum = 0;
  for (int k = 0; k < x[i]; ++k) {
    if (k % 7 == 3) continue;
    for (int j = k; j > 0; j /= 2) {
      if (j == 5) break;
      sum += j & 1 ? j : -k;
    }
    if (sum > 60) break;
  }
  shared[id] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = shared[size - 1 - id];
}
// A value that a loop changes and that is read after it, by lanes that left the loop at different times.
KERNEL(left_at_different_times) {
  int k = 0, before = 0;
  do {
    before = k;
    k += 1 + (x[i] & 1);
  } while (k < x[i] % 13);
  out[i] = simd_sum(k) * 1000 + before;
}
// A simdgroup function in a loop that some lanes leave early.
KERNEL(fewer_and_fewer) {
  int v = x[i] & 15, total = 0;
  while (v > 0) {
    total += simd_sum(v);
    v -= 3;
  }
  out[i] = total + simd_max(total);
}
// A simdgroup operation that some lanes leave out in a round of a loop.
KERNEL(left_out) {
  int total = 0;
  for (int k = 0; k < 6; ++k) {
    if ((x[i] + k) % 3 == 0) continue;
    if (((x[i] >> k) & 1) == 0) total += simd_sum(x[i] + k);
    else if (total > 400) break;
  }
  out[i] = total;
}
KERNEL(some_return) {
  if (x[i] % 3 == 0) {
    out[i] = -1;
    return;
  }
  out[i] = simd_sum(x[i]) + simd_shuffle_xor(x[i], 1);
}
KERNEL(cases) {
  int v = x[i];
  switch (v % 5) {
    case 0: v = simd_sum(v); break;
    case 1: v = -v;
    case 2: v += 100; break;
    case 4: v *= simd_max(v);
    default: v -= lane;
  }
  out[i] = v + simd_min(v);
}
// Rounds of a sort in threadgroup memory: barriers in a loop whose bounds are the same for all.
KERNEL(sorted) {
  threadgroup int shared[1024];
  shared[id] = x[i];
  for (uint round = 0; round < size; ++round) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint at = 2 * id + (round & 1);
    if (at + 1 < size && shared[at] > shared[at + 1]) {
      const int low = shared[at + 1];
      shared[at + 1] = shared[at];
      shared[at] = low;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = shared[id];
}
// Memory of a thread's own, indexed by what it reads.
KERNEL(private_arrays) {
  int own[16];
  for (int k = 0; k < 16; ++k) own[k] = k * x[i];
  own[x[i] & 15] = simd_sum(own[(x[i] + 1) & 15]);
  int sum = 0;
  for (int k = 0; k < 16; ++k) sum += own[k] * (k + 1);
  out[i] = sum;
}
// Strides of more than one, an index that passes the end, and a count that is read again after each store.
KERNEL(strided) {
  int sum = 0;
  for (uint k = id; k < n; k += size) sum += x[k];
  for (uint k = 3 * id; k < n; k += 3 * size) sum += x[k];
  sum = simd_sum(sum);
  for (uint k = id; k < n; k += size) out[k] = x[k] + sum;
}
// A histogram of each threadgroup in its own atomics, added up in atomics of all.
KERNEL(histogram) {
  threadgroup atomic_int bins[40];
  for (uint k = id; k < 40; k += size) atomic_store_explicit(&bins[k], 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const int place = atomic_fetch_add_explicit(&bins[x[i]], 1, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  device atomic_int* all = reinterpret_cast<device atomic_int*>(out);
  for (uint k = id; k < 40; k += size)
    atomic_fetch_add_explicit(&all[k], atomic_load_explicit(&bins[k], memory_order_relaxed), memory_order_relaxed);
  atomic_fetch_max_explicit(&all[40 + x[i]], place + 1, memory_order_relaxed);
}
// An array of buffers, function constants, and memory whose length the launch gives.
constant int scale [[function_constant(2)]];
kernel void indirect(
    constant array<device int*, 3>& inputs [[buffer(0)]], device int* out [[buffer(1)]],
    threadgroup int* wide [[threadgroup(0)]], threadgroup short* narrow [[threadgroup(3)]],
    uint i [[thread_position_in_grid]], uint id [[thread_index_in_threadgroup]], uint size [[threads_per_threadgroup]]) {
  wide[id] = inputs[0][i] + scale * inputs[2][i];
  narrow[size - 1 - id] = inputs[1][i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = wide[size - 1 - id] + narrow[id];
}
kernel void in_two_dimensions(
    constant int* x [[buffer(0)]], device int* out [[buffer(1)]], uint2 p [[thread_position_in_grid]],
    uint2 l [[thread_position_in_threadgroup]], uint2 n [[threads_per_grid]], uint2 size [[threads_per_threadgroup]]) {
  threadgroup int shared[16][17];
  shared[l.y][l.x] = x[p.y * n.x + p.x];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint turned = l.x * size.y + l.y;
  out[p.y * n.x + p.x] = shared[turned / size.x][turned % size.x];
}
kernel void doubles_and_halves(
    constant float* x [[buffer(0)]], device float* out [[buffer(1)]], uint i [[thread_position_in_grid]], ushort lane [[thread_index_in_simdgroup]]) {
  const half h = half(x[i]);
  const float4 v = float4(x[i], h, lane, 1.0);
  const half2 sum = half2(simd_sum(h), simd_max(h));
  out[i] = dot(v, float4(sum.x, sum.y, 0.5, simd_broadcast(x[i], 3)));
}
