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

// Turns a number back by some sixteenths of a turn, fewer than eight
inline float2 turn_back(float2 a, uint sixteenths) {
  if (sixteenths & 1) {
    const float2 root = {0.92387953f, -0.38268343f};
    a = multiply(a, sixteenths & 2 ? float2(-root.y, -root.x) : root);
  } else if (sixteenths & 2) {
    a = M_SQRT1_2_F * float2(a.x + a.y, a.y - a.x);
  }
  return sixteenths & 4 ? float2(a.y, -a.x) : a;
}

// Transforms R elements that lie U apart
template <uint R, uint U>
inline void transform(thread float2* elements) {
  #pragma unroll
  for (uint half_size = R / 2; half_size > 0; half_size /= 2) {
    #pragma unroll
    for (uint i = 0; i < R / 2; i++) {
      const uint k = i % half_size, first = (2 * i - k) * U, second = first + half_size * U;
      const float2 a = elements[first], b = elements[second];
      elements[first] = a + b;
      elements[second] = turn_back(a - b, k * 8 / half_size);
    }
  }
  // Each has come to where its bits are reversed
  #pragma unroll
  for (uint q = 0; q < R; q++) {
    const uint reversed = reverse_bits(q) >> (clz(R) + 1);
    if (q < reversed) {
      const float2 element = elements[q * U];
      elements[q * U] = elements[reversed * U];
      elements[reversed * U] = element;
    }
  }
}

// Where an element is in threadgroup memory: what sixteen threads write at once is in banks of its own
inline uint find_bank(uint place) {
  return place ^ (((place >> 4) ^ (place >> 8)) & 15);
}

// Puts the elements of a row, of which a thread has those that lie `lanes` apart, where all threads read them
inline void share(
    const thread float2* elements, threadgroup float2* rows, uint start, uint n, uint lane, uint lanes) {
  #pragma unroll
  for (uint i = 0; i < 16; i++) {
    if (lane + i * lanes < n) {
      rows[find_bank(start + lane + i * lanes)] = elements[i];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

// Makes transforms of R times as many elements of those of `done`, a power of two; a thread has E elements
template <uint E, uint R>
inline void run_pass(
    thread float2* elements, threadgroup float2* rows, uint start, uint n, uint lane, uint done) {
  const uint lanes = n / E, U = E / R;
  #pragma unroll
  for (uint u = 0; u < U; u++) {
    if (done > 1) {
      const uint k = (lane + u * lanes) & (done - 1);
      float2 roots[R];
      #pragma unroll
      for (uint q = 1; q < R; q++) {
        const uint rest = q & (q - 1);
        roots[q] = rest > 0 ? multiply(roots[rest], roots[q - rest]) : find_root(q * k, R * done);
        elements[u + q * U] = multiply(elements[u + q * U], roots[q]);
      }
    }
    transform<R, U>(elements + u);
  }
  // The results of the last pass are in their order
  if (R * done < n) {
    #pragma unroll
    for (uint i = 0; i < E; i++) {
      const uint j = lane + i % U * lanes, k = j & (done - 1);
      rows[find_bank(start + (j - k) * R + k + i / U * done)] = elements[i];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    #pragma unroll
    for (uint i = 0; i < E; i++) {
      elements[i] = rows[find_bank(start + lane + i * lanes)];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

// The same for any other factor of n, by adding up the elements of each sum
inline void run_sums(
    thread float2* elements,
    threadgroup float2* rows,
    uint start,
    uint n,
    uint lane,
    uint lanes,
    uint radix,
    uint done) {
  share(elements, rows, start, n, lane, lanes);
  const uint length = radix * done;
  #pragma unroll
  for (uint i = 0; i < 16; i++) {
    const uint place = lane + i * lanes, k = place % length;
    if (place < n) {
      const uint first = start + place / length * done + k % done;
      const float2 head = rows[find_bank(first)];
      // What all elements share adds up to nothing, which rounded roots would not
      const float2 shared = k > 0 && k % done == 0 ? head : 0;
      float2 total = head - shared, sum = 0;
      for (uint q = 1, turned = k; q < radix; q++) {
        sum += multiply(rows[find_bank(first + q * (n / radix))] - shared, find_root(turned, length));
        turned = turned + k < length ? turned + k : turned + k - length;
        // Few products are added up in a row, so that those of great factors are as exact
        if (q % 8 == 0) {
          total += sum;
          sum = 0;
        }
      }
      elements[i] = total + sum;
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

template <typename index_t>
inline float2 load_element(const device float2* row, uint k, uint n, uint size, index_t stride) {
  return row[(k < size ? k : n - k) * stride];
}

// Of n elements, those beyond `size` mirror the others; two mirror themselves
inline float2 mirror(float2 element, uint k, uint n, uint size) {
  return float2(element.x, k == 0 || 2 * k == n ? 0 : k < size ? element.y : -element.y);
}

// Element k of half of a spectrum of real numbers, from the transform of their n pairs
inline float2 unfold(float2 a, float2 b, uint k, uint n) {
  const float2 difference = float2(a.x - b.x, a.y + b.y), product = multiply(find_root(k, 2 * n), difference);
  const float2 turned = k > 0 ? product : difference; // infinity times zero is none
  return float2(a.x + b.x + turned.y, a.y - b.y - turned.x);
}

template <typename index_t>
inline float2 load_folded(const device float* row, uint k, uint, uint, index_t stride) {
  return float2(row[2 * k * stride], row[(2 * k + 1) * stride]);
}

// The same from the transform in memory; of a half, which has more than n elements, it makes that transform again
template <typename index_t>
inline float2 load_folded(const device float2* row, uint k, uint n, uint size, index_t stride) {
  const float2 sign = float2(1, size > n ? -1 : 1);
  const float2 a = sign * row[(k < size ? k : 0) * stride], b = sign * row[(n - k < size ? n - k : 0) * stride];
  const bool is_real = size > n && k == 0;
  return sign * unfold(is_real ? float2(a.x, 0) : a, is_real ? float2(b.x, 0) : b, k, n);
}

template <typename index_t>
inline void store_element(device float* row, uint k, index_t stride, float2 value, bool is_folded) {
  if (is_folded) {
    row[2 * k * stride] = value.x;
    row[(2 * k + 1) * stride] = value.y;
  } else {
    row[k * stride] = value.x;
  }
}

template <typename index_t>
inline void store_element(device float2* row, uint k, index_t stride, float2 value, bool) {
  row[k * stride] = value;
}
