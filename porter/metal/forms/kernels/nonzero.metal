kernel void count(
    device int* counts,
    constant T* input,
    constant long* sizes,
    constant long* strides,
    constant long& ndim,
    constant long& numel,
    uint group [[threadgroup_position_in_grid]],
    uint tid [[thread_position_in_threadgroup]],
    uint group_size [[threads_per_threadgroup]]) {
  threadgroup uint sums[MOST_THREADS];
  const index_t index = index_t(group) * group_size + tid;
  const bool is_found = is_nonzero(input, index, sizes, strides, ndim, numel);
  const uint rank = scan_threadgroup(sums, is_found, tid, group_size);
  if (tid == group_size - 1) {
    counts[group] = rank;
  }
}

kernel void write(
    device long* output,
    constant int* ends,
    constant T* input,
    constant long* sizes,
    constant long* strides,
    constant long& ndim,
    constant long& numel,
    constant long* output_strides,
    uint group [[threadgroup_position_in_grid]],
    uint tid [[thread_position_in_threadgroup]],
    uint group_size [[threads_per_threadgroup]]) {
  threadgroup uint sums[MOST_THREADS];
  const index_t index = index_t(group) * group_size + tid;
  const bool is_found = is_nonzero(input, index, sizes, strides, ndim, numel);
  const uint rank = scan_threadgroup(sums, is_found, tid, group_size);
  if (!is_found) {
    return;
  }
  const index_t row = ends[group] - sums[group_size - 1] + rank - 1;
  index_t rest = index;
  for (long d = ndim - 1; d >= 0; d--) {
    output[row * index_t(output_strides[0]) + d * index_t(output_strides[1])] = rest % index_t(sizes[d]);
    rest /= index_t(sizes[d]);
  }
}
