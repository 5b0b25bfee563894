// Where element `elem`, counted in row-major order, lies in a tensor of these strides.
template <typename Index = long, typename Number, typename Shape, typename Strides>
inline Index elem_to_loc(Number elem, Shape shape, Strides strides, int ndim) {
  Index location = 0;
  Index rest = Index(elem);
  for (int d = ndim - 1; d >= 0; --d) {
    location += (rest % shape[d]) * Index(strides[d]);
    rest /= shape[d];
  }
  return location;
}

// The same for a position: x counts along the last dimension, y along the one before, z along all others together.
template <typename Index = long, typename Shape, typename Strides>
inline Index elem_to_loc(uint3 elem, Shape shape, Strides strides, int ndim) {
  if (ndim == 0) return 0;
  Index location = Index(elem.x) * Index(strides[ndim - 1]);
  if (ndim > 1) location += Index(elem.y) * Index(strides[ndim - 2]);
  Index rest = Index(elem.z);
  for (int d = ndim - 3; d >= 0; --d) {
    location += (rest % shape[d]) * Index(strides[d]);
    rest /= shape[d];
  }
  return location;
}
