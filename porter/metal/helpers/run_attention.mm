// Computes the sums of values that attention gives, and their weights. Dimensions before the last two are batches, the
// last of which are heads; if they are grouped, several heads of queries share one of keys or values.
static std::tuple<Tensor, Tensor> run_attention(const std::string& kernel,
                                                const Tensor& query_,
                                                const Tensor& key_,
                                                const Tensor& value_,
                                                const std::optional<Tensor>& mask_,
                                                std::optional<double> scale,
                                                bool is_causal,
                                                bool is_grouped) {
  using namespace mps;
  const auto dtype = query_.scalar_type();
  for (const auto& tensor : {query_, key_, value_}) {
    TORCH_CHECK(isFloatingType(dtype) && tensor.scalar_type() == dtype,
                "Expected query, key and value of one floating dtype, but got ",
                dtype,
                " and ",
                tensor.scalar_type());
    TORCH_CHECK(tensor.dim() >= (is_grouped ? 3 : 2),
                "Expected query, key and value to have more dimensions than ",
                tensor.dim());
  }
  TORCH_CHECK(query_.size(-1) == key_.size(-1) && key_.size(-2) == value_.size(-2),
              "Expected as many elements of queries as of keys, and as many keys as values, but got query, key and "
              "value of ",
              query_.sizes(),
              ", ",
              key_.sizes(),
              " and ",
              value_.sizes());
  const auto list_batches = [&](const Tensor& tensor) {
    auto batches = tensor.sizes().slice(0, tensor.dim() - 2).vec();
    if (is_grouped) {
      const int64_t heads = query_.size(-3);
      TORCH_CHECK(batches.back() > 0 && heads % batches.back() == 0,
                  "Expected the heads of query to be a multiple of those of key and value, but got ",
                  heads,
                  " and ",
                  batches.back());
      batches.back() = heads;
    }
    return batches;
  };
  const auto find_sizes = [](std::vector<int64_t> batches, int64_t rows, int64_t columns) {
    batches.insert(batches.end(), {rows, columns});
    return batches;
  };
  const int64_t queries = query_.size(-2), keys = key_.size(-2);
  const auto batches = at::infer_size(list_batches(query_), list_batches(key_));
  const auto all_batches = at::infer_size(batches, list_batches(value_));
  // Scores of 16 bits would be too few: all is computed in floats
  const auto query = query_.to(kFloat), key = key_.to(kFloat), value = value_.to(kFloat);
  const auto weights = query.new_empty(find_sizes(batches, queries, keys));
  const auto output = query.new_empty(find_sizes(all_batches, queries, value.size(-1)));
  // Batches of so many heads, as four dimensions
  const auto arrange = [](const Tensor& tensor, IntArrayRef batches, int64_t heads) {
    std::vector<int64_t> sizes = {1};
    sizes.insert(sizes.end(), batches.begin(), batches.end());
    sizes.back() = heads;
    const int64_t count = c10::multiply_integers(sizes.begin(), sizes.end() - 1);
    sizes.insert(sizes.end(), {tensor.size(-2), tensor.size(-1)});
    return tensor.expand(sizes).reshape({count, heads, tensor.size(-2), tensor.size(-1)});
  };
  MPSStream* stream = getCurrentMPSStream();
  // Products of matrices, times a number
  const auto multiply = [&](const Tensor& product_, const Tensor& left_, const Tensor& right_, float factor) {
    if (product_.numel() == 0) {
      return;
    }
    const auto batches = product_.sizes().slice(0, product_.dim() - 2);
    const int64_t all_heads = batches.empty() ? 1 : batches.back(), heads = right_.dim() > 2 ? right_.size(-3) : 1;
    // Rows that share a head of the right operand are rows of one product
    const int64_t rows = all_heads / heads * queries, columns = product_.size(-1), inner = left_.size(-1);
    auto right = arrange(right_, batches, heads);
    auto left = arrange(left_, batches, all_heads).reshape({right.size(0), heads, rows, inner});
    auto product = product_.view({right.size(0), heads, rows, columns});
    const auto is_even = [](const Tensor& tensor) { return tensor.stride(0) == tensor.size(1) * tensor.stride(1); };
    if (is_even(left) && is_even(right)) {
      right = right.flatten(0, 1).unsqueeze(0);
      left = left.flatten(0, 1).unsqueeze(0);
      product = product.flatten(0, 1).unsqueeze(0);
    }
    const bool fits = canUse32BitIndexMath(product) && canUse32BitIndexMath(left) && canUse32BitIndexMath(right);
    const bool is_vector = std::min(rows, columns) == 1 && inner >= 32;
    const bool is_direct = !is_vector && inner < 256 && rows * columns < 256;
    // A launch has all heads of all batches if these lie a step apart, else all batches of a head, or heads of a batch
    const int64_t dim = product.size(0) < product.size(1) ? 0 : 1, batch = 1 - dim, launches = product.size(dim);
    const bool is_large = fits && std::min(rows, columns) >= 64 && product_.numel() / launches >= 128 * 64 * 64;
    const int64_t tile = is_large ? 64 : 32;
    const auto type = std::string(fits ? "_float_int" : "_float_long");
    const auto tiled = type + "_" + std::to_string(tile);
    const auto name = kernel + (is_vector ? "_vector" + type : is_direct ? "_direct" + type : tiled);
    const std::array<int64_t, 4> sizes = {rows, columns, inner, 1};
    std::array<int64_t, 12> strides = {};
    auto stride = strides.begin();
    for (const auto& tensor : {product, left, right}) {
      for (const auto of : {batch, int64_t(2), int64_t(3)}) {
        *stride++ = tensor.stride(of);
      }
    }
    const std::array<c10::complex<float>, 2> scales = {factor, 0.0f};
    const std::array<int64_t, 2> factors = {1, 1};
    const auto groups = is_vector
        ? MTLSizeMake(at::ceil_div<int64_t>(rows * columns, 8), 1, product.size(batch))
        : MTLSizeMake(at::ceil_div(columns, tile), at::ceil_div(rows, tile), product.size(batch));
    dispatch_sync_with_rethrow(stream->queue(), ^() {
      @autoreleasepool {
        auto computeEncoder = stream->commandEncoder();
        auto PSO = lib.getPipelineStateForFunc(name);
        // this function call is a no-op if MPS Profiler is not enabled
        getMPSProfiler().beginProfileKernel(PSO, name, {left, right});
        [computeEncoder setComputePipelineState:PSO];
        for (int64_t i = 0; i < launches; i++) {
          const auto target = product.select(dim, i);
          // No memory is bound of operands without elements
          mtl_setArgs(computeEncoder,
                      target,
                      inner > 0 ? left.select(dim, i) : target,
                      inner > 0 ? right.select(dim, i) : target,
                      target,
                      sizes,
                      strides,
                      scales,
                      factors);
          if (is_direct) {
            [computeEncoder dispatchThreads:MTLSizeMake(columns, rows, product.size(batch))
                      threadsPerThreadgroup:MTLSizeMake(columns, rows, 256 / (rows * columns))];
          } else {
            [computeEncoder dispatchThreadgroups:groups
                           threadsPerThreadgroup:MTLSizeMake(is_vector ? 256 : 128, 1, 1)];
          }
        }
        getMPSProfiler().endProfileKernel(PSO);
      }
    });
  };
  multiply(weights, query, key.mT(), scale.value_or(1 / std::sqrt(std::max<int64_t>(query.size(-1), 1))));
  if (weights.numel() > 0) {
    const int64_t heads = batches.empty() ? 1 : batches.back();
    Tensor mask = weights;
    if (mask_ && mask_->scalar_type() == kBool) {
      mask = mask_->new_zeros(mask_->sizes(), kFloat).masked_fill_(mask_->logical_not(), -INFINITY);
    } else if (mask_) {
      mask = mask_->to(kFloat);
    }
    mask = arrange(mask.expand(weights.sizes()), batches, heads);
    const auto type = canUse32BitIndexMath(weights) && canUse32BitIndexMath(mask) ? "_float_int" : "_float_long";
    const std::array<int64_t, 5> sizes = {keys, queries, heads, is_causal, mask_.has_value()};
    dispatch_sync_with_rethrow(stream->queue(), ^() {
      @autoreleasepool {
        auto computeEncoder = stream->commandEncoder();
        auto PSO = lib.getPipelineStateForFunc(kernel + "_softmax" + type);
        // this function call is a no-op if MPS Profiler is not enabled
        getMPSProfiler().beginProfileKernel(PSO, kernel + "_softmax", {weights});
        [computeEncoder setComputePipelineState:PSO];
        mtl_setArgs(computeEncoder, weights, mask, sizes, mask.strides());
        [computeEncoder dispatchThreads:MTLSizeMake(32, weights.numel() / keys, 1)
                  threadsPerThreadgroup:MTLSizeMake(32, 8, 1)];
        getMPSProfiler().endProfileKernel(PSO);
      }
    });
  }
  multiply(output, weights, value, 1.0f);
  return {output.to(dtype), weights.to(dtype)};
}
