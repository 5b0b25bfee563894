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

// The places of an index that is further by the places of another
template <typename T>
inline vec<T, 4> move_index(vec<T, 4> places, vec<T, 4> more, vec<T, 4> sizes) {
  places += more;
  for (uint dim = 3; dim > 0; dim--) {
    if (places[dim] >= sizes[dim]) {
      places[dim] -= sizes[dim];
      places[dim - 1]++;
    }
  }
  return places;
}

// Where windows, or taps, lead to in a source. An element is where both lead together, if that is no padding
template <typename T>
struct SourceSteps {
  vec<T, 4> offsets, places, start;

  SourceSteps(bool is_tap, constant long* strides, constant long* geometry) {
    offsets = vec<T, 4>(strides[is_tap ? 0 : 1], 0, 0, 0);
    start = vec<T, 4>(0);
    for (uint dim = 0; dim < 3; dim++) {
      places[dim + 1] = geometry[is_tap ? 3 + dim : dim];
      offsets[dim + 1] = places[dim + 1] * T(strides[2 + dim]);
      start[dim + 1] = is_tap ? 0 : geometry[6 + dim];
      start[0] += start[dim + 1] * T(strides[2 + dim]);
    }
  }

  // The offset, and the places along three dimensions
  vec<T, 4> find(vec<T, 4> index) const {
    const T offset = index[0] * offsets[0] + index[1] * offsets[1] + index[2] * offsets[2] + index[3] * offsets[3];
    return start + vec<T, 4>(offset, index[1] * places[1], index[2] * places[2], index[3] * places[3]);
  }
};

template <typename T>
inline bool is_within(T place, T size) {
  return place >= 0 && place < size;
}
