enum class Convolved { Input, Weight, Output };

// Computes the output of a convolution, or the gradient of its input or weight, as a product of two matrices for each
// group: of factors, and of the elements that a source has for each window and tap.
static void run_convolution(const std::string& kernel,
                            Convolved computed,
                            const Tensor& input_,
                            const Tensor& weight_,
                            const Tensor& output_,
                            const std::optional<Tensor>& bias,
                            IntArrayRef padding,
                            IntArrayRef stride,
                            IntArrayRef dilation,
                            int64_t groups) {
  using namespace mps;
  const bool is_input = computed == Convolved::Input, is_weight = computed == Convolved::Weight;
  for (size_t i = 0; is_input && i < stride.size(); i++) {
    if (stride[i] == 1) {
      continue;
    }
    // Places of an input that lie a stride apart have products of the same taps: of every `step`-th alone
    const int64_t dim = i + 2, step = stride[i] / std::gcd(stride[i], dilation[i]);
    auto offsets = padding.vec(), strides = stride.vec(), dilations = dilation.vec();
    strides[i] = 1;
    dilations[i] = dilation[i] * step / stride[i];
    for (int64_t first = 0; first < std::min(stride[i], input_.size(dim)); first++) {
      const auto places = input_.slice(dim, first, std::nullopt, stride[i]);
      int64_t tap = 0;
      while (tap < step && (first + padding[i] - tap * dilation[i]) % stride[i] != 0) {
        tap++;
      }
      if (tap >= std::min(step, weight_.size(dim))) {
        places.zero_();
        continue;
      }
      offsets[i] = (first + padding[i] - tap * dilation[i]) / stride[i];
      const auto taps = weight_.slice(dim, tap, std::nullopt, step);
      run_convolution(kernel, computed, places, taps, output_, bias, offsets, strides, dilations, groups);
    }
    return;
  }
  const auto widen = [](Tensor tensor) {
    while (tensor.dim() < 5) {
      tensor = tensor.unsqueeze(2);
    }
    return tensor;
  };
  const auto input = widen(input_), weight = widen(weight_), output = widen(output_);
  const Tensor& result = is_input ? input : is_weight ? weight : output;
  const Tensor& factors = is_weight ? output : weight;
  const Tensor& source = is_input ? output : input;
  const auto list_sizes = [](int64_t first, const Tensor& tensor) {
    return std::array<int64_t, 4>{first, tensor.size(2), tensor.size(3), tensor.size(4)};
  };
  const auto windows = list_sizes(input.size(0), is_input ? input : output);
  const auto taps = list_sizes(is_input ? weight.size(0) / groups : weight.size(1), weight);
  const auto& columns = is_weight ? taps : windows;
  const auto& inner = is_weight ? windows : taps;
  const int64_t rows = is_input ? weight.size(1) : weight.size(0) / groups;
  const int64_t width = c10::multiply_integers(columns), length = c10::multiply_integers(inner);
  const bool fits = canUse32BitIndexMath(result) && canUse32BitIndexMath(factors) && canUse32BitIndexMath(source);
  const bool is_direct = rows < 4;
  const bool is_large = fits && std::min(rows, width) > 32 && result.numel() * length >= 1 << 26;
  const int64_t tile = is_large ? 64 : 32, lines = inner[0] * inner[1] * inner[2];
  const auto tiles_across = at::ceil_div(width, tile), tiles_down = at::ceil_div(rows, tile);
  // A simdgroup adds up many products: as many of its lanes as there may be have the same line of the last dimension
  const int64_t lanes = length > 256 ? 32 : 1;
  int64_t line_lanes = 1;
  while (line_lanes < std::min(lanes, inner[3])) {
    line_lanes *= 2;
  }
  // Few tiles, or simdgroups, share their sums with others, which a second kernel adds up
  const int64_t most = is_direct ? std::min(lines, length / 512) : length / 128;
  const int64_t units = std::max<int64_t>(groups * (is_direct ? rows * width : tiles_across * tiles_down), 1);
  const int64_t slices = std::clamp<int64_t>((is_direct ? 16384 : 512) / units, 1, std::max<int64_t>(most, 1));
  const int64_t share = is_direct ? at::ceil_div(lines, slices) : at::ceil_div<int64_t>(length, slices * 16) * 16;
  const bool is_sliced = slices > 1;
  const auto partial = is_sliced ? result.new_empty({slices, result.numel()}, kFloat) : result;
  const auto written = is_sliced ? partial[0].view(result.sizes()) : result;
  // The steps between groups and rows, then the others
  const auto list_strides = [&](const Tensor& tensor, bool is_of_weight) {
    const int64_t grouped = is_of_weight ? 0 : 1, row = is_of_weight && is_input ? 1 : grouped;
    const int64_t group = tensor.size(grouped) / groups * tensor.stride(grouped);
    const auto strides = tensor.strides();
    return std::array<int64_t, 6>{group, strides[row], strides[1 - row], strides[2], strides[3], strides[4]};
  };
  const auto output_strides = list_strides(written, is_weight);
  const auto factor_strides = list_strides(factors, !is_weight);
  const auto source_strides = list_strides(source, false);
  const std::array<int64_t, 3> places = {source.size(2), source.size(3), source.size(4)};
  // The steps of a source between windows and between taps, and where it begins
  std::array<int64_t, 9> geometry = {1, 1, 1, 1, 1, 1, 0, 0, 0};
  for (size_t i = 0, dim = 3 - stride.size(); i < stride.size(); i++, dim++) {
    geometry[dim] = stride[i];
    geometry[3 + dim] = is_input ? -dilation[i] : dilation[i];
    geometry[6 + dim] = is_input ? padding[i] : -padding[i];
  }
  const bool has_bias = bias && bias->defined();
  const auto added = has_bias ? bias->to(result.scalar_type()) : result;
  const int64_t bias_stride = has_bias ? added.stride(0) : 0;
  const std::array<int64_t, 8> sizes = {
      rows, slices, result.numel(), is_weight, has_bias, bias_stride, share, line_lanes};
  const auto type = scalarToMetalTypeString(result) + (fits ? "_int" : "_long");
  const auto name = is_direct ? kernel + "_direct_" + type : kernel + "_" + type + (is_large ? "_64" : "_32");
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto computeEncoder = stream->commandEncoder();
      auto PSO = lib.getPipelineStateForFunc(name);
      // this function call is a no-op if MPS Profiler is not enabled
      getMPSProfiler().beginProfileKernel(PSO, kernel, {factors, source});
      [computeEncoder setComputePipelineState:PSO];
      mtl_setArgs(computeEncoder,
                  result,
                  partial,
                  factors,
                  source,
                  added,
                  sizes,
                  columns,
                  inner,
                  places,
                  output_strides,
                  factor_strides,
                  source_strides,
                  geometry);
      if (is_direct) {
        [computeEncoder dispatchThreads:MTLSizeMake(lanes, width, rows * groups * slices)
                  threadsPerThreadgroup:MTLSizeMake(lanes, 256 / lanes, 1)];
      } else {
        [computeEncoder dispatchThreadgroups:MTLSizeMake(tiles_across, tiles_down, groups * slices)
                       threadsPerThreadgroup:MTLSizeMake(32, 4, 1)];
      }
      if (is_sliced) {
        auto slices_PSO = lib.getPipelineStateForFunc(kernel + "_slices_" + type);
        [computeEncoder setComputePipelineState:slices_PSO];
        mtl_setArgs(computeEncoder, result, partial, sizes, result.sizes(), result.strides());
        mtl_dispatch1DJob(computeEncoder, slices_PSO, result.numel());
      }
      getMPSProfiler().endProfileKernel(PSO);
    }
  });
}
