// Computes a product of matrices of floats, with another tensor added that may have fewer dimensions, if there is one.
static void multiply_matrices(const std::string& kernel,
                              const Tensor& product,
                              const Tensor& left,
                              const Tensor& right,
                              const Tensor& added = Tensor()) {
  using namespace mps;
  const int64_t rows = product.size(0), columns = product.size(1), inner = left.size(1);
  if (product.numel() == 0) {
    return;
  }
  const auto addend = added.defined() ? added.expand({rows, columns}) : product;
  const bool fits = canUse32BitIndexMath(product) && canUse32BitIndexMath(left) && canUse32BitIndexMath(right);
  const bool is_vector = std::min(rows, columns) == 1 && inner >= 32;
  const bool is_large = fits && std::min(rows, columns) >= 64 && product.numel() >= 128 * 64 * 64;
  const int64_t tile = is_large ? 64 : 32;
  const auto type = std::string(fits ? "_float_int" : "_float_long");
  const auto name = kernel + (is_vector ? "_vector" + type : type + "_" + std::to_string(tile));
  const std::array<int64_t, 4> sizes = {rows, columns, inner, 1};
  const std::array<int64_t, 12> strides = {0,
                                           product.stride(0),
                                           product.stride(1),
                                           0,
                                           left.stride(0),
                                           left.stride(1),
                                           0,
                                           right.stride(0),
                                           right.stride(1),
                                           0,
                                           addend.stride(0),
                                           addend.stride(1)};
  const std::array<c10::complex<float>, 2> scales = {1.0f, added.defined() ? 1.0f : 0.0f};
  const std::array<int64_t, 2> factors = {1, 1};
  const auto groups = is_vector ? MTLSizeMake(at::ceil_div<int64_t>(rows * columns, 8), 1, 1)
                                : MTLSizeMake(at::ceil_div(columns, tile), at::ceil_div(rows, tile), 1);
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto computeEncoder = stream->commandEncoder();
      auto PSO = lib.getPipelineStateForFunc(name);
      // this function call is a no-op if MPS Profiler is not enabled
      getMPSProfiler().beginProfileKernel(PSO, name, {left, right});
      [computeEncoder setComputePipelineState:PSO];
      // No memory is bound of operands without elements
      mtl_setArgs(computeEncoder,
                  product,
                  inner > 0 ? left : product,
                  inner > 0 ? right : product,
                  addend,
                  sizes,
                  strides,
                  scales,
                  factors);
      [computeEncoder dispatchThreadgroups:groups threadsPerThreadgroup:MTLSizeMake(is_vector ? 256 : 128, 1, 1)];
      getMPSProfiler().endProfileKernel(PSO);
    }
  });
}
