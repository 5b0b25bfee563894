// Fills a tensor with what a kernel makes of random words, of which the generator is advanced by one for each element.
// The kernel takes parameters, or an operand of the same size.
template <typename P>
static void fill_random(const Tensor& output, const std::string& name, const std::optional<Generator>& generator, const P& params) {
  using namespace mps;
  const int64_t count = output.numel();
  if (count == 0) {
    return;
  }
  auto* philox = get_generator_or_default<MPSGeneratorImpl>(generator, at::mps::detail::getDefaultMPSGenerator());
  std::array<int64_t, 2> state;
  {
    // See Note [Acquire lock when using random generators]
    std::lock_guard<std::mutex> lock(philox->mutex_);
    state = {static_cast<int64_t>(philox->current_seed()), static_cast<int64_t>(philox->get_offset())};
    philox->set_offset(philox->get_offset() + count);
  }
  const Tensor values = output.is_contiguous() ? output : output.new_empty(output.sizes());
  const auto type = scalarToMetalTypeString(output);
  const auto pipeline = lib.getPipelineStateForFunc(fmt::format("{}_fill_{}_{}", name, type, type));
  // A thread's index has 32 bits
  constexpr int64_t most = int64_t(1) << 31;
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto encoder = stream->commandEncoder();
      [encoder setComputePipelineState:pipeline];
      for (int64_t start = 0; start < count; start += most) {
        const auto part = std::min(most, count - start);
        const std::array<int64_t, 2> at = {state[0], state[1] + start};
        mtl_setArgs(encoder, values.view({-1}).narrow(0, start, part));
        if constexpr (std::is_same_v<P, Tensor>) {
          mtl_setBuffer(encoder, params.view({-1}).narrow(0, start, part), 1);
        } else {
          mtl_setBytes(encoder, params, 1);
        }
        mtl_setBytes(encoder, at, 2);
        mtl_dispatch1DJob(encoder, pipeline, part);
      }
    }
  });
  if (!values.is_same(output)) {
    output.copy_(values);
  }
}
