namespace {
// The rows of two tensors along a dimension: what sizes and strides the others have, and behind them the steps along it
struct FFTRows {
  DimVector sizes{1};
  DimVector output_strides{0};
  DimVector input_strides{0};
  std::string types;
};
} // namespace

static FFTRows find_rows(const Tensor& output, const Tensor& input, int64_t dim) {
  FFTRows rows;
  for (int64_t i = 0; i < input.dim(); i++) {
    const auto size = input.size(i), output_stride = output.stride(i), input_stride = input.stride(i);
    if (i == dim || size == 1) {
      continue;
    }
    // Dimensions that one stride goes over are one
    if (rows.sizes.back() > 1 &&
        (rows.output_strides.back() != size * output_stride || rows.input_strides.back() != size * input_stride)) {
      rows.sizes.push_back(1);
      rows.output_strides.push_back(0);
      rows.input_strides.push_back(0);
    }
    rows.sizes.back() *= size;
    rows.output_strides.back() = output_stride;
    rows.input_strides.back() = input_stride;
  }
  rows.output_strides.push_back(output.stride(dim));
  rows.input_strides.push_back(input.stride(dim));
  const bool fits = canUse32BitIndexMath(output) && canUse32BitIndexMath(input);
  rows.types = mps::scalarToMetalTypeString(output) + "_" + mps::scalarToMetalTypeString(input);
  rows.types += fits ? "_int" : "_long";
  return rows;
}

template <typename Encode>
static void launch_fft(const std::string& kernel, const std::string& name, const Tensor& input, const Encode& encode) {
  using namespace mps;
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto computeEncoder = stream->commandEncoder();
      auto PSO = lib.getPipelineStateForFunc(name);
      // this function call is a no-op if MPS Profiler is not enabled
      getMPSProfiler().beginProfileKernel(PSO, kernel, {input});
      [computeEncoder setComputePipelineState:PSO];
      encode(computeEncoder, PSO);
      getMPSProfiler().endProfileKernel(PSO);
    }
  });
}

// Transforms rows of `size` elements, of pairs of real ones if they are folded; where they are parts of `whole`
// elements, the results are turned by their place
static void transform_rows(const std::string& kernel,
                           const Tensor& output,
                           const Tensor& input,
                           int64_t dim,
                           int64_t size,
                           bool is_folded,
                           bool is_forward,
                           double scale,
                           int64_t whole = 0) {
  const auto rows = find_rows(output, input, dim);
  const auto count = c10::multiply_integers(rows.sizes);
  const bool is_dense = output.stride(dim) == 1 && input.stride(dim) == 1;
  // A thread has 16 elements. Rows beside each other share a threadgroup
  const auto lanes = size % 16 == 0 ? size / 16 : at::ceil_div<int64_t>(size, 8);
  const auto group_rows = std::clamp<int64_t>((is_dense ? 128 : 256) / lanes, 1, count);
  const auto inner = whole > 0 ? c10::multiply_integers(input.sizes().slice(dim + 2)) : 1;
  const std::array<int64_t, 9> sizes = {size,
                                        input.size(dim),
                                        output.size(dim),
                                        count,
                                        static_cast<int64_t>(rows.sizes.size()),
                                        group_rows,
                                        whole,
                                        inner,
                                        is_folded};
  launch_fft(kernel, kernel + "_" + rows.types, input, [&](auto computeEncoder, auto PSO) {
    mps::mtl_setArgs(computeEncoder,
                     output,
                     input,
                     sizes,
                     rows.sizes,
                     rows.output_strides,
                     rows.input_strides,
                     static_cast<float>(scale),
                     is_forward);
    [computeEncoder setThreadgroupMemoryLength:at::round_up<int64_t>(group_rows * size, 16) * 8 atIndex:0];
    [computeEncoder dispatchThreadgroups:MTLSizeMake(at::ceil_div(count, group_rows), 1, 1)
                   threadsPerThreadgroup:MTLSizeMake(group_rows * lanes, 1, 1)];
  });
}

// Copies rows of a spectrum of `size` elements, times factors if there are any, with zeros behind; or between half of
// the spectrum of real elements and that of their pairs, if it is folded
static void copy_rows(const std::string& kernel,
                      const Tensor& output,
                      const Tensor& input,
                      int64_t dim,
                      int64_t size,
                      bool is_folded = false,
                      const std::optional<Tensor>& factors = std::nullopt,
                      double scale = 1) {
  const auto rows = find_rows(output, input, dim);
  const std::array<int64_t, 6> sizes = {size,
                                        input.size(dim),
                                        output.size(dim),
                                        static_cast<int64_t>(rows.sizes.size()),
                                        factors.has_value(),
                                        is_folded};
  launch_fft(kernel, kernel + "_copy_" + rows.types, input, [&](auto computeEncoder, auto PSO) {
    mps::mtl_setArgs(computeEncoder,
                     output,
                     input,
                     sizes,
                     rows.sizes,
                     rows.output_strides,
                     rows.input_strides,
                     static_cast<float>(scale),
                     factors.value_or(output));
    mps::mtl_dispatch1DJob(computeEncoder, PSO, output.numel());
  });
}

static int64_t find_greatest_factor(int64_t size) {
  int64_t greatest = 1;
  for (int64_t factor = 2; factor * factor <= size; factor++) {
    while (size % factor == 0) {
      greatest = factor;
      size /= factor;
    }
  }
  return std::max(greatest, size);
}

// Whether elements along a dimension are complex ones of half as many, where they are
static bool can_pair(const Tensor& real, int64_t dim) {
  bool is_even = real.stride(dim) == 1 && real.storage_offset() % 2 == 0;
  for (int64_t i = 0; i < real.dim(); i++) {
    is_even = is_even && (i == dim || real.stride(i) % 2 == 0);
  }
  return is_even;
}

static void transform_along(const std::string& kernel,
                            const Tensor& output,
                            const Tensor& input,
                            int64_t dim,
                            bool is_forward,
                            double scale = 1);

// Any size: as a convolution with a chirp (Bluestein's algorithm), whose length is a power of two
static void convolve_with_chirp(const std::string& kernel,
                                const Tensor& output,
                                const Tensor& padded,
                                const Tensor& input,
                                int64_t dim,
                                int64_t size,
                                bool is_forward,
                                double scale) {
  const int64_t length = padded.size(dim);
  const std::array<int64_t, 2> sizes = {size, length};
  const auto chirp = padded.new_empty({size}), filter = padded.new_empty({length});
  launch_fft(kernel, kernel + "_chirp", input, [&](auto computeEncoder, auto PSO) {
    mps::mtl_setArgs(computeEncoder, chirp, filter, sizes, is_forward);
    mps::mtl_dispatch1DJob(computeEncoder, PSO, length);
  });
  transform_along(kernel, filter, filter, 0, true);
  copy_rows(kernel, padded, input, dim, size, false, chirp);
  transform_along(kernel, padded, padded, dim, true);
  copy_rows(kernel, padded, padded, dim, length, false, filter);
  transform_along(kernel, padded, padded, dim, false);
  copy_rows(kernel, output, padded.narrow(dim, 0, size), dim, size, false, chirp, scale / length);
}

static void transform_along(const std::string& kernel,
                            const Tensor& output,
                            const Tensor& input,
                            int64_t dim,
                            bool is_forward,
                            double scale) {
  const int64_t input_size = input.size(dim), output_size = output.size(dim), size = std::max(input_size, output_size);
  const auto make_rows = [&](int64_t length) {
    DimVector sizes(input.sizes());
    sizes[dim] = length;
    return at::empty(sizes, input.options().dtype(kComplexFloat));
  };
  if (find_greatest_factor(size) > 128) {
    const auto padded = make_rows(c10::llvm::PowerOf2Ceil(2 * size - 1));
    convolve_with_chirp(kernel, output, padded, input, dim, size, is_forward, scale);
    return;
  }
  const bool is_dense = output.stride(dim) == 1 && input.stride(dim) == 1;
  const bool is_folded = size % 2 == 0 && !(output.is_complex() && input.is_complex());
  const int64_t count = is_folded ? size / 2 : size;
  // As many as 256 threads have, which their registers allow for
  if (count <= (!is_dense ? 1024 : count % 16 == 0 ? 4096 : 2048)) {
    const double shared = is_folded && output.is_complex() ? scale / 2 : scale;
    transform_rows(kernel, output, input, dim, count, is_folded, is_forward, shared);
    return;
  }
  if (is_folded && can_pair(input.is_complex() ? output : input, dim)) {
    const auto pair = [&](const Tensor& real) { return real.movedim(dim, -1).view(kComplexFloat).movedim(-1, dim); };
    const auto spectrum = make_rows(count);
    if (is_forward) {
      transform_along(kernel, spectrum, pair(input), dim, true, scale / 2);
      copy_rows(kernel, output, spectrum, dim, count, true);
    } else {
      copy_rows(kernel, spectrum, input, dim, count, true);
      transform_along(kernel, pair(output), spectrum, dim, false, scale);
    }
    return;
  }
  // Longer rows are transformed in two parts, with all elements of a spectrum
  if (input_size < size) {
    const auto spectrum = make_rows(size);
    copy_rows(kernel, spectrum, input, dim, size);
    transform_along(kernel, output, spectrum, dim, is_forward, scale);
    return;
  }
  if (output_size < size) {
    const auto spectrum = make_rows(size);
    transform_along(kernel, spectrum, input, dim, is_forward, scale);
    copy_rows(kernel, output, spectrum.narrow(dim, 0, output_size), dim, output_size);
    return;
  }
  int64_t part = std::min<int64_t>(1024, std::sqrt(size));
  while (size % part != 0) {
    part--;
  }
  const int64_t other = size / part;
  const auto parts = make_rows(size).unflatten(dim, {part, other});
  transform_rows(kernel, parts, input.unflatten(dim, {part, other}), dim, part, false, is_forward, 1, size);
  const auto results = output.unflatten(dim, {other, part}).transpose(dim, dim + 1);
  transform_along(kernel, results, parts, dim + 1, is_forward, scale);
}

// Transforms along dimensions. Real numbers have half of a spectrum along the last of these, or all of it
static void run_fft(const std::string& kernel,
                    const Tensor& output,
                    const Tensor& input,
                    IntArrayRef dims,
                    int64_t normalization,
                    bool is_forward,
                    std::optional<int64_t> last_size = std::nullopt) {
  dim_list_to_bitset(dims, input.dim()); // which refuses those that are there twice
  for (const auto dim : dims) {
    TORCH_CHECK(dim >= 0, "Expected dimensions from the first on, but got ", dim);
  }
  const auto mode = static_cast<fft_norm_mode>(normalization);
  TORCH_CHECK(mode == fft_norm_mode::none || mode == fft_norm_mode::by_root_n || mode == fft_norm_mode::by_n,
              "Unsupported normalization type ",
              normalization);
  DimVector sizes(input.sizes());
  if (last_size) {
    TORCH_CHECK(*last_size > 0, "Invalid number of data points (", *last_size, ") specified");
    sizes[dims.back()] = *last_size;
  }
  resize_output(output, sizes);
  if (output.numel() == 0) {
    return;
  }
  if (dims.empty()) {
    output.copy_(input);
    return;
  }
  const bool is_real = !output.is_complex();
  const auto dtype = is_real ? kFloat : kComplexFloat;
  if (output.scalar_type() != dtype) {
    const auto result = at::empty(sizes, output.options().dtype(dtype));
    run_fft(kernel, result, input, dims, normalization, is_forward, last_size);
    output.copy_(result);
    return;
  }
  double count = 1;
  for (const auto dim : dims) {
    count *= (is_real ? output : input).size(dim);
  }
  const double scale = mode == fft_norm_mode::none ? 1 : 1 / (mode == fft_norm_mode::by_n ? count : std::sqrt(count));
  const auto between = is_real && dims.size() > 1 ? at::empty_like(input) : output;
  Tensor from = input;
  for (size_t i = 1; i <= dims.size(); i++) {
    const auto dim = is_real ? dims[i - 1] : dims[dims.size() - i];
    if (i < dims.size()) {
      transform_along(kernel, between, from, dim, is_forward);
      from = between;
    } else {
      const auto half = is_real ? from.narrow(dim, 0, output.size(dim) / 2 + 1) : from;
      transform_along(kernel, output, half, dim, is_forward, scale);
    }
  }
}
