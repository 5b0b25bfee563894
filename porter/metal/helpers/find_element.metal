// The elements of four dimensions
template <typename T>
inline T count_elements(constant long* sizes) {
  return T(sizes[0]) * T(sizes[1]) * T(sizes[2]) * T(sizes[3]);
}

// The places along four dimensions of an index that counts their elements
template <typename T>
inline vec<T, 4> split_index(T index, constant long* sizes) {
  vec<T, 4> places;
  for (uint dim = 3; dim > 0; dim--) {
    const T size = sizes[dim];
    places[dim] = index % size;
    index /= size;
  }
  places[0] = index;
  return places;
}

template <typename T>
inline T find_offset(vec<T, 4> places, constant long* strides) {
  return places[0] * T(strides[0]) + places[1] * T(strides[1]) + places[2] * T(strides[2]) + places[3] * T(strides[3]);
}

// Where a source has the element of a batch and its window, for a channel and a tap of its weights; less than 0 where
// that is padding
template <typename T>
inline T find_element(
    vec<T, 4> window, vec<T, 4> tap, constant long* sizes, constant long* strides, constant long* geometry) {
  T offset = window[0] * T(strides[1]) + tap[0] * T(strides[0]);
  for (uint dim = 0; dim < 3; dim++) {
    const T place = window[dim + 1] * T(geometry[dim]) + tap[dim + 1] * T(geometry[3 + dim]) + T(geometry[6 + dim]);
    if (place < 0 || place >= T(sizes[dim])) {
      return -1;
    }
    offset += place * T(strides[2 + dim]);
  }
  return offset;
}
