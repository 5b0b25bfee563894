kernel void marks(
    device atomic_int* marks,
    device atomic_int* group_counts,
    constant T* input,
    constant long& slices,
    constant long& slice_size,
    constant long& group_size,
    uint tid [[thread_position_in_grid]]) {
  // A slice that differs from the one before is marked; the first is always
  const index_t slice = index_t(tid) / index_t(slice_size) % index_t(slices);
  if (slice == 0 ? tid > 0 : input[tid] == input[tid - index_t(slice_size)]) {
    return;
  }
  if (atomic_exchange_explicit(marks + slice, 1, memory_order_relaxed) == 0) {
    atomic_fetch_add_explicit(group_counts + slice / index_t(group_size), 1, memory_order_relaxed);
  }
}

kernel void ends(
    device long* group_ends,
    device int* last,
    constant int* group_counts,
    constant long& groups,
    uint tid [[thread_position_in_threadgroup]],
    uint group_size [[threads_per_threadgroup]]) {
  threadgroup uint sums[MOST_THREADS];
  long total = 0;
  for (long start = 0; start < groups; start += group_size) {
    const long group = start + tid;
    const uint sum = scan_threadgroup(sums, group < groups ? group_counts[group] : 0, tid, group_size);
    if (group < groups) {
      group_ends[group] = total + sum;
    }
    total += sums[group_size - 1];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (tid == 0) {
    *last = total - 1;
  }
}

kernel void ranks(
    device long* starts,
    device long* inverse,
    constant int* marks,
    constant long* group_ends,
    constant long* places,
    constant long& slices,
    constant bool& has_inverse,
    uint group [[threadgroup_position_in_grid]],
    uint tid [[thread_position_in_threadgroup]],
    uint group_size [[threads_per_threadgroup]]) {
  threadgroup uint sums[MOST_THREADS];
  const long slice = long(group) * group_size + tid;
  const uint mark = slice < slices ? marks[slice] : 0;
  const uint sum = scan_threadgroup(sums, mark, tid, group_size);
  if (slice >= slices) {
    return;
  }
  const long rank = group_ends[group] - sums[group_size - 1] + sum - 1;
  if (mark) {
    starts[rank] = slice;
  }
  if (has_inverse) {
    inverse[PLACE] = rank;
  }
}

kernel void take(
    device T* output,
    device long* counts,
    constant T* input,
    constant long* starts,
    constant int* last,
    constant long& slices,
    constant long& slice_size,
    constant bool& has_counts,
    uint tid [[thread_position_in_grid]]) {
  const index_t slice = index_t(tid) / index_t(slice_size) % index_t(slices);
  const index_t found = *last + 1;
  if (slice < found) {
    output[tid] = input[tid + (index_t(starts[slice]) - slice) * index_t(slice_size)];
  }
  if (has_counts && index_t(tid) < found) {
    counts[tid] = (index_t(tid) + 1 < found ? starts[tid + 1] : slices) - starts[tid];
  }
}
