template <typename T>
inline T add_product(T sum, T a, T b) {
  return sum + a * b;
}

inline float2 add_product(float2 sum, float2 a, float2 b) {
  return sum + float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

template <typename T>
inline T scale_sum(T sum, float2, long factor) {
  return sum * static_cast<T>(factor);
}

inline float scale_sum(float sum, float2 scale, long) {
  return sum * scale.x;
}

inline float2 scale_sum(float2 sum, float2 scale, long) {
  return float2(sum.x * scale.x - sum.y * scale.y, sum.x * scale.y + sum.y * scale.x);
}

// Stores an element of a product: its sum times a number, and what is added times another
template <typename T, typename E, typename index_t>
inline void store_scaled(
    device E* output,
    const device E* added,
    T sum,
    index_t batch,
    index_t row,
    index_t column,
    constant long* strides,
    constant float2* scales,
    constant long* factors) {
  T value = scale_sum(sum, scales[0], factors[0]);
  if (scales[1].x != 0 || scales[1].y != 0) {
    const index_t from = batch * index_t(strides[9]) + row * index_t(strides[10]) + column * index_t(strides[11]);
    value += scale_sum(static_cast<T>(added[from]), scales[1], factors[1]);
  }
  const index_t to = batch * index_t(strides[0]) + row * index_t(strides[1]) + column * index_t(strides[2]);
  output[to] = static_cast<E>(value);
}

// What a thread of 128 brings from device memory of N rows of 16 elements, or of as many columns
template <typename T, uint N>
struct TileElements {
  T elements[N / 8];

  static uint2 find_place(uint i, uint thread_index, bool are_lines_adjacent) {
    const uint at = thread_index + i * 128;
    return are_lines_adjacent ? uint2(at % N, at / N) : uint2(at / 16, at % 16);
  }

  // Has zeros beyond the end of the operand
  template <typename index_t>
  void load(const device T* from, index_t line_step, index_t step, index_t lines, index_t length, uint thread_index) {
    #pragma unroll
    for (uint i = 0; i < N / 8; i++) {
      const uint2 place = find_place(i, thread_index, line_step == 1);
      const bool is_inside = index_t(place.x) < lines && index_t(place.y) < length;
      elements[i] = is_inside ? from[index_t(place.x) * line_step + index_t(place.y) * step] : T(0);
    }
  }

  void store(threadgroup T* tile, uint line_step, uint step, uint thread_index, bool are_lines_adjacent) {
    #pragma unroll
    for (uint i = 0; i < N / 8; i++) {
      const uint2 place = find_place(i, thread_index, are_lines_adjacent);
      tile[place.x * line_step + place.y * step] = elements[i];
    }
  }
};

// The sums of products of a tile of SIDE rows and columns, of which a lane has rows of a column
template <typename T, typename E, uint SIDE>
struct ProductTile {
  T sums[SIDE * SIDE / 32];

  ProductTile() {
    #pragma unroll
    for (uint i = 0; i < SIDE * SIDE / 32; i++) {
      sums[i] = T(0);
    }
  }

  // Adds the product of SIDE rows of 8 elements and 8 rows of SIDE elements
  template <uint LEFT_STRIDE, uint RIGHT_STRIDE>
  void add(const threadgroup E* left, const threadgroup E* right, uint lane) {
    left += lane / SIDE * (SIDE * SIDE / 32) * LEFT_STRIDE;
    #pragma unroll
    for (uint k = 0; k < 8; k++) {
      const T factor = static_cast<T>(right[k * RIGHT_STRIDE + lane % SIDE]);
      #pragma unroll
      for (uint i = 0; i < SIDE * SIDE / 32; i++) {
        sums[i] = add_product(sums[i], static_cast<T>(left[i * LEFT_STRIDE + k]), factor);
      }
    }
  }

  // Adds other sums, which start again
  void take(thread ProductTile& other) {
    #pragma unroll
    for (uint i = 0; i < SIDE * SIDE / 32; i++) {
      sums[i] += other.sums[i];
      other.sums[i] = T(0);
    }
  }

  // Stores 8 rows
  void store(threadgroup T* strip, uint row, uint lane) {
    #pragma unroll
    for (uint i = 0; i < SIDE * SIDE / 32; i++) {
      const uint y = lane / SIDE * (SIDE * SIDE / 32) + i;
      if (y / 8 == row / 8) {
        strip[y % 8 * SIDE + lane % SIDE] = sums[i];
      }
    }
  }
};

template <typename E, uint SIDE>
struct ProductTile<float, E, SIDE> {
  simdgroup_float8x8 sums[SIDE / 8][SIDE / 8];

  ProductTile() {
    #pragma unroll
    for (uint i = 0; i < SIDE * SIDE / 64; i++) {
      sums[i / (SIDE / 8)][i % (SIDE / 8)] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
  }

  template <uint LEFT_STRIDE, uint RIGHT_STRIDE>
  void add(const threadgroup E* left, const threadgroup E* right, uint) {
    simdgroup_matrix<E, 8, 8> rows[SIDE / 8], columns[SIDE / 8];
    #pragma unroll
    for (uint i = 0; i < SIDE / 8; i++) {
      simdgroup_load(rows[i], left + 8 * i * LEFT_STRIDE, LEFT_STRIDE);
      simdgroup_load(columns[i], right + 8 * i, RIGHT_STRIDE);
    }
    #pragma unroll
    for (uint i = 0; i < SIDE * SIDE / 64; i++) {
      thread simdgroup_float8x8& sum = sums[i / (SIDE / 8)][i % (SIDE / 8)];
      simdgroup_multiply_accumulate(sum, rows[i / (SIDE / 8)], columns[i % (SIDE / 8)], sum);
    }
  }

  void take(thread ProductTile& other) {
    #pragma unroll
    for (uint i = 0; i < SIDE * SIDE / 64; i++) {
      thread simdgroup_float8x8& sum = other.sums[i / (SIDE / 8)][i % (SIDE / 8)];
      sums[i / (SIDE / 8)][i % (SIDE / 8)].thread_elements() += sum.thread_elements();
      sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
  }

  void store(threadgroup float* strip, uint row, uint) {
    #pragma unroll
    for (uint i = 0; i < SIDE / 8; i++) {
      simdgroup_store(sums[row / 8][i], strip + 8 * i, SIDE);
    }
  }
};
