// The sum of the values of a threadgroup up to that of each thread
inline uint scan_threadgroup(threadgroup uint* sums, uint value, uint tid, uint group_size) {
  sums[tid] = value;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint offset = 1; offset < group_size; offset *= 2) {
    const uint before = tid >= offset ? sums[tid - offset] : 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sums[tid] += before;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  return sums[tid];
}
