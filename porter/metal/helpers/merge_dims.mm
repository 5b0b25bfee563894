namespace {
// Some dimensions of a tensor, the innermost first; those that one stride goes over are one.
struct MergedDims {
  DimVector sizes{1};
  DimVector strides{0};
};
} // namespace

static MergedDims merge_dims(const Tensor& tensor, const DimMask& mask) {
  MergedDims dims;
  for (int64_t dim = tensor.dim() - 1; dim >= 0; dim--) {
    if (!mask[dim] || tensor.size(dim) == 1) {
      continue;
    }
    if (dims.sizes.back() == 1) {
      dims.sizes.back() = tensor.size(dim);
      dims.strides.back() = tensor.stride(dim);
    } else if (tensor.stride(dim) == dims.sizes.back() * dims.strides.back()) {
      dims.sizes.back() *= tensor.size(dim);
    } else {
      dims.sizes.push_back(tensor.size(dim));
      dims.strides.push_back(tensor.stride(dim));
    }
  }
  return dims;
}
