// Kernels in pairs: one with a fault, which a comment marks on its line, and one without, whose name ends in _right.
// Together they have more threadgroup variables than a process has room for in its static thread-local storage.
#include <metal_stdlib>
using namespace metal;

// The threads past the end leave before the others meet.
kernel void leave_early(device float* out, constant float* in, constant uint& count,
                        uint i [[thread_position_in_grid]], uint local [[thread_index_in_threadgroup]],
                        uint n [[threads_per_threadgroup]]) {
  threadgroup float shared[256];
  if (i >= count) return;
  shared[local] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);  // FAULT leave_early
  out[i] = shared[0];
}
kernel void leave_early_right(device float* out, constant float* in, constant uint& count,
                              uint i [[thread_position_in_grid]], uint local [[thread_index_in_threadgroup]],
                              uint n [[threads_per_threadgroup]]) {
  threadgroup float shared[256];
  if (i < count) shared[local] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < count) out[i] = shared[0];
}

// One branch has a barrier, the other none.
kernel void one_branch(device float* out, constant float* in, constant uint& count,
                       uint i [[thread_position_in_grid]], uint local [[thread_index_in_threadgroup]]) {
  threadgroup float shared[256];
  shared[local] = in[i];
  if (local < count) {
    threadgroup_barrier(mem_flags::mem_threadgroup);  // FAULT one_branch
  }
  out[i] = shared[local ^ 1];
}
kernel void one_branch_right(device float* out, constant float* in, constant uint& count,
                             uint i [[thread_position_in_grid]], uint local [[thread_index_in_threadgroup]]) {
  threadgroup float shared[256];
  shared[local] = in[i];
  if (count > 0) threadgroup_barrier(mem_flags::mem_threadgroup);  // all threads or none
  out[i] = shared[local ^ 1];
}

// Both branches have a barrier: two, which different threads wait at.
kernel void two_branches(device float* out, constant float* in, constant uint& count,
                         uint i [[thread_position_in_grid]], uint local [[thread_index_in_threadgroup]]) {
  threadgroup float shared[256];
  if (local < count) {
    shared[local] = in[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);  // FAULT two_branches
  } else {
    shared[local] = -in[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  out[i] = shared[local ^ 1];
}
kernel void two_branches_right(device float* out, constant float* in, constant uint& count,
                               uint i [[thread_position_in_grid]], uint local [[thread_index_in_threadgroup]]) {
  threadgroup float shared[256];
  shared[local] = local < count ? in[i] : -in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = shared[local ^ 1];
}

inline void publish(threadgroup float* shared, uint local, float value) {
  shared[local] = value;
  threadgroup_barrier(mem_flags::mem_threadgroup);  // FAULT helper
}

// The same through a function that both branches call.
kernel void helper(device float* out, constant float* in, constant uint& count, uint i [[thread_position_in_grid]],
                   uint local [[thread_index_in_threadgroup]]) {
  threadgroup float shared[256];
  if (local < count) {
    publish(shared, local, in[i]);
    out[i] = shared[0];
  } else {
    publish(shared, local, 2 * in[i]);
    out[i] = shared[1];
  }
}
kernel void helper_right(device float* out, constant float* in, constant uint& count,
                         uint i [[thread_position_in_grid]], uint local [[thread_index_in_threadgroup]]) {
  threadgroup float shared[256];
  publish(shared, local, local < count ? in[i] : 2 * in[i]);
  out[i] = shared[local < count ? 0 : 1];
}

// Threads go round a loop with a barrier as often as their own count says.
kernel void loop(device float* out, constant float* in, constant uint& count, uint i [[thread_position_in_grid]],
                 uint local [[thread_index_in_threadgroup]]) {
  threadgroup float shared[256];
  shared[local] = in[i];
  float sum = 0;
  for (uint k = 0; k < local % 3 + count; ++k) {
    threadgroup_barrier(mem_flags::mem_threadgroup);  // FAULT loop
    sum += shared[(local + k) % 32];
  }
  out[i] = sum;
}
kernel void loop_right(device float* out, constant float* in, constant uint& count,
                       uint i [[thread_position_in_grid]], uint local [[thread_index_in_threadgroup]]) {
  threadgroup float shared[256];
  shared[local] = in[i];
  float sum = 0;
  for (uint k = 0; k < 2 + count; ++k) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (k < local % 3 + count) sum += shared[(local + k) % 32];
  }
  out[i] = sum;
}

// A simdgroup's barrier that some of its lanes skip.
kernel void in_simdgroup(device float* out, constant float* in, constant uint& count,
                         uint i [[thread_position_in_grid]], uint local [[thread_index_in_threadgroup]]) {
  threadgroup float shared[256];
  shared[local] = in[i];
  if (local % 32 < count) simdgroup_barrier(mem_flags::mem_threadgroup);  // FAULT in_simdgroup
  out[i] = shared[local ^ 1];
}
// A simdgroup that skips it as one does no harm.
kernel void in_simdgroup_right(device float* out, constant float* in, constant uint& count,
                               uint i [[thread_position_in_grid]], uint local [[thread_index_in_threadgroup]]) {
  threadgroup float shared[256];
  shared[local] = in[i];
  if (local / 32 < count) simdgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = shared[local];
}

// Lanes take part in reductions at different times of a loop: the lanes meet, without a barrier.
kernel void reduce_in_loop_right(device float* out, constant float* in, constant uint& count,
                                 uint i [[thread_position_in_grid]], uint local [[thread_index_in_threadgroup]]) {
  float sum = 0;
  for (uint k = 0; k < count; ++k)
    if (local % 2 == k % 2) sum += simd_sum(in[i]);
  out[i] = sum;
}

// Each thread waits once in each turn of the outer loop, but not in the same turn of the inner one.
kernel void turns(device float* out, constant float* in, constant uint& count, uint i [[thread_position_in_grid]],
                  uint local [[thread_index_in_threadgroup]]) {
  threadgroup float shared[256];
  shared[local] = in[i];
  for (uint a = 0; a < 3; ++a)
    for (uint k = 0; k < count; ++k)
      if (k == ((local + a) & 1)) threadgroup_barrier(mem_flags::mem_threadgroup);  // FAULT turns
  out[i] = shared[local];
}
kernel void turns_right(device float* out, constant float* in, constant uint& count, uint i [[thread_position_in_grid]],
                        uint local [[thread_index_in_threadgroup]]) {
  threadgroup float shared[256];
  shared[local] = in[i];
  for (uint a = 0; a < 3; ++a)
    for (uint k = 0; k < count + local; ++k)  // the turns that differ have no barrier
      if (k < count) threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = shared[local];
}
