// Whether an element comes before another; a NaN is larger than all numbers, as
// it is on the CPU
template <typename T>
inline bool comes_before(T a, T b, bool descending) {
  const bool a_is_nan = isnan(static_cast<float>(a));
  const bool b_is_nan = isnan(static_cast<float>(b));
  if (a_is_nan || b_is_nan) {
    return descending ? a_is_nan && !b_is_nan : b_is_nan && !a_is_nan;
  }
  return descending ? a > b : a < b;
}

// How many of the first elements of two merged runs are those of the left one;
// equal elements keep their order, and no sum is larger than the runs
template <typename P, typename index_t>
inline index_t count_left(P left, index_t left_size, P right, index_t right_size, index_t count, bool descending) {
  index_t low = count > right_size ? count - right_size : 0;
  index_t high = min(count, left_size);
  while (low < high) {
    const index_t at = low + (high - low) / 2;
    const bool is_right = comes_before(right[count - 1 - at], left[at], descending);
    low = is_right ? low : at + 1;
    high = is_right ? at : high;
  }
  return low;
}
