// Launches the binary kernel of c10/metal/indexing.h whose results are of this type, such as the bool of a comparison.
// What has other types than those of the kernel is cast as it is read or written.
static void exec_binary_castout(TensorIteratorBase& iter, const std::string& name, ScalarType result) {
  using namespace mps;
  if (iter.numel() == 0) {
    return;
  }
  if (!iter.can_use_32bit_indexing()) {
    for (auto&& part : iter.with_32bit_indexing()) {
      exec_binary_castout(part, name, result);
    }
    return;
  }
  const auto narrow = [](ScalarType type) {
    return type == kDouble ? kFloat : type == kComplexDouble ? kComplexFloat : type;
  };
  const auto common = narrow(iter.common_dtype());
  std::array<Tensor, 3> operands;
  std::array<uint32_t, 4> ndim_types{static_cast<uint32_t>(iter.ndim())};
  bool casts = false;
  for (const auto at : c10::irange(3)) {
    const auto& tensor = iter.tensor(at);
    TORCH_CHECK_TYPE(at || tensor.scalar_type() != kDouble, "MPS does not support float64: use float32");
    operands[at] = tensor.to(narrow(tensor.scalar_type()));
    casts |= operands[at].scalar_type() != (at ? common : result);
    // The inputs are first, the output last
    ndim_types[(at + 2) % 3 + 1] = static_cast<uint32_t>(operands[at].scalar_type());
  }
  const bool dense = iter.is_contiguous() && !casts;
  const auto layout = dense ? "dense" : "strided_castout";
  MPSStream* stream = getCurrentMPSStream();
  const auto pipeline = lib.getPipelineStateForFunc(
      fmt::format("{}_{}_{}_{}", name, layout, scalarToMetalTypeString(result), scalarToMetalTypeString(common)));
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto encoder = stream->commandEncoder();
      [encoder setComputePipelineState:pipeline];
      unsigned next = 0;
      for (const auto at : c10::irange(3)) {
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
      if (!dense) {
        mtl_setBytes(encoder, iter.shape(), next++);
        for (const auto at : c10::irange(3)) {
          mtl_setBytes(encoder, iter.strides(at), next++);
        }
        mtl_setBytes(encoder, ndim_types, next++);
      }
      mtl_dispatch1DJob(encoder, pipeline, iter.numel());
    }
  });
}
