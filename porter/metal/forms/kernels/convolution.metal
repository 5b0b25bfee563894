// `sizes` are the rows of a group, the slices, the elements of one, whether windows are added up, whether there is a bias,
// with its stride, how much of the inner dimension a slice has, and the lanes of a line; `geometry` is what `SourceSteps`
// takes.
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
  // Each of four simdgroups has a quarter of a tile of N rows and columns
  constexpr uint SIDE = N / 2, GAP = 16 / sizeof(T), FACTOR_STRIDE = DEPTH + GAP, SOURCE_STRIDE = N + GAP;
  threadgroup T factor_tile[N * FACTOR_STRIDE], source_tile[DEPTH * SOURCE_STRIDE];
  threadgroup float strips[4][8 * SIDE];
  // Where columns, and what is added up in a step, lead to in the source
  threadgroup index4 across[N], down[DEPTH];
  const index_t rows = sizes[0], slices = sizes[1];
  const bool adds_windows = sizes[3];
  const index_t width = count_elements<index_t>(columns), length = count_elements<index_t>(inner);
  const index_t group = tile.z / slices, slice = tile.z % slices;
  const index_t top = index_t(tile.y) * N, left = index_t(tile.x) * N;
  const uint thread_index = simdgroup * 32 + lane;
  const device T* f = factors + group * index_t(factor_strides[0]) + top * index_t(factor_strides[1]);
  const device T* s = source + group * index_t(source_strides[0]);
  const index_t factor_row = factor_strides[1];
  const index4 lengths(inner[0], inner[1], inner[2], inner[3]), turn = split_index(index_t(DEPTH), inner);
  const index_t begin = slice * index_t(sizes[6]), end = min(length, begin + index_t(sizes[6]));
  const index4 bounds(0, places[0], places[1], places[2]);
  const index4 factor_steps(factor_strides[2], factor_strides[3], factor_strides[4], factor_strides[5]);
  const SourceSteps<index_t> steps_across(adds_windows, source_strides + 1, geometry);
  const SourceSteps<index_t> steps_down(!adds_windows, source_strides + 1, geometry);
  index4 split = split_index(index_t(begin + thread_index % DEPTH), inner);
  if (thread_index < DEPTH) {
    down[thread_index] = steps_down.find(split);
  }
  if (thread_index < N) {
    across[thread_index] = steps_across.find(split_index(index_t(left + thread_index), columns));
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // Threads beside each other read what lies so
  const uint2 first = TileElements<T, N>::find_place(0, thread_index, !adds_windows);
  const uint2 more = adds_windows ? uint2(128 / DEPTH, 0) : uint2(0, 128 / N);
  T next_factors[N / 8], next_source[N / 8];
  ProductTile<float, T, SIDE> totals, sums;
  uint steps = 0;
  for (index_t k = begin; k < end + DEPTH; k += DEPTH) {
    // What comes next is on its way while products are added
    const index4 factor = split * factor_steps;
    const index_t offset = factor[0] + factor[1] + factor[2] + factor[3];
    #pragma unroll
    for (uint i = 0; i < N / 8; i++) {
      const index_t row = thread_index / DEPTH + i * (128 / DEPTH);
      const bool is_inside = top + row < rows && k + index_t(thread_index % DEPTH) < end;
      next_factors[i] = is_inside ? f[row * factor_row + offset] : T(0);
    }
    #pragma unroll
    for (uint i = 0; i < N / 8; i++) {
      const uint2 at = first + i * more;
      const index4 place = across[at.x] + down[at.y];
      bool is_inside = left + index_t(at.x) < width && k + index_t(at.y) < end;
      #pragma unroll
      for (uint dim = 1; dim < 4; dim++) {
        is_inside &= is_within(place[dim], bounds[dim]);
      }
      next_source[i] = is_inside ? s[place[0]] : T(0);
    }
    split = move_index(split, turn, lengths);
    const index4 next_down = steps_down.find(split);
    if (k > begin) {
      for (uint i = 0; i < DEPTH; i += 8) {
        const threadgroup T* rows_here = factor_tile + simdgroup / 2 * SIDE * FACTOR_STRIDE + i;
        const threadgroup T* columns_here = source_tile + i * SOURCE_STRIDE + simdgroup % 2 * SIDE;
        sums.template add<FACTOR_STRIDE, SOURCE_STRIDE>(rows_here, columns_here, lane);
      }
      // Few products are added up in a row, so that those of long rows are as exact
      if (++steps % (ADDENDS / DEPTH) == 0) {
        totals.take(sums);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    #pragma unroll
    for (uint i = 0; i < N / 8; i++) {
      const uint2 at = first + i * more;
      factor_tile[(thread_index / DEPTH + i * (128 / DEPTH)) * FACTOR_STRIDE + thread_index % DEPTH] = next_factors[i];
      source_tile[at.y * SOURCE_STRIDE + at.x] = next_source[i];
    }
    if (thread_index < DEPTH) {
      down[thread_index] = next_down;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  totals.take(sums);
  const uint side = lane % SIDE;
  const index_t column = left + simdgroup % 2 * SIDE + side;
  const index_t to = group * index_t(output_strides[0]) + find_offset(split_index(column, columns), output_strides + 2);
  #pragma unroll
  for (uint strip = 0; strip < SIDE; strip += 8) {
    totals.store(strips[simdgroup], strip, lane);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = lane / SIDE; i < 8; i += 32 / SIDE) {
      const index_t row = top + simdgroup / 2 * SIDE + strip + i;
      if (row < rows && column < width) {
        const float sum = strips[simdgroup][i * SIDE + side];
        const bool is_added = sizes[4] && slice == 0;
        const float added = is_added ? static_cast<float>(bias[(group * rows + row) * index_t(sizes[5])]) : 0;
        const index_t at = to + row * index_t(output_strides[1]);
        if (slices > 1) {
          partial[slice * index_t(sizes[2]) + at] = sum + added;
        } else {
          output[at] = static_cast<T>(sum + added);
        }
      }
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
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
  using index4 = vec<index_t, 4>;
  const uint rows = sizes[0], slices = sizes[1];
  const bool adds_windows = sizes[3];
  const uint channel = tid.z / slices, slice = tid.z % slices;
  const index_t group = channel / rows, row = channel % rows;
  const index4 column = split_index(index_t(tid.y), columns);
  const index4 here = SourceSteps<index_t>(adds_windows, source_strides + 1, geometry).find(column);
  const SourceSteps<index_t> steps_there(!adds_windows, source_strides + 1, geometry);
  const device T* f = factors + group * index_t(factor_strides[0]) + row * index_t(factor_strides[1]);
  const device T* s = source + group * index_t(source_strides[0]);
  const index4 factor_steps(factor_strides[2], factor_strides[3], factor_strides[4], factor_strides[5]);
  const index4 bounds(0, places[0], places[1], places[2]), lengths(inner[0], inner[1], inner[2], inner[3]);
  // The padding of an input is zeros, times which infinity is NaN. An output has none
  const bool has_zeros = geometry[5] > 0;
  index_t begin = index_t(slice) * index_t(sizes[6]), lane = 0, lanes = 1, others = 1;
  index4 turn(0, 0, 1, 0);
  const index_t end = min(lengths[0] * lengths[1] * lengths[2], begin + index_t(sizes[6]));
  if (group_size.x > 1) {
    // Some lanes share a line of the last dimension, and the others have other lines
    lanes = sizes[7];
    lane = index_t(tid.x) % lanes;
    others = index_t(group_size.x) / lanes;
    begin += index_t(tid.x) / lanes;
    turn = split_index(others * lengths[3], inner);
  }
  index4 split = begin > 0 ? split_index(begin * lengths[3], inner) : index4(0);
  float total = 0, sum = 0;
  uint steps = 0;
  for (index_t line = begin; line < end; line += others) {
    const index4 place = here + steps_there.find(split);
    const bool is_line = is_within(place[1], bounds[1]) && is_within(place[2], bounds[2]);
    if (is_line || has_zeros) {
      const index4 factor = split * factor_steps;
      const device T* factor_line = f + (factor[0] + factor[1] + factor[2]);
      for (index_t x = lane; x < lengths[3]; x += lanes) {
        const bool is_inside = is_line && is_within(place[3] + x * steps_there.places[3], bounds[3]);
        if (is_inside || has_zeros) {
          const float value = is_inside ? static_cast<float>(s[place[0] + x * steps_there.offsets[3]]) : 0;
          sum += static_cast<float>(factor_line[x * factor_steps[3]]) * value;
        }
        // Few products are added up in a row, so that those of long rows are as exact
        if (++steps % ADDENDS == 0) {
          total += sum;
          sum = 0;
        }
      }
    }
    split = move_index(split, turn, lengths);
  }
  total += sum;
  if (group_size.x > 1) {
    total = simd_sum(total);
  }
  if (tid.x == 0) {
    const bool is_added = sizes[4] && slice == 0;
    const float added = is_added ? static_cast<float>(bias[index_t(channel) * index_t(sizes[5])]) : 0;
    const index_t first = group * index_t(output_strides[0]) + row * index_t(output_strides[1]);
    const index_t to = first + find_offset(column, output_strides + 2);
    if (slices > 1) {
      partial[index_t(slice) * index_t(sizes[2]) + to] = total + added;
    } else {
      output[to] = static_cast<T>(total + added);
    }
  }
}

// Adds up the slices of results, which have five dimensions
kernel void slices(
    device T* output,
    const device float* partial,
    constant long* sizes,
    constant long* shape,
    constant long* strides,
    uint tid [[thread_position_in_grid]]) {
  const index_t slices = sizes[1], elements = sizes[2];
  float total = 0;
  #pragma unroll 8
  for (index_t slice = 0; slice < slices; slice++) {
    total += partial[slice * elements + index_t(tid)];
  }
  index_t rest = tid, to = 0;
  for (uint dim = 4; dim > 0; dim--) {
    to += rest % index_t(shape[dim]) * index_t(strides[dim]);
    rest /= index_t(shape[dim]);
  }
  output[to + rest * index_t(strides[0])] = static_cast<T>(total);
}
