// A thread has an element of a product of few elements, which would leave most of a tile's threads none.
kernel void direct(
    device T* output,
    const device T* left,
    const device T* right,
    const device T* added,
    constant long* sizes,
    constant long* strides,
    constant float2* scales,
    constant long* factors,
    uint3 tid [[thread_position_in_grid]]) {
  const index_t inner = sizes[2], batch = tid.z, row = tid.y, column = tid.x;
  const device T* l = left + batch * index_t(strides[3]) + row * index_t(strides[4]);
  const device T* r = right + batch * index_t(strides[6]) + column * index_t(strides[8]);
  float sum = 0;
  for (index_t k = 0; k < inner; k++) {
    sum += l[k * index_t(strides[5])] * r[k * index_t(strides[7])];
  }
  store_scaled(output, added, sum, batch, row, column, strides, scales, factors);
}

// `sizes` are the keys, queries and heads, whether a query sees the keys up to its own place alone, and whether there is
// a mask.
kernel void softmax(
    device T* weights,
    const device T* mask,
    constant long* sizes,
    constant long* strides,
    uint2 tid [[thread_position_in_grid]]) {
  const index_t keys = sizes[0], queries = sizes[1], heads = sizes[2];
  const index_t query = tid.y % queries, head = tid.y / queries % heads, batch = tid.y / queries / heads;
  const index_t seen = sizes[3] ? query + 1 : keys;
  const index_t first = batch * index_t(strides[0]) + head * index_t(strides[1]) + query * index_t(strides[2]);
  device T* scores = weights + index_t(tid.y) * keys;
  float greatest = -INFINITY;
  bool is_hidden = true;
  for (index_t i = tid.x; i < keys; i += 32) {
    // Infinity less itself is no number, as on the CPU
    float score = i < seen ? scores[i] : scores[i] - INFINITY;
    if (sizes[4]) {
      score += mask[first + i * index_t(strides[3])];
    }
    scores[i] = score;
    greatest = max(greatest, score);
    is_hidden &= score == -INFINITY;
  }
  greatest = simd_max(greatest);
  // A query that sees no key has no weights
  const bool has_weights = !simd_all(is_hidden);
  float sum = 0;
  for (index_t i = tid.x; i < keys; i += 32) {
    const float weight = has_weights ? precise::exp(scores[i] - greatest) : 0;
    scores[i] = weight;
    sum += weight;
  }
  const float factor = has_weights ? 1 / simd_sum(sum) : 0;
  for (index_t i = tid.x; i < keys; i += 32) {
    scores[i] *= factor;
  }
}
