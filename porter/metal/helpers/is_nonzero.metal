// Whether there is an element of this index, and it is not zero
template <typename T, typename index_t>
inline bool is_nonzero(
    constant T* input, index_t index, constant long* sizes, constant long* strides, long ndim, long numel) {
  index_t rest = index;
  index_t offset = 0;
  for (long d = ndim - 1; d >= 0; d--) {
    offset += rest % index_t(sizes[d]) * index_t(strides[d]);
    rest /= index_t(sizes[d]);
  }
  return index < numel && input[offset] != T(0);
}
