// Draws categories by the weights that they have along the last dimension, each as if it were the first, with a random
// word of the generator for each.
static void draw_categories(const std::string& kernel,
                            const Tensor& result,
                            const Tensor& weights,
                            const std::optional<Generator>& generator) {
  using namespace mps;
  const int64_t categories = weights.size(-1), count = result.numel();
  const auto rows = weights.dim() > 1 ? weights : weights.unsqueeze(0);
  const auto sums = rows.new_empty(rows.sizes(), kFloat);
  const auto output = result.is_contiguous() ? result : result.new_empty(result.sizes());
  auto* philox = get_generator_or_default<MPSGeneratorImpl>(generator, at::mps::detail::getDefaultMPSGenerator());
  std::array<int64_t, 2> state;
  {
    // See Note [Acquire lock when using random generators]
    std::lock_guard<std::mutex> lock(philox->mutex_);
    state = {static_cast<int64_t>(philox->current_seed()), static_cast<int64_t>(philox->get_offset())};
    philox->set_offset(philox->get_offset() + count);
  }
  const std::array<int64_t, 2> sizes = {categories, result.size(-1)};
  const bool fits = canUse32BitIndexMath(rows) && canUse32BitIndexMath(sums);
  const auto type = "_sums_" + scalarToMetalTypeString(rows) + (fits ? "_int" : "_long");
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto computeEncoder = stream->commandEncoder();
      auto sumsPSO = lib.getPipelineStateForFunc(kernel + type);
      // this function call is a no-op if MPS Profiler is not enabled
      getMPSProfiler().beginProfileKernel(sumsPSO, kernel + "_sums", {rows});
      [computeEncoder setComputePipelineState:sumsPSO];
      mtl_setArgs(computeEncoder, sums, rows, categories, rows.strides());
      [computeEncoder dispatchThreadgroups:MTLSizeMake(rows.size(0), 1, 1)
                     threadsPerThreadgroup:MTLSizeMake(256, 1, 1)];
      getMPSProfiler().endProfileKernel(sumsPSO);
      auto drawPSO = lib.getPipelineStateForFunc(kernel + "_draw");
      getMPSProfiler().beginProfileKernel(drawPSO, kernel + "_draw", {sums});
      [computeEncoder setComputePipelineState:drawPSO];
      mtl_setArgs(computeEncoder, output, sums, sizes, state);
      mtl_dispatch1DJob(computeEncoder, drawPSO, count);
      getMPSProfiler().endProfileKernel(drawPSO);
    }
  });
  if (!output.is_same(result)) {
    result.copy_(output);
  }
}
