kernel void blocks(
    device T* values,
    device long* indices,
    constant T* input,
    constant long* sizes,
    constant long* input_strides,
    constant long* values_strides,
    constant long* indices_strides,
    constant long& ndim,
    constant long& kept,
    constant bool& descending,
    uint group [[threadgroup_position_in_grid]],
    uint tid [[thread_position_in_threadgroup]],
    uint group_size [[threads_per_threadgroup]]) {
  threadgroup order_t<T> shared_orders[MOST_THREADS];
  threadgroup ushort shared_indices[MOST_THREADS];
  const index_t size = sizes[ndim - 1];
  const uint block = EACH * group_size;
  const index_t blocks = (size + block - 1) / block;
  const index_t start = index_t(group) % blocks * block;
  const uint count = min(index_t(block), size - start);
  index_t rest = index_t(group) / blocks;
  index_t input_offset = 0;
  index_t values_offset = 0;
  index_t indices_offset = 0;
  for (long d = ndim - 2; d >= 0; d--) {
    const index_t i = rest % index_t(sizes[d]);
    rest /= index_t(sizes[d]);
    input_offset += i * index_t(input_strides[d]);
    values_offset += i * index_t(values_strides[d]);
    indices_offset += i * index_t(indices_strides[d]);
  }
  // What is past the row comes last, as its indices are larger
  const order_t<T> mask = descending ? ~order_t<T>(0) : 0;
  T elements[EACH];
  for (uint i = 0; i < EACH; i++) {
    const uint at = tid + i * group_size;
    elements[i] = at < count ? input[input_offset + (start + at) * index_t(input_strides[ndim - 1])] : T(0);
    shared_orders[at] = at < count ? order_of(elements[i]) ^ mask : ~order_t<T>(0);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // A thread sorts four elements by how many of them come before each
  const uint first = EACH * tid;
  order_t<T> orders[EACH];
  ushort indices_of[EACH];
  for (uint i = 0; i < EACH; i++) {
    orders[i] = shared_orders[first + i];
  }
  for (uint i = 0; i < EACH; i++) {
    uint place = first;
    for (uint j = 0; j < EACH; j++) {
      place += j < i ? orders[j] <= orders[i] : orders[j] < orders[i];
    }
    shared_orders[place] = orders[i];
    shared_indices[place] = first + i;
  }
  for (uint width = EACH; width < count; width *= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint pair = first / width / 2 * 2 * width;
    const uint middle = pair + width;
    uint left = pair +
        count_left(&shared_orders[pair], width, &shared_orders[middle], width, first - pair, order_t<T>(0));
    uint right = middle + (first - left);
    for (uint i = 0; i < EACH; i++) {
      const order_t<T> of_left = left < middle ? shared_orders[left] : 0;
      const order_t<T> of_right = right < middle + width ? shared_orders[right] : 0;
      const bool is_right = left == middle || (right < middle + width && of_right < of_left);
      orders[i] = is_right ? of_right : of_left;
      indices_of[i] = shared_indices[is_right ? right++ : left++];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0; i < EACH; i++) {
      shared_orders[first + i] = orders[i];
      shared_indices[first + i] = indices_of[i];
    }
  }
  // Elements take the place of what they were sorted by
  threadgroup_barrier(mem_flags::mem_threadgroup);
  threadgroup T* shared_values = reinterpret_cast<threadgroup T*>(shared_orders);
  for (uint i = 0; i < EACH; i++) {
    shared_values[tid + i * group_size] = elements[i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = tid; i < count && start + i < kept; i += group_size) {
    values[values_offset + (start + i) * index_t(values_strides[ndim - 1])] =
        shared_values[shared_indices[i]];
    indices[indices_offset + (start + i) * index_t(indices_strides[ndim - 1])] = start + shared_indices[i];
  }
}

kernel void merge(
    device T* values,
    device long* indices,
    constant T* run_values,
    constant long* run_indices,
    constant long* sizes,
    constant long* values_strides,
    constant long* indices_strides,
    constant long& ndim,
    constant long& kept,
    constant bool& descending,
    constant long& width,
    uint tid [[thread_position_in_grid]]) {
  const index_t size = sizes[ndim - 1];
  const index_t threads = (size - 1) / EACH + 1;
  const index_t first = index_t(tid) % threads * EACH;
  const index_t row_start = index_t(tid) / threads * size;
  index_t rest = index_t(tid) / threads;
  index_t values_offset = 0;
  index_t indices_offset = 0;
  for (long d = ndim - 2; d >= 0; d--) {
    const index_t i = rest % index_t(sizes[d]);
    rest /= index_t(sizes[d]);
    values_offset += i * index_t(values_strides[d]);
    indices_offset += i * index_t(indices_strides[d]);
  }
  const index_t pair = first / index_t(width) / 2 * 2 * index_t(width);
  const index_t middle = pair + min(index_t(width), size - pair);
  const index_t end = middle + min(index_t(width), size - middle);
  constant T* row_values = run_values + row_start;
  const order_t<T> mask = descending ? ~order_t<T>(0) : 0;
  index_t left = pair + count_left(
      row_values + pair, middle - pair, row_values + middle, end - middle, first - pair, mask);
  index_t right = middle + (first - left);
  for (index_t to = first; to < first + min(index_t(EACH), min(size, index_t(kept)) - first); to++) {
    const bool is_right = left == middle ||
        (right < end && (order_of(row_values[right]) ^ mask) < (order_of(row_values[left]) ^ mask));
    const index_t from = row_start + (is_right ? right++ : left++);
    values[values_offset + to * index_t(values_strides[ndim - 1])] = run_values[from];
    indices[indices_offset + to * index_t(indices_strides[ndim - 1])] = run_indices[from];
  }
}

kernel void median(
    device T* values,
    device long* indices,
    constant T* run_values,
    constant long* run_indices,
    constant long* sizes,
    constant long* values_strides,
    constant long* indices_strides,
    constant long& ndim,
    uint tid [[thread_position_in_grid]]) {
  const index_t size = sizes[ndim - 1];
  const index_t row_start = index_t(tid) * size;
  index_t at = row_start + size - 1;
  if (isnan(static_cast<float>(run_values[at]))) {
    while (at > row_start && isnan(static_cast<float>(run_values[at - 1]))) {
      at--;
    }
  } else {
    at = row_start + (size - 1) / 2;
  }
  index_t rest = tid;
  index_t values_offset = 0;
  index_t indices_offset = 0;
  for (long d = ndim - 2; d >= 0; d--) {
    const index_t i = rest % index_t(sizes[d]);
    rest /= index_t(sizes[d]);
    values_offset += i * index_t(values_strides[d]);
    indices_offset += i * index_t(indices_strides[d]);
  }
  values[values_offset] = run_values[at];
  indices[indices_offset] = run_indices[at];
}
