kernel void sums(
    device float* sums,
    const device T* weights,
    constant long& size,
    constant long* strides,
    uint group [[threadgroup_position_in_grid]],
    uint tid [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  threadgroup float totals[MOST_THREADS];
  const index_t n = size, share = (n + threads - 1) / threads;
  const index_t begin = min(index_t(tid) * share, n), end = min(begin + share, n);
  const device T* row = weights + index_t(group) * index_t(strides[0]);
  device float* row_sums = sums + index_t(group) * n;
  float sum = 0;
  for (index_t i = begin; i < end; i++) {
    sum += static_cast<float>(row[i * index_t(strides[1])]);
    row_sums[i] = sum;
  }
  totals[tid] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // The same sums for all threads: none is less than one before it
  float before = 0;
  for (uint i = 0; i < tid; i++) {
    before += totals[i];
  }
  for (index_t i = begin; i < end; i++) {
    row_sums[i] += before;
  }
}

kernel void draw(
    device long* output,
    const device float* sums,
    constant long* sizes,
    constant long* state,
    uint tid [[thread_position_in_grid]]) {
  const uint n = sizes[0];
  const device float* row = sums + ulong(tid) / sizes[1] * n;
  const float total = row[n - 1];
  const uint word = c10::metal::philox4::rand(state[0], state[1] + tid).x;
  const float point = (word >> 8) * (1.0f / (1 << 24)) * total;
  uint first = 0, last = n - 1;
  while (first < last) {
    const uint middle = first + (last - first) / 2;
    // The point may be rounded to the total, behind which no category has a weight
    if (row[middle] > point || row[middle] >= total) {
      last = middle;
    } else {
      first = middle + 1;
    }
  }
  output[tid] = first;
}
