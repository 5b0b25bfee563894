inline float2 multiply(float2 a, float2 b) {
  return float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// exp(-2 pi i k / n) for k < n: the angle is that of an eighth of a turn, which whole numbers reduce it to
inline float2 find_root(uint k, uint n) {
  const uint turned = 2 * min(k, n - k);
  const uint slope = min(turned, n - turned);
  const bool is_steep = 4 * slope > n;
  const float x = float(is_steep ? n - 2 * slope : 2 * slope) * (1.0f / float(n)), square = x * x;
  // The sine and cosine of pi / 2 times x, which is at most a half
  float sine = fma(square, 1.6044118e-4f, -4.6817541e-3f);
  sine = x * fma(square, fma(square, fma(square, sine, 7.9692626e-2f), -6.4596410e-1f), 1.5707963f);
  float cosine = fma(square, fma(square, -2.5202042e-5f, 9.1926027e-4f), -2.0863481e-2f);
  cosine = fma(square, fma(square, fma(square, cosine, 2.5366951e-1f), -1.2337006f), 1.0f);
  const float2 root = is_steep ? float2(sine, cosine) : float2(cosine, sine);
  return float2(turned == slope ? root.x : -root.x, 2 * k < n ? -root.y : root.y);
}

// Turns a number back by some eighths of a turn, fewer than four
inline float2 turn_back(float2 a, uint eighths) {
  if (eighths & 1) {
    a = M_SQRT1_2_F * float2(a.x + a.y, a.y - a.x);
  }
  return eighths & 2 ? float2(a.y, -a.x) : a;
}

// Transforms R elements, of which k comes to where its bits are reversed
template <uint R>
inline void transform(thread float2* elements) {
  #pragma unroll
  for (uint i = 0; i < R / 2; i++) {
    const float2 a = elements[i], b = elements[i + R / 2];
    elements[i] = a + b;
    elements[i + R / 2] = turn_back(a - b, i * 8 / R);
  }
  transform<R / 2>(elements);
  transform<R / 2>(elements + R / 2);
}

template <>
inline void transform<1>(thread float2*) {}

// Makes transforms of R times as many elements of those of `done`, in rows of n; a thread has eight elements
template <uint R>
inline void run_pass(threadgroup float2* rows, uint total, uint n, uint done, uint tid, uint group_size) {
  float2 elements[8];
  const uint step = n / R;
  #pragma unroll
  for (uint u = 0; u < 8 / R; u++) {
    const uint i = tid + u * group_size;
    if (i < total / R) {
      const threadgroup float2* row = rows + i / step * n + i % step;
      const uint k = i % step % done;
      #pragma unroll
      for (uint q = 0; q < R; q++) {
        const float2 element = row[q * step];
        elements[u * R + q] = q > 0 && done > 1 ? multiply(element, find_root(q * k, R * done)) : element;
      }
      transform<R>(elements + u * R);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  #pragma unroll
  for (uint u = 0; u < 8 / R; u++) {
    const uint i = tid + u * group_size;
    if (i < total / R) {
      const uint k = i % step % done;
      threadgroup float2* row = rows + i / step * n + (i % step - k) * R + k;
      #pragma unroll
      for (uint q = 0; q < R; q++) {
        row[q * done] = elements[u * R + (reverse_bits(q) >> (clz(R) + 1))];
      }
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

// The same for any other factor of n, by adding up the elements of each sum
inline void run_sums(
    threadgroup float2* rows, uint total, uint n, uint radix, uint done, uint tid, uint group_size) {
  float2 sums[8];
  const uint length = radix * done;
  for (uint u = 0; u < 8; u++) {
    const uint i = tid + u * group_size;
    if (i < total) {
      const uint place = i % n, k = place % length;
      const threadgroup float2* row = rows + i - place + place / length * done + k % done;
      // What all elements share adds up to nothing, which rounded roots would not
      const float2 shared = k > 0 && k % done == 0 ? row[0] : 0;
      float2 total = row[0] - shared, sum = 0;
      for (uint q = 1, turned = k; q < radix; q++) {
        sum += multiply(row[q * (n / radix)] - shared, find_root(turned, length));
        turned = turned + k < length ? turned + k : turned + k - length;
        // Few products are added up in a row, so that those of great factors are as exact
        if (q % 8 == 0) {
          total += sum;
          sum = 0;
        }
      }
      sums[u] = total + sum;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint u = 0; u < 8; u++) {
    const uint i = tid + u * group_size;
    if (i < total) {
      rows[i] = sums[u];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

// Where a row begins, by the sizes and strides of the other dimensions
template <typename index_t>
inline index_t find_row(index_t row, constant long* sizes, constant long* strides, uint ndim) {
  index_t offset = 0;
  for (uint dim = ndim - 1; dim > 0; dim--) {
    offset += row % index_t(sizes[dim]) * index_t(strides[dim]);
    row /= index_t(sizes[dim]);
  }
  return offset + row * index_t(strides[0]);
}

template <typename index_t>
inline float2 load_element(const device float* row, uint k, uint, uint, index_t stride) {
  return float2(row[k * stride], 0);
}

// Of n elements, those beyond `size` mirror the others; two mirror themselves
template <typename index_t>
inline float2 load_element(const device float2* row, uint k, uint n, uint size, index_t stride) {
  if (size == n) {
    return row[k * stride];
  }
  const float2 element = row[(k < size ? k : n - k) * stride];
  return float2(element.x, k == 0 || 2 * k == n ? 0 : k < size ? element.y : -element.y);
}

inline void store_element(device float* output, float2 value) {
  *output = value.x;
}

inline void store_element(device float2* output, float2 value) {
  *output = value;
}
