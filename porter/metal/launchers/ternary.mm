// Launches the ternary kernel of c10/metal/indexing.h that computes in this type. The scalar or struct that it takes
// beside its elements, if any, is of the type that the kernel is registered with.
template <typename T = bool>
static void exec_ternary(TensorIteratorBase& iter, const std::string& name, ScalarType dtype, const T& scalar = false, const std::string& scalar_type = "") {
  using namespace mps;
  if (iter.numel() == 0) {
    return;
  }
  if (!iter.can_use_32bit_indexing()) {
    for (auto&& part : iter.with_32bit_indexing()) {
      exec_ternary(part, name, dtype, scalar, scalar_type);
    }
    return;
  }
  dtype = dtype == kDouble ? kFloat : dtype;
  std::array<Tensor, 4> operands;
  std::array<uint32_t, 4> types, sizes;
  bool casts = false;
  for (const auto at : c10::irange(4)) {
    const auto& tensor = iter.tensor(at);
    TORCH_CHECK_TYPE(at || tensor.scalar_type() != kDouble, "MPS does not support float64: use float32");
    operands[at] = tensor.scalar_type() == kDouble ? tensor.to(kFloat) : tensor;
    casts |= operands[at].scalar_type() != dtype;
    // Cast kernels have the inputs first
    types[(at + 3) % 4] = static_cast<uint32_t>(operands[at].scalar_type());
    sizes[(at + 3) % 4] = static_cast<uint32_t>(operands[at].element_size());
  }
  const bool dense = iter.is_contiguous();
  const auto type = scalarToMetalTypeString(dtype);
  const auto kernel = fmt::format("{}_{}_{}_{}{}{}", name, dense ? "dense" : "strided", casts ? "cast" : type, type, scalar_type.empty() ? "" : "_", scalar_type);
  MPSStream* stream = getCurrentMPSStream();
  const auto pipeline = lib.getPipelineStateForFunc(kernel);
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto encoder = stream->commandEncoder();
      [encoder setComputePipelineState:pipeline];
      unsigned next = 0;
      for (const auto at : c10::irange(4)) {
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
      if (!scalar_type.empty()) {
        [encoder setBytes:&scalar length:sizeof(T) atIndex:next++];
      }
      if (!dense) {
        mtl_setBytes(encoder, iter.shape(), next++);
        for (const auto at : c10::irange(4)) {
          mtl_setBytes(encoder, iter.strides(at), next++);
        }
        mtl_setBytes(encoder, static_cast<uint32_t>(iter.ndim()), next++);
      } else if (casts) {
        mtl_setBytes(encoder, sizes, next++);
      }
      if (casts) {
        mtl_setBytes(encoder, types, next++);
      }
      if (dense) {
        mtl_dispatch1DJob(encoder, pipeline, iter.numel());
        return;
      }
      const NSUInteger x = iter.shape()[0];
      const NSUInteger y = iter.ndim() > 1 ? iter.shape()[1] : 1;
      const NSUInteger limit = [pipeline maxTotalThreadsPerThreadgroup];
      const NSUInteger width = std::min(x, limit);
      [encoder dispatchThreads:MTLSizeMake(x, y, iter.numel() / (x * y))
          threadsPerThreadgroup:MTLSizeMake(width, std::min(y, limit / width), 1)];
    }
  });
}
