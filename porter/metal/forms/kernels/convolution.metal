// `sizes` are the rows of a group, the slices, the elements of one, whether windows are added up, and whether there is
// a bias, with its stride; `geometry` is what `find_element` takes.
kernel void tile(
    device T* output,
    device float* partial,
    const device T* factors,
    const device T* source,
    const device T* bias,
    constant long* sizes,
    constant long* columns,
    constant long* inner,
    constant long* places,
    constant long* output_strides,
    constant long* factor_strides,
    constant long* source_strides,
    constant long* geometry,
    uint3 tile [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  using index4 = vec<index_t, 4>;
  // 32 rows and 8 columns, then 8 rows and 32 columns; in the end the whole tile
  threadgroup float memory[4][32 * 32];
  threadgroup index4 splits[4][8];
  threadgroup float* factor_rows = memory[simdgroup];
  threadgroup float* source_rows = factor_rows + 32 * 8;
  const index_t rows = sizes[0], slices = sizes[1];
  const bool adds_windows = sizes[3];
  const index_t width = count_elements<index_t>(columns), length = count_elements<index_t>(inner);
  const index_t group = tile.z / slices, slice = tile.z % slices;
  const index_t top = index_t(tile.y) * 32, column = index_t(tile.x) * 32 + lane;
  const index4 here = split_index(column, columns);
  const device T* f = factors + group * index_t(factor_strides[0]);
  const device T* s = source + group * index_t(source_strides[0]);
  ProductTile<float, float, 32> totals, sums;
  uint steps = 0;
  for (index_t k = (slice * 4 + simdgroup) * 8; k < length; k += slices * 4 * 8) {
    const index_t mine = k + lane % 8;
    const index4 split = split_index(mine, inner);
    const index_t offset = find_offset(split, factor_strides + 2);
    if (lane < 8) {
      splits[simdgroup][lane] = split;
    }
    for (uint i = 0; i < 8; i++) {
      const index_t row = top + i * 4 + lane / 8;
      const bool is_inside = row < rows && mine < length;
      factor_rows[i * 32 + lane] = is_inside ? static_cast<float>(f[row * index_t(factor_strides[1]) + offset]) : 0;
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0; i < 8; i++) {
      const index4 there = splits[simdgroup][i];
      index_t from = -1;
      if (column < width && k + i < length) {
        const index4 window = adds_windows ? there : here, tap = adds_windows ? here : there;
        from = find_element(window, tap, places, source_strides + 1, geometry);
      }
      source_rows[i * 32 + lane] = from >= 0 ? static_cast<float>(s[from]) : 0;
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    sums.template add<8, 32>(factor_rows, source_rows, lane);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    // Few products are added up in a row, so that those of long rows are as exact
    if (++steps % 32 == 0) {
      totals.take(sums);
    }
  }
  totals.take(sums);
  #pragma unroll
  for (uint row = 0; row < 32; row += 8) {
    totals.store(memory[simdgroup] + row * 32, row, lane);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = simdgroup; i < 32; i += 4) {
    const index_t row = top + i;
    if (row >= rows || column >= width) {
      break;
    }
    const uint at = i * 32 + lane;
    const float sum = memory[0][at] + memory[1][at] + memory[2][at] + memory[3][at];
    const float added = sizes[4] && slice == 0 ? static_cast<float>(bias[(group * rows + row) * index_t(sizes[5])]) : 0;
    const index_t first = group * index_t(output_strides[0]) + row * index_t(output_strides[1]);
    const index_t to = first + find_offset(here, output_strides + 2);
    if (slices > 1) {
      partial[slice * index_t(sizes[2]) + to] = sum + added;
    } else {
      output[to] = static_cast<T>(sum + added);
    }
  }
}

kernel void direct(
    device T* output,
    device float* partial,
    const device T* factors,
    const device T* source,
    const device T* bias,
    constant long* sizes,
    constant long* columns,
    constant long* inner,
    constant long* places,
    constant long* output_strides,
    constant long* factor_strides,
    constant long* source_strides,
    constant long* geometry,
    uint3 tid [[thread_position_in_grid]],
    uint3 group_size [[threads_per_threadgroup]]) {
  const index_t rows = sizes[0], length = count_elements<index_t>(inner);
  const bool adds_windows = sizes[3];
  const index_t group = tid.z / rows, row = tid.z % rows;
  const auto here = split_index(index_t(tid.y), columns);
  const device T* f = factors + group * index_t(factor_strides[0]) + row * index_t(factor_strides[1]);
  const device T* s = source + group * index_t(source_strides[0]);
  // Each lane has as many products
  const index_t share = (length + group_size.x - 1) / group_size.x;
  const index_t end = min(length, (index_t(tid.x) + 1) * share);
  auto there = split_index(index_t(tid.x) * share, inner);
  float total = 0, sum = 0;
  uint steps = 0;
  for (index_t k = tid.x * share; k < end; k++) {
    const auto window = adds_windows ? there : here, tap = adds_windows ? here : there;
    const index_t from = find_element(window, tap, places, source_strides + 1, geometry);
    if (from >= 0) {
      sum += static_cast<float>(f[find_offset(there, factor_strides + 2)]) * static_cast<float>(s[from]);
    }
    if (++steps % 256 == 0) {
      total += sum;
      sum = 0;
    }
    there[3]++;
    for (uint dim = 3; dim > 0 && there[dim] == index_t(inner[dim]); dim--) {
      there[dim] = 0;
      there[dim - 1]++;
    }
  }
  total += sum;
  if (group_size.x > 1) {
    total = simd_sum(total);
  }
  if (tid.x == 0) {
    const float added = sizes[4] ? static_cast<float>(bias[index_t(tid.z) * index_t(sizes[5])]) : 0;
    const index_t to = group * index_t(output_strides[0]) + row * index_t(output_strides[1]);
    output[to + find_offset(here, output_strides + 2)] = static_cast<T>(total + added);
  }
}
