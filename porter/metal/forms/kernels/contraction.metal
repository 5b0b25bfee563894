// `strides` are of batches, rows and columns: of the result, the operands, and what is added. `scales` are of the
// product and of what is added; `factors` are the same for whole numbers, which floats round.
kernel void tile(
    device T* output,
    const device T* left,
    const device T* right,
    const device T* added,
    constant long* sizes,
    constant long* strides,
    constant float2* scales,
    constant long* factors,
    uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  using total_t = c10::metal::opmath_t<T>;
  // Each of four simdgroups has a quarter of a tile of N rows and columns
  constexpr uint SIDE = N / 2, GAP = 16 / sizeof(T), LEFT_STRIDE = DEPTH + GAP, RIGHT_STRIDE = N + GAP;
  threadgroup T left_tile[N * LEFT_STRIDE], right_tile[DEPTH * RIGHT_STRIDE];
  threadgroup total_t strips[4][8 * SIDE];
  const index_t rows = sizes[0], columns = sizes[1], inner = sizes[2];
  const index_t left_row = strides[4], left_column = strides[5];
  const index_t right_row = strides[7], right_column = strides[8];
  const index_t row = index_t(group.y) * N, column = index_t(group.x) * N;
  const uint side_row = simdgroup / 2 * SIDE, side_column = simdgroup % 2 * SIDE;
  ProductTile<total_t, T, SIDE> totals, sums;
  TileElements<T, N> next_left, next_right;
  for (index_t batch = group.z; batch < index_t(group.z) + index_t(sizes[3]); batch++) {
    const device T* l = left + batch * index_t(strides[3]) + row * left_row;
    const device T* r = right + batch * index_t(strides[6]) + column * right_column;
    next_left.load(l, left_row, left_column, rows - row, inner, thread_index);
    next_right.load(r, right_column, right_row, columns - column, inner, thread_index);
    for (index_t k = 0; k < inner; k += DEPTH) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      next_left.store(left_tile, LEFT_STRIDE, 1, thread_index, left_row == 1);
      next_right.store(right_tile, 1, RIGHT_STRIDE, thread_index, right_column == 1);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      // What comes next is on its way while products are added
      if (inner - k > DEPTH) {
        const index_t next = k + DEPTH;
        next_left.load(l + next * left_column, left_row, left_column, rows - row, inner - next, thread_index);
        next_right.load(r + next * right_row, right_column, right_row, columns - column, inner - next, thread_index);
      }
      for (uint i = 0; i < DEPTH; i += 8) {
        const threadgroup T* side = left_tile + side_row * LEFT_STRIDE + i;
        sums.template add<LEFT_STRIDE, RIGHT_STRIDE>(side, right_tile + i * RIGHT_STRIDE + side_column, lane);
      }
      // Few products are added up in a row, so that those of long rows are as exact
      if ((k + DEPTH) % ADDENDS == 0) {
        totals.take(sums);
      }
    }
    totals.take(sums);
  }
  #pragma unroll
  for (uint strip = 0; strip < SIDE; strip += 8) {
    totals.store(strips[simdgroup], strip, lane);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = lane; i < 8 * SIDE; i += 32) {
      const index_t y = row + side_row + strip + i / SIDE, x = column + side_column + i % SIDE;
      if (y < rows && x < columns) {
        store_scaled(output, added, strips[simdgroup][i], index_t(group.z), y, x, strides, scales, factors);
      }
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
  }
}

kernel void vector(
    device T* output,
    const device T* left,
    const device T* right,
    const device T* added,
    constant long* sizes,
    constant long* strides,
    constant float2* scales,
    constant long* factors,
    uint3 group [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  using total_t = c10::metal::opmath_t<T>;
  threadgroup total_t sums[8][32];
  const index_t inner = sizes[2];
  const bool is_column = sizes[1] == 1;
  const index_t length = is_column ? sizes[0] : sizes[1];
  const index_t step = strides[is_column ? 4 : 8], inner_step = strides[is_column ? 5 : 7];
  const index_t vector_step = strides[is_column ? 7 : 5];
  const bool are_adjacent = step == 1 && inner_step != 1;
  const index_t at = are_adjacent ? index_t(group.x) * 32 + lane : index_t(group.x) * 8 + simdgroup;
  total_t total(0);
  for (index_t batch = group.z; batch < index_t(group.z) + index_t(sizes[3]) && at < length; batch++) {
    const device T* l = left + batch * index_t(strides[3]);
    const device T* r = right + batch * index_t(strides[6]);
    const device T* matrix = (is_column ? l : r) + at * step;
    const device T* vector = is_column ? r : l;
    const uint first = are_adjacent ? simdgroup : lane, turn = are_adjacent ? 8 : 32;
    for (index_t start = 0; start < inner; start += ADDENDS * turn) {
      // Few products are added up in a row, so that those of long rows are as exact
      const index_t end = inner - start < ADDENDS * turn ? inner : start + ADDENDS * turn;
      total_t sum(0);
      #pragma unroll 4
      for (index_t k = start + first; k < end; k += turn) {
        const total_t factor = static_cast<total_t>(vector[k * vector_step]);
        sum = add_product(sum, static_cast<total_t>(matrix[k * inner_step]), factor);
      }
      total += sum;
    }
  }
  sums[simdgroup][lane] = total;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (at >= length || (are_adjacent ? simdgroup : lane) > 0) {
    return;
  }
  for (uint i = 1; i < (are_adjacent ? 8 : 32); i++) {
    total += are_adjacent ? sums[i][lane] : sums[simdgroup][i];
  }
  const index_t y = is_column ? at : 0, x = is_column ? 0 : at;
  store_scaled(output, added, total, index_t(group.z), y, x, strides, scales, factors);
}
