// The offset of an element by its index, which is not divided by the size of
// the last dimension
template <typename index_t>
inline index_t strided_offset(
    index_t index,
    constant long* sizes,
    constant long* strides,
    uint ndim) {
  index_t offset = 0;
  for (uint i = 0; i + 1 < ndim; i++) {
    const index_t outer = index / index_t(sizes[i]);
    offset += (index - outer * index_t(sizes[i])) * index_t(strides[i]);
    index = outer;
  }
  return offset + index * index_t(strides[ndim - 1]);
}
