// Kernels with a planted fault each. The lines that a tool has to name end with the kernel's name.
#include <metal_stdlib>
using namespace metal;

// ---- races in threadgroup memory
kernel void missing_barrier(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                            uint i [[thread_position_in_grid]], uint lid [[thread_position_in_threadgroup]]) {
  threadgroup float tile[256];
  tile[lid] = x[i];        // missing_barrier
  y[i] = tile[255 - lid];  // missing_barrier
}

kernel void reused_too_early(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                             uint i [[thread_position_in_grid]], uint lid [[thread_position_in_threadgroup]]) {
  threadgroup float tile[256];
  tile[lid] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float other = tile[255 - lid];  // reused_too_early
  tile[lid] = other * 2;                // reused_too_early
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[lid] + tile[(lid + 7) % 256];
}

kernel void simdgroups_not_in_step(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                                   uint i [[thread_position_in_grid]], uint lid [[thread_position_in_threadgroup]]) {
  threadgroup float tile[256];
  tile[lid] = x[i];  // simdgroups_not_in_step
  simdgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[(lid + 64) % 256];  // simdgroups_not_in_step
}

kernel void halving_without_barrier(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                                    uint i [[thread_position_in_grid]], uint lid [[thread_position_in_threadgroup]]) {
  threadgroup float tile[256];
  tile[lid] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint step = 128; step > 0; step /= 2)
    if (lid < step) tile[lid] += tile[lid + step];  // halving_without_barrier
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[0];
}

// ---- missing bounds
kernel void reads_one_past(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant uint& n [[buffer(2)]],
                           uint i [[thread_position_in_grid]]) {
  if (i < n) y[i] = x[i + 1] - x[i];  // reads_one_past
}

kernel void writes_past_a_ragged_end(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                                     constant uint& n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  const float v = x[min(i, n - 1)];
  y[i] = v + 1;  // writes_past_a_ragged_end
}

kernel void reads_before(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant uint& n [[buffer(2)]],
                         uint i [[thread_position_in_grid]]) {
  if (i < n) y[i] = x[long(i) - 1];  // reads_before
}

kernel void past_threadgroup_memory(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                                    uint i [[thread_position_in_grid]], uint lid [[thread_position_in_threadgroup]]) {
  threadgroup float tile[256];
  tile[lid + uint(x[i])] = 1;  // past_threadgroup_memory
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[lid];
}

// ---- divergent barriers
kernel void barrier_in_a_branch(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                                uint i [[thread_position_in_grid]], uint lid [[thread_position_in_threadgroup]]) {
  threadgroup float tile[256];
  tile[lid] = x[i];
  if (lid % 2 == 0) {
    threadgroup_barrier(mem_flags::mem_threadgroup);  // barrier_in_a_branch
    y[i] = tile[lid] + 1;
  } else {
    y[i] = tile[lid];
  }
}

kernel void barrier_in_both_branches(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                                     uint i [[thread_position_in_grid]], uint lid [[thread_position_in_threadgroup]]) {
  threadgroup float tile[256];
  tile[lid] = x[i];
  float other = 0;
  if (lid % 3 == 0) {
    threadgroup_barrier(mem_flags::mem_threadgroup);  // barrier_in_both_branches
    other = tile[255 - lid];
  } else {
    other = tile[lid] * 3;
    threadgroup_barrier(mem_flags::mem_threadgroup);  // barrier_in_both_branches
  }
  y[i] = other;
}

// ---- memory that nothing wrote
kernel void adds_to_nothing(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                            uint i [[thread_position_in_grid]]) {
  y[i] += x[i];  // adds_to_nothing
}

// ---- a barrier after some threads have returned, which counts as arrived on the hardware
kernel void barrier_after_return(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                                 uint i [[thread_position_in_grid]], uint lid [[thread_position_in_threadgroup]]) {
  threadgroup float tile[256];
  tile[lid] = x[i];
  if (lid >= 200) return;
  threadgroup_barrier(mem_flags::mem_threadgroup);  // barrier_after_return
  y[i] = tile[lid] + tile[255 - lid];
}
