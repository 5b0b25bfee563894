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

// The sums of products of a tile of 32 rows and columns, of which each lane has a column
template <typename T>
struct TileSums {
  T sums[32];

  TileSums() {
    #pragma unroll
    for (uint i = 0; i < 32; i++) {
      sums[i] = T(0);
    }
  }

  // Adds the product of 32 rows of 8 elements and 8 rows of 32 elements
  template <typename L, typename R, typename S>
  void add(L left, S left_row, S left_column, R right, S right_row, S right_column, uint lane) {
    #pragma unroll
    for (uint k = 0; k < 8; k++) {
      const T factor = static_cast<T>(right[k * right_row + lane * right_column]);
      #pragma unroll
      for (uint i = 0; i < 32; i++) {
        sums[i] = add_product(sums[i], static_cast<T>(left[i * left_row + k * left_column]), factor);
      }
    }
  }

  // Adds other sums, which start again
  void take(thread TileSums& other) {
    #pragma unroll
    for (uint i = 0; i < 32; i++) {
      sums[i] += other.sums[i];
      other.sums[i] = T(0);
    }
  }

  void store(threadgroup T* tile, uint lane) {
    #pragma unroll
    for (uint i = 0; i < 32; i++) {
      tile[i * 32 + lane] = sums[i];
    }
  }
};

// A block of 8 rows and columns as floats: each lane has the same elements of a matrix of any type
template <typename T, typename S>
inline void load_block(thread simdgroup_float8x8& block, const device T* from, S row, S column) {
  simdgroup_matrix<T, 8, 8> loaded;
  simdgroup_load(loaded, from, column == 1 ? row : column, ulong2(0), column != 1);
  block.thread_elements() = float2(loaded.thread_elements());
}

inline void load_block(thread simdgroup_float8x8& block, const threadgroup float* from, uint row, uint) {
  simdgroup_load(block, from, row);
}

template <>
struct TileSums<float> {
  simdgroup_float8x8 sums[4][4];

  TileSums() {
    #pragma unroll
    for (uint i = 0; i < 16; i++) {
      sums[i / 4][i % 4] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
  }

  template <typename L, typename R, typename S>
  void add(L left, S left_row, S left_column, R right, S right_row, S right_column, uint) {
    simdgroup_float8x8 rows[4], columns[4];
    #pragma unroll
    for (uint i = 0; i < 4; i++) {
      load_block(rows[i], left + 8 * i * left_row, left_row, left_column);
      load_block(columns[i], right + 8 * i * right_column, right_row, right_column);
    }
    #pragma unroll
    for (uint i = 0; i < 16; i++) {
      simdgroup_multiply_accumulate(sums[i / 4][i % 4], rows[i / 4], columns[i % 4], sums[i / 4][i % 4]);
    }
  }

  void take(thread TileSums& other) {
    #pragma unroll
    for (uint i = 0; i < 16; i++) {
      sums[i / 4][i % 4].thread_elements() += other.sums[i / 4][i % 4].thread_elements();
      other.sums[i / 4][i % 4] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
  }

  void store(threadgroup float* tile, uint) {
    #pragma unroll
    for (uint i = 0; i < 16; i++) {
      simdgroup_store(sums[i / 4][i % 4], tile + i / 4 * 256 + i % 4 * 8, 32);
    }
  }
};
