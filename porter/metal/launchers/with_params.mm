void MetalShaderLibrary::exec_kernel_with_params(TensorIteratorBase& iter, const std::string& name, const void* params, size_t size, const std::string& params_type_name) {
  if (iter.numel() == 0) {
    return;
  }
  const auto common = iter.common_dtype() == kDouble ? kFloat : iter.common_dtype();
  const Tensor output = iter.output(0);
  TORCH_CHECK_TYPE(output.scalar_type() != kDouble, "MPS does not support float64: use float32");
  if (output.scalar_type() != common) {
    const Tensor result = output.new_empty(output.sizes(), output.options().dtype(common));
    TensorIteratorConfig config;
    config.add_owned_output(result);
    for (const auto at : c10::irange(iter.ninputs())) {
      config.add_owned_const_input(iter.input(at));
    }
    config.allow_cpu_scalars(true).promote_inputs_to_common_dtype(true).resize_outputs(false);
    auto converted = config.promote_integer_inputs_to_float(isFloatingType(common)).build();
    exec_kernel_with_params(converted, name, params, size, params_type_name);
    output.copy_(result);
    return;
  }
  if (!iter.can_use_32bit_indexing()) {
    for (auto&& part : iter.with_32bit_indexing()) {
      exec_kernel_with_params(part, name, params, size, params_type_name);
    }
    return;
  }
  const bool unary = iter.ninputs() == 1;
  std::vector<Tensor> operands;
  std::array<uint32_t, 4> ndim_types{static_cast<uint32_t>(iter.ndim())};
  bool casts = false;
  for (const auto at : c10::irange(iter.ntensors())) {
    const auto& tensor = iter.tensor(at);
    operands.push_back(tensor.scalar_type() == kDouble ? tensor.to(kFloat) : tensor);
    casts |= operands[at].scalar_type() != common;
    // The inputs are first, the output last
    ndim_types[(at + iter.ntensors() - 1) % iter.ntensors() + 1] = static_cast<uint32_t>(operands[at].scalar_type());
  }
  const bool dense = iter.is_contiguous() && (unary || !casts);
  const auto layout = dense ? "dense" : unary ? "strided" : "strided_cast";
  const auto input = scalarToMetalTypeString(unary ? operands[1].scalar_type() : common);
  const auto pipeline = getPipelineStateForFunc(fmt::format("{}_{}_{}_{}_{}", name, layout, scalarToMetalTypeString(common), input, params_type_name));
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto encoder = stream->commandEncoder();
      [encoder setComputePipelineState:pipeline];
      unsigned next = 0;
      for (const auto at : c10::irange(iter.ntensors())) {
        const auto& tensor = operands[at];
        if (tensor.is_cpu()) {
          mtl_setBuffer(encoder, tensor, next++);
          continue;
        }
        // A part of a split iterator starts inside its tensor
        const auto start = static_cast<const char*>(iter.tensor(at).storage().data());
        const auto offset = static_cast<const char*>(iter.data_ptr(at)) - start;
        [encoder setBuffer:getMTLBufferStorage(tensor) offset:offset atIndex:next++];
      }
      if (dense || !unary) {
        [encoder setBytes:params length:size atIndex:next++];
      }
      if (dense) {
        mtl_dispatch1DJob(encoder, pipeline, iter.numel());
        return;
      }
      mtl_setBytes(encoder, iter.shape(), next++);
      if (!unary) {
        for (const auto at : c10::irange(3)) {
          mtl_setBytes(encoder, iter.strides(at), next++);
        }
        mtl_setBytes(encoder, ndim_types, next++);
        mtl_dispatch1DJob(encoder, pipeline, iter.numel());
        return;
      }
      mtl_setBytes(encoder, iter.strides(1), next++);
      mtl_setBytes(encoder, iter.strides(0), next++);
      mtl_setBytes(encoder, ndim_types[0], next++);
      [encoder setBytes:params length:size atIndex:next++];
      const NSUInteger inner = iter.shape()[0], outer = iter.numel() / inner;
      const NSUInteger limit = [pipeline maxTotalThreadsPerThreadgroup];
      const NSUInteger width = std::min(inner, limit);
      [encoder dispatchThreads:MTLSizeMake(inner, outer, 1)
          threadsPerThreadgroup:MTLSizeMake(width, std::min(outer, limit / width), 1)];
    }
  });
}
