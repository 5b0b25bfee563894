template <typename T>
using order_t = conditional_t<sizeof(T) == 8, ulong, uint>;

// A number that is larger where an element comes later: a NaN is larger than all
// numbers, as it is on the CPU, and both zeros are alike
template <typename T, enable_if_t<is_floating_point_v<T>, bool> = true>
inline uint order_of(T element) {
  const uint bits = as_type<uint>(static_cast<float>(element));
  const uint magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) {
    return 0xFFFFFFFF;
  }
  return bits > 0x80000000 ? ~bits : magnitude | 0x80000000;
}

template <typename T, enable_if_t<!is_floating_point_v<T>, bool> = true>
inline order_t<T> order_of(T element) {
  const order_t<T> sign = order_t<T>(1) << (8 * sizeof(order_t<T>) - 1);
  return static_cast<order_t<T>>(element) ^ (T(-1) < T(0) ? sign : 0);
}

// How many of the first elements of two merged runs are those of the left one;
// equal elements keep their order, and no sum is larger than the runs
template <typename P, typename index_t, typename M>
inline index_t count_left(P left, index_t left_size, P right, index_t right_size, index_t count, M mask) {
  index_t low = count > right_size ? count - right_size : 0;
  index_t high = min(count, left_size);
  while (low < high) {
    const index_t at = low + (high - low) / 2;
    const bool is_right = (order_of(right[count - 1 - at]) ^ mask) < (order_of(left[at]) ^ mask);
    low = is_right ? low : at + 1;
    high = is_right ? at : high;
  }
  return low;
}
