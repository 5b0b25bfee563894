// How many neighboring elements one turn of a thread reads; none where elements have several dimensions.
static int64_t count_neighbors(const Tensor& tensor, const MergedDims& kept, const MergedDims& reduced) {
  const int64_t size = reduced.sizes[0];
  int64_t multiple = tensor.storage_offset() | size;
  for (const auto stride : kept.strides) {
    multiple |= stride;
  }
  const bool is_aligned = reduced.strides[0] == 1 && multiple % 4 == 0;
  // A thread has a short row alone; a simdgroup shares one that has neighbors for all lanes.
  return reduced.sizes.size() > 1 ? 0 : is_aligned && (size <= 32 || size >= 4 * 32) ? 4 : 1;
}
