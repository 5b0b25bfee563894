kernel void invert(
    device int* info,
    device T* inverses,
    device T* work,
    device T* factors,
    device int* order,
    constant long& size,
    constant long* strides,
    uint group [[threadgroup_position_in_grid]],
    uint tid [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float values[MOST_SIMDGROUPS];
  threadgroup uint places[MOST_SIMDGROUPS];
  const index_t n = size;
  const uint simdgroups = threads / 32;
  device T* matrix = work + index_t(group) * n * n;
  device T* column = factors + index_t(group) * n;
  device int* rows = order + index_t(group) * n;
  int singular = 0;
  for (index_t i = tid; i < n; i += threads) {
    rows[i] = i;
  }
  for (index_t k = 0; k < n; k++) {
    // The greatest element of the column, at its first place
    float greatest = -1;
    uint place = k;
    for (index_t i = k + tid; i < n; i += threads) {
      const float value = abs(matrix[i * n + k]);
      if (value > greatest) {
        greatest = value;
        place = i;
      }
    }
    const float greatest_of_lanes = simd_max(greatest);
    place = simd_min(greatest == greatest_of_lanes ? place : uint(n));
    if (lane == 0) {
      values[simdgroup] = greatest_of_lanes;
      places[simdgroup] = place;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    greatest = values[0];
    place = places[0];
    for (uint i = 1; i < simdgroups; i++) {
      if (values[i] > greatest || (values[i] == greatest && places[i] < place)) {
        greatest = values[i];
        place = places[i];
      }
    }
    device T* row = matrix + k * n;
    device T* other = matrix + index_t(place) * n;
    const T pivot = other[k];
    if (pivot == 0 && singular == 0) {
      singular = k + 1;
    }
    // As LAPACK does it: without a pivot, the factors are zeros
    const T scale = pivot == 0 ? 1 : 1 / pivot;
    for (index_t i = k + 1 + tid; i < n; i += threads) {
      column[i] = (i == index_t(place) ? row[k] : matrix[i * n + k]) * scale;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    for (index_t j = tid; j < n && index_t(place) != k; j += threads) {
      const T element = other[j];
      other[j] = row[j];
      row[j] = element;
    }
    if (tid == 0) {
      const int before = rows[k];
      rows[k] = rows[place];
      rows[place] = before;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    for (index_t i = k + 1 + simdgroup; i < n; i += simdgroups) {
      const T factor = column[i];
      for (index_t j = k + lane; j < n; j += 32) {
        matrix[i * n + j] = j == k ? factor : fma(-factor, row[j], matrix[i * n + j]);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  }
  if (tid == 0) {
    info[group] = singular;
  }
  const index_t step = strides[1];
  for (index_t j = tid; j < n; j += threads) {
    device T* inverse = inverses + index_t(group) * index_t(strides[0]) + j * index_t(strides[2]);
    for (index_t i = 0; i < n; i++) {
      T value = rows[i] == j ? 1 : 0;
      for (index_t k = 0; k < i; k++) {
        value = fma(-matrix[i * n + k], inverse[k * step], value);
      }
      inverse[i * step] = value;
    }
    for (index_t i = n - 1; i >= 0; i--) {
      T value = inverse[i * step];
      for (index_t k = n - 1; k > i; k--) {
        value = fma(-matrix[i * n + k], inverse[k * step], value);
      }
      inverse[i * step] = value / matrix[i * n + i];
    }
  }
}
