// `sizes` are of steps, rows, states and directions; a direction of the last axis has its own weights and starts. Gates
// are those of what enters, of what stays, of new cells and of what leaves; step 0 is the first of its direction
kernel void step(
    device T* states,
    device T* cells,
    device T* gates,
    const device T* first_states,
    const device T* first_cells,
    const device T* weights,
    const device T* reverse_weights,
    constant long* sizes,
    constant long& step,
    uint3 tid [[thread_position_in_grid]]) {
  const index_t steps = sizes[0], rows = sizes[1], n = sizes[2], directions = sizes[3];
  const index_t row = tid.y / n, column = tid.y % n, direction = tid.z;
  const index_t start = (direction * rows + row) * n;
  const index_t now = direction ? steps - 1 - index_t(step) : index_t(step);
  const index_t at = ((now * rows + row) * directions + direction) * n;
  const index_t before = direction ? at + rows * directions * n : at - rows * directions * n;
  const device T* state = step ? states + before : first_states + start;
  const device T* weight = (direction ? reverse_weights : weights) + column * n;
  // A simdgroup has the four gates of a cell
  float sums[4] = {0, 0, 0, 0};
  for (index_t k = tid.x; k < n; k += 32) {
    #pragma unroll
    for (uint gate = 0; gate < 4; gate++) {
      sums[gate] = fma(state[k], weight[gate * n * n + k], sums[gate]);
    }
  }
  #pragma unroll
  for (uint gate = 0; gate < 4; gate++) {
    sums[gate] = simd_sum(sums[gate]);
  }
  if (tid.x > 0) {
    return;
  }
  device T* inner = gates + at * 4 + column;
  #pragma unroll
  for (uint gate = 0; gate < 4; gate++) {
    sums[gate] += inner[gate * n];
    inner[gate * n] = sums[gate];
  }
  const float old_cell = step ? cells[before + column] : first_cells[start + column];
  const float cell = logistic(sums[1]) * old_cell + logistic(sums[0]) * precise::tanh(sums[2]);
  cells[at + column] = cell;
  states[at + column] = logistic(sums[3]) * precise::tanh(cell);
}

// The states that each step begins with, which those before ended with
kernel void begun_states(
    device T* begun,
    const device T* cells,
    const device T* gates,
    const device T* first_states,
    constant long* sizes,
    uint3 tid [[thread_position_in_grid]]) {
  const index_t steps = sizes[0], rows = sizes[1], n = sizes[2], directions = sizes[3];
  const index_t row = tid.y % rows, step = tid.y / rows, direction = tid.z;
  const index_t at = (index_t(tid.y) * directions + direction) * n;
  if (step == (direction ? steps - 1 : 0)) {
    begun[at + tid.x] = first_states[(direction * rows + row) * n + tid.x];
  } else {
    const index_t before = direction ? at + rows * directions * n : at - rows * directions * n;
    begun[at + tid.x] = logistic(gates[before * 4 + 3 * n + tid.x]) * precise::tanh(cells[before + tid.x]);
  }
}

// The gradients of a step's gates, by those of what follows; behind the last one, of the states that all begin with
kernel void step_gradients(
    device T* gate_gradients,
    device T* state_gradients,
    device T* cell_gradients,
    const device T* output_gradients,
    const device T* cells,
    const device T* gates,
    const device T* first_cells,
    const device T* weights,
    const device T* reverse_weights,
    constant long* sizes,
    constant long& done,
    uint3 group [[threadgroup_position_in_grid]],
    uint slice [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float sums[8][32];
  const index_t steps = sizes[0], rows = sizes[1], n = sizes[2], directions = sizes[3];
  const index_t column = index_t(group.x) * 32 + lane, row = group.y, direction = group.z;
  const index_t start = (direction * rows + row) * n + column;
  const index_t now = direction ? index_t(done) : steps - 1 - index_t(done);
  const index_t at = ((now * rows + row) * directions + direction) * n;
  const index_t turn = rows * directions * n;
  float total = 0;
  if (done > 0 && column < n) {
    const device T* gradients = gate_gradients + (direction ? at - turn : at + turn) * 4;
    const device T* weight = (direction ? reverse_weights : weights) + column;
    // Few products are added up in a row, so that those of many states are as exact
    for (index_t first = 0; first < 4 * n; first += 8 * ADDENDS) {
      float sum = 0;
      for (index_t k = first + slice; k < min(first + 8 * ADDENDS, 4 * n); k += 8) {
        sum = fma(gradients[k], weight[k * n], sum);
      }
      total += sum;
    }
  }
  sums[slice][lane] = total;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (slice > 0 || column >= n) {
    return;
  }
  for (uint i = 1; i < 8; i++) {
    total += sums[i][lane];
  }
  if (done == steps) {
    state_gradients[start] = total;
    return;
  }
  if (done == 0) {
    total = state_gradients[start];
  }
  const device T* inner = gates + at * 4 + column;
  const float entering = logistic(inner[0]), staying = logistic(inner[n]), leaving = logistic(inner[3 * n]);
  const float candidate = precise::tanh(inner[2 * n]), squashed = precise::tanh(cells[at + column]);
  const index_t before = direction ? at + turn : at - turn;
  const float old_cell = done + 1 < steps ? cells[before + column] : first_cells[start];
  const float state_gradient = total + output_gradients[at + column];
  const float cell_gradient = cell_gradients[start] + state_gradient * leaving * (1 - squashed * squashed);
  device T* gradients = gate_gradients + at * 4 + column;
  gradients[0] = cell_gradient * candidate * entering * (1 - entering);
  gradients[n] = cell_gradient * old_cell * staying * (1 - staying);
  gradients[2 * n] = cell_gradient * entering * (1 - candidate * candidate);
  gradients[3 * n] = state_gradient * squashed * leaving * (1 - leaving);
  cell_gradients[start] = cell_gradient * staying;
}
