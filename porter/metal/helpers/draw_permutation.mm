// Fills a result with the numbers below its size in random order: where random words of the generator, one for each
// number, are once they are sorted.
static void draw_permutation(const std::string& kernel,
                             const Tensor& result,
                             const std::optional<Generator>& generator) {
  using namespace mps;
  const auto dtype = result.scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(
      !isComplexType(dtype) && dtype != kBool, "\"", kernel, "\" not implemented for '", toString(dtype), "'");
  const int64_t size = result.numel(), stride = result.stride(0);
  // The two halves have the runs before and behind a merge
  const auto words = at::empty({2, size}, result.options().dtype(kLong));
  const auto places = at::empty_like(words);
  auto* philox = get_generator_or_default<MPSGeneratorImpl>(generator, at::mps::detail::getDefaultMPSGenerator());
  std::array<int64_t, 2> state;
  {
    // See Note [Acquire lock when using random generators]
    std::lock_guard<std::mutex> lock(philox->mutex_);
    state = {static_cast<int64_t>(philox->current_seed()), static_cast<int64_t>(philox->get_offset())};
    philox->set_offset(philox->get_offset() + size);
  }
  const std::string index_type = canUse32BitIndexMath(words) && canUse32BitIndexMath(result) ? "int" : "long";
  const std::array<int64_t, 1> sizes = {size}, strides = {1};
  const int64_t dims = 1;
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto computeEncoder = stream->commandEncoder();
      auto drawPSO = lib.getPipelineStateForFunc(kernel + "_draw");
      auto blocksPSO = lib.getPipelineStateForFunc(kernel + "_blocks_long_" + index_type);
      auto mergePSO = lib.getPipelineStateForFunc(kernel + "_merge_long_" + index_type);
      auto PSO = lib.getPipelineStateForFunc(kernel + "_" + scalarToMetalTypeString(result) + "_" + index_type);
      // this function call is a no-op if MPS Profiler is not enabled
      getMPSProfiler().beginProfileKernel(PSO, kernel, {result});
      [computeEncoder setComputePipelineState:drawPSO];
      mtl_setArgs(computeEncoder, words[1], state);
      mtl_dispatch1DJob(computeEncoder, drawPSO, size);
      const auto most = std::min<int64_t>(1024, 4 * [blocksPSO maxTotalThreadsPerThreadgroup]);
      int64_t width = 128, runs = 0;
      while (width < size && 2 * width <= most) {
        width *= 2;
      }
      [computeEncoder setComputePipelineState:blocksPSO];
      mtl_setArgs(
          computeEncoder, words[0], places[0], words[1], sizes, strides, strides, strides, dims, size, false);
      [computeEncoder dispatchThreadgroups:MTLSizeMake(at::ceil_div(size, width), 1, 1)
                     threadsPerThreadgroup:MTLSizeMake(width / 4, 1, 1)];
      for (; width < size; width *= 2, runs = 1 - runs) {
        [computeEncoder setComputePipelineState:mergePSO];
        mtl_setArgs(computeEncoder,
                    words[1 - runs],
                    places[1 - runs],
                    words[runs],
                    places[runs],
                    sizes,
                    strides,
                    strides,
                    dims,
                    size,
                    false,
                    width);
        mtl_dispatch1DJob(computeEncoder, mergePSO, at::ceil_div<int64_t>(size, 4));
      }
      [computeEncoder setComputePipelineState:PSO];
      mtl_setArgs(computeEncoder, result, places[runs], stride);
      mtl_dispatch1DJob(computeEncoder, PSO, size);
      getMPSProfiler().endProfileKernel(PSO);
    }
  });
}
