// The host side of c10/metal/indexing.h: picks the kernel a TensorIterator needs, binds its operands, launches it.
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/TensorIterator.h>
#include <ATen/mps/MPSProfiler.h>
#include <ATen/native/mps/MetalShaderLibrary.h>
#include <ATen/native/mps/OperationUtils.h>
#include <c10/metal/common.h>
#include <c10/util/irange.h>
#include <fmt/format.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#else
#include <ATen/ops/empty.h>
#endif

namespace at::native::mps {

namespace {

using Encoder = id<MTLComputeCommandEncoder>;
using Pipeline = id<MTLComputePipelineState>;

constexpr uint32_t kDefaultIlpThreshold = 256 * 1024;

uint32_t code(ScalarType dtype) {
  return static_cast<uint32_t>(dtype);
}

uint32_t size_of(const TensorBase& t) {
  return static_cast<uint32_t>(t.element_size());
}

std::string metal_type(ScalarType dtype) {
  return scalarToMetalTypeString(dtype);
}

std::string no_kernel(const std::string& op, ScalarType dtype, const std::string& kernel) {
  return fmt::format("\"{}\" is not implemented on MPS for {} (no kernel {})", op, c10::toString(dtype), kernel);
}

// Runs `encode` on the stream's queue with the pipeline set; exceptions reach the caller.
template <typename Encode>
void launch(Pipeline pipeline, const std::string& kernel, TensorList inputs, const Encode& encode) {
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      getMPSProfiler().beginProfileKernel(pipeline, kernel, inputs, stream);
      Encoder encoder = stream->commandEncoder();
      [encoder setComputePipelineState:pipeline];
      encode(encoder);
      getMPSProfiler().endProfileKernel(pipeline, stream);
    }
  });
}

// Threads of a group lie along x first, so that they touch neighbouring elements.
void dispatch_rows(Encoder encoder, Pipeline pipeline, NSUInteger inner, NSUInteger outer, NSUInteger planes = 1) {
  const NSUInteger limit = [pipeline maxTotalThreadsPerThreadgroup];
  const NSUInteger width = std::min(inner, limit);
  const NSUInteger height = std::min(outer, limit / width);
  [encoder dispatchThreads:MTLSizeMake(inner, outer, planes) threadsPerThreadgroup:MTLSizeMake(width, height, 1)];
}

// An operand starts where the iterator says, which is not the tensor's own start in a part of a split iterator.
void bind_operand(Encoder encoder, TensorIteratorBase& iter, unsigned arg, const Tensor& tensor, unsigned index) {
  if (tensor.device().type() == kCPU) {
    mtl_setBuffer(encoder, tensor, index);
    return;
  }
  const auto* start = static_cast<const char*>(iter.tensor_base(arg).storage().data());
  const auto offset = static_cast<const char*>(iter.data_ptr(arg)) - start;
  [encoder setBuffer:getMTLBufferStorage(tensor) offset:offset atIndex:index];
}

ScalarType float_for_double(ScalarType dtype) {
  return dtype == kDouble ? kFloat : dtype;
}

// Metal has no double: a CPU scalar of that type is read as float.
Tensor without_double(const Tensor& t) {
  if (t.scalar_type() == kDouble) {
    return t.to(kFloat);
  }
  return t.scalar_type() == kComplexDouble ? t.to(kComplexFloat) : t;
}

bool fills_one_run(const TensorIteratorBase& iter, int arg) {
  if (iter.numel() == 1) {
    return true;
  }
  return iter.ndim() == 1 && iter.strides(arg)[0] == static_cast<int64_t>(iter.element_size(arg));
}

bool is_one_element(const TensorIteratorBase& iter, int arg) {
  return iter.ndim() == 1 && iter.strides(arg)[0] == 0;
}

// In a 2D iterator over dense rows: every row reads the same dense row of this operand.
bool repeats_rows(const TensorIteratorBase& iter, int arg) {
  return iter.strides(arg)[0] == static_cast<int64_t>(iter.element_size(arg)) && iter.strides(arg)[1] == 0;
}

bool has_dense_rows(const TensorIteratorBase& iter, int arg) {
  const auto size = static_cast<int64_t>(iter.element_size(arg));
  return iter.strides(arg)[0] == size && iter.strides(arg)[1] == size * iter.shape()[0];
}

// The most specialised layout of indexing.h that these operands fit.
std::string binary_layout(const TensorIteratorBase& iter, bool wants_ilp) {
  if (fills_one_run(iter, 0) && fills_one_run(iter, 1) && fills_one_run(iter, 2)) {
    return wants_ilp ? fmt::format("dense_ilp{}", c10::metal::ILP_PER_THREAD) : "dense";
  }
  if (fills_one_run(iter, 0) && fills_one_run(iter, 1) && is_one_element(iter, 2)) {
    return "dense_scalar";
  }
  if (fills_one_run(iter, 0) && is_one_element(iter, 1) && fills_one_run(iter, 2)) {
    return "dense_scalar_lhs";
  }
  if (iter.ndim() == 2 && has_dense_rows(iter, 0)) {
    if (has_dense_rows(iter, 1) && repeats_rows(iter, 2)) {
      return "dense_broadcast";
    }
    if (repeats_rows(iter, 1) && has_dense_rows(iter, 2)) {
      return "dense_broadcast_rhs";
    }
  }
  return "strided";
}

struct Kernel {
  std::string name;
  std::string layout;
  bool casts;
};

// What serves these operands, best first: the most specialised layout, then plainer ones, then kernels that cast.
std::vector<Kernel> binary_candidates(const std::string& op,
                                      const std::string& best_layout,
                                      ScalarType output,
                                      ScalarType common,
                                      std::optional<ScalarType> shared,
                                      const std::string& alpha_suffix) {
  std::vector<std::string> layouts{best_layout, "dense", "strided"};
  if (!c10::starts_with(best_layout, "dense_ilp")) {
    layouts.erase(layouts.begin() + 1);
  }
  std::vector<Kernel> rc;
  const auto out_type = metal_type(output);
  if (shared) {
    for (const auto& layout : layouts) {
      auto name = fmt::format("{}_{}_{}_{}{}", op, layout, out_type, metal_type(*shared), alpha_suffix);
      rc.push_back({std::move(name), layout, /*casts=*/false});
    }
  }
  for (const auto& layout : layouts) {
    auto name = fmt::format("{}_{}_cast_{}_{}{}", op, layout, out_type, metal_type(common), alpha_suffix);
    rc.push_back({std::move(name), layout, /*casts=*/true});
  }
  return rc;
}

// Computes into a tensor of the type the kernel returns, and converts that to the output.
template <typename Run>
void run_converted(const Tensor& output, ScalarType natural, const Run& run) {
  const Tensor result = at::empty(output.sizes(), output.options().dtype(natural));
  run(result);
  output.copy_(result);
}

} // namespace

bool MetalShaderLibrary::hasFunction(const std::string& fname) {
  if (!functionNamesPopulated) {
    for (auto& known : getFunctionNames()) {
      functionNames.insert(std::move(known));
    }
    functionNamesPopulated = true;
  }
  return functionNames.count(fname) != 0;
}

void MetalShaderLibrary::exec_unary_kernel(TensorIteratorBase& iter,
                                           const std::string& name,
                                           const std::optional<Scalar> alpha,
                                           const std::optional<ScalarType> scalar_arg_type,
                                           const std::optional<uint32_t> ilp_threshold) {
  const Params* none = nullptr;
  if (!alpha) {
    exec_unary_kernel(iter, name, none, ilp_threshold);
    return;
  }
  const auto alpha_type = scalar_arg_type.value_or(iter.common_dtype());
  const MPSScalar scalar = getMPSScalar(*alpha, alpha_type);
  const Params params{&scalar.value, scalar.size, metal_type(alpha_type)};
  exec_unary_kernel(iter, name, &params, ilp_threshold);
}

void MetalShaderLibrary::exec_unary_kernel(TensorIteratorBase& iter,
                                           const std::string& name,
                                           const Params* params,
                                           const std::optional<uint32_t> ilp_threshold) {
  if (iter.numel() == 0) {
    return;
  }
  if (!iter.can_use_32bit_indexing()) {
    for (auto&& part : iter.with_32bit_indexing()) {
      exec_unary_kernel(part, name, params, ilp_threshold);
    }
    return;
  }

  const Tensor output = iter.output(0);
  const Tensor input = without_double(iter.input(0));
  const auto numel = static_cast<uint32_t>(iter.numel());
  const bool dense = fills_one_run(iter, 0) && fills_one_run(iter, 1);
  const auto input_type = metal_type(input.scalar_type());
  const auto types = metal_type(output.scalar_type()) + "_" + input_type;

  std::string kernel = fmt::format("{}_{}_{}", name, dense ? "dense" : "strided", types);
  if (params) {
    kernel += "_" + params->type_name;
    if (!hasFunction(kernel) && output.scalar_type() != iter.common_dtype()) {
      run_converted(output, iter.common_dtype(), [&](Tensor result) {
        auto converted = TensorIterator::unary_float_op(result, iter.input(0));
        exec_unary_kernel(converted, name, params, ilp_threshold);
      });
      return;
    }
  }
  const auto one_per_thread_kernel = fmt::format("{}_dense_scalar_{}", name, types);
  const bool one_per_thread =
      dense && !params && numel < ilp_threshold.value_or(kDefaultIlpThreshold) && hasFunction(one_per_thread_kernel);
  if (one_per_thread) {
    kernel = one_per_thread_kernel;
  }
  const auto ilp_kernel = params ? fmt::format("{}_dense_ilp_{}_{}", name, types, params->type_name) : kernel;
  const bool wants_ilp = dense && params && ilp_threshold && numel >= *ilp_threshold && hasFunction(ilp_kernel);
  if (wants_ilp) {
    kernel = ilp_kernel;
  }
  const bool casts = !params && !hasFunction(kernel);
  if (casts) {
    kernel = fmt::format("{}_{}_castout_{}", name, dense ? "dense" : "strided", input_type);
  }
  TORCH_CHECK_NOT_IMPLEMENTED(hasFunction(kernel), no_kernel(name, input.scalar_type(), kernel));

  const Pipeline pipeline = getPipelineStateForFunc(kernel);
  launch(pipeline, kernel, {input}, [&](Encoder encoder) {
    bind_operand(encoder, iter, 0, output, 0);
    bind_operand(encoder, iter, 1, input, 1);
    const std::array<uint32_t, 2> castout{dense ? size_of(output) : static_cast<uint32_t>(iter.ndim()),
                                          code(output.scalar_type())};
    unsigned next = 2;
    if (!dense) {
      mtl_setArgs<2>(encoder, iter.shape(), iter.strides(1), iter.strides(0));
      next = 5;
    }
    if (casts) {
      mtl_setBytes(encoder, castout, next++);
    } else if (!dense) {
      mtl_setBytes(encoder, static_cast<uint32_t>(iter.ndim()), next++);
    }
    if (params) {
      [encoder setBytes:params->bytes length:params->size atIndex:next++];
    }
    if (!dense) {
      const NSUInteger inner = iter.shape()[0];
      dispatch_rows(encoder, pipeline, inner, numel / inner);
    } else if (casts || (params && !wants_ilp) || one_per_thread) {
      mtl_dispatch1DJob(encoder, pipeline, numel);
    } else {
      mtl_setBytes(encoder, numel, next);
      mtl_dispatch1DJob(encoder, pipeline, c10::metal::ceil_div(numel, c10::metal::ILP_PER_THREAD));
    }
  });
}

void MetalShaderLibrary::exec_binary_kernel(TensorIteratorBase& iter,
                                            const std::string& name,
                                            const std::optional<Scalar> alpha,
                                            const std::optional<ScalarType> scalar_arg_type,
                                            const std::optional<ScalarType> natural_output_dtype,
                                            const std::optional<uint32_t> ilp_threshold) {
  const Params* none = nullptr;
  if (!alpha) {
    exec_binary_kernel(iter, name, none, natural_output_dtype, ilp_threshold);
    return;
  }
  const auto alpha_type = scalar_arg_type.value_or(float_for_double(iter.common_dtype()));
  const MPSScalar scalar = getMPSScalar(*alpha, alpha_type);
  const Params params{&scalar.value, scalar.size, metal_type(alpha_type)};
  exec_binary_kernel(iter, name, &params, natural_output_dtype, ilp_threshold);
}

void MetalShaderLibrary::exec_binary_kernel(TensorIteratorBase& iter,
                                            const std::string& name,
                                            const Params* params,
                                            const std::optional<ScalarType> natural_output_dtype,
                                            const std::optional<uint32_t> ilp_threshold) {
  if (iter.numel() == 0) {
    return;
  }
  const auto common = float_for_double(iter.common_dtype());
  const auto natural = natural_output_dtype.value_or(common);
  const Tensor output = iter.output(0);
  TORCH_CHECK_TYPE(output.scalar_type() != kDouble, "MPS does not support float64: use float32");
  const auto castout = fmt::format("{}_strided_castout_{}_{}", name, metal_type(natural), metal_type(common));
  const bool casts_out = output.scalar_type() != natural && !params && hasFunction(castout);
  if (output.scalar_type() != natural && !casts_out) {
    run_converted(output, natural, [&](const Tensor& result) {
      auto converted = TensorIteratorConfig()
                           .add_owned_output(result)
                           .add_owned_const_input(iter.input(0))
                           .add_owned_const_input(iter.input(1))
                           .allow_cpu_scalars(true)
                           .promote_inputs_to_common_dtype(true)
                           .promote_integer_inputs_to_float(isFloatingType(common))
                           .resize_outputs(false)
                           .build();
      exec_binary_kernel(converted, name, params, natural, ilp_threshold);
    });
    return;
  }
  if (!iter.can_use_32bit_indexing()) {
    for (auto&& part : iter.with_32bit_indexing()) {
      exec_binary_kernel(part, name, params, natural_output_dtype, ilp_threshold);
    }
    return;
  }

  const Tensor input = without_double(iter.input(0));
  const Tensor other = without_double(iter.input(1));
  const auto numel = static_cast<uint32_t>(iter.numel());
  const auto threshold = ilp_threshold.value_or(isFloatingType(natural) ? kDefaultIlpThreshold : UINT32_MAX);
  const auto layout = binary_layout(iter, /*wants_ilp=*/!params && numel >= threshold);
  std::optional<ScalarType> shared;
  if (input.scalar_type() == other.scalar_type()) {
    shared = input.scalar_type();
  }
  const auto candidates = casts_out
      ? std::vector<Kernel>{{castout, "strided", /*casts=*/true}}
      : binary_candidates(name, layout, natural, common, shared, params ? "_" + params->type_name : "");
  const auto found =
      std::find_if(candidates.begin(), candidates.end(), [this](const Kernel& k) { return hasFunction(k.name); });
  TORCH_CHECK_NOT_IMPLEMENTED(found != candidates.end(), no_kernel(name, common, candidates.front().name));
  const Kernel kernel = *found;

  const Pipeline pipeline = getPipelineStateForFunc(kernel.name);
  launch(pipeline, kernel.name, {input, other}, [&](Encoder encoder) {
    bind_operand(encoder, iter, 0, output, 0);
    bind_operand(encoder, iter, 1, input, 1);
    bind_operand(encoder, iter, 2, other, 2);
    const auto input_type = code(input.scalar_type());
    const auto other_type = code(other.scalar_type());
    unsigned next = 3;
    if (c10::starts_with(kernel.layout, "dense_broadcast")) {
      mtl_setBytes(encoder, iter.shape()[0], next++);
    }
    if (params) {
      [encoder setBytes:params->bytes length:params->size atIndex:next++];
    }
    if (kernel.layout == "strided") {
      for (const auto& values : {iter.shape(), iter.strides(0), iter.strides(1), iter.strides(2)}) {
        mtl_setBytes(encoder, values, next++);
      }
      const std::array<uint32_t, 4> ndim_types{
          static_cast<uint32_t>(iter.ndim()), input_type, other_type, code(output.scalar_type())};
      mtl_setBytes(encoder, ndim_types, next);
    } else if (kernel.casts) {
      const std::array<uint32_t, 4> sizes_types{size_of(input), size_of(other), input_type, other_type};
      mtl_setBytes(encoder, sizes_types, next);
    }
    if (c10::starts_with(kernel.layout, "dense_ilp")) {
      mtl_setBytes(encoder, numel, next);
      mtl_dispatch1DJob(encoder, pipeline, c10::metal::ceil_div(numel, c10::metal::ILP_PER_THREAD));
    } else {
      mtl_dispatch1DJob(encoder, pipeline, numel);
    }
  });
}

void MetalShaderLibrary::exec_ternary_kernel(TensorIteratorBase& iter,
                                             const std::string& name,
                                             const std::optional<Scalar> alpha,
                                             const std::optional<ScalarType> scalar_arg_type) {
  if (iter.numel() == 0) {
    return;
  }
  if (!iter.can_use_32bit_indexing()) {
    for (auto&& part : iter.with_32bit_indexing()) {
      exec_ternary_kernel(part, name, alpha, scalar_arg_type);
    }
    return;
  }
  TORCH_CHECK_TYPE(iter.output(0).scalar_type() != kDouble, "MPS does not support float64: use float32");
  const auto common = float_for_double(iter.common_dtype());
  const auto alpha_type = scalar_arg_type.value_or(common);
  std::array<Tensor, 4> operands;
  // Kernels that cast have the inputs first, then the output
  std::array<uint32_t, 4> sizes, types;
  bool dense = true, casts = false;
  for (const auto arg : c10::irange(4)) {
    operands[arg] = without_double(iter.tensor(arg));
    sizes[(arg + 3) % 4] = size_of(operands[arg]);
    types[(arg + 3) % 4] = code(operands[arg].scalar_type());
    dense &= fills_one_run(iter, arg);
    casts |= arg > 0 && operands[arg].scalar_type() != common;
  }
  const std::string layout = dense ? "dense" : "strided";
  const auto suffix = metal_type(common) + (alpha ? "_" + metal_type(alpha_type) : "");
  auto kernel = fmt::format("{}_{}_{}_{}", name, layout, metal_type(operands[0].scalar_type()), suffix);
  casts |= !hasFunction(kernel);
  if (casts) {
    kernel = fmt::format("{}_{}_cast_{}", name, layout, suffix);
  }
  TORCH_CHECK_NOT_IMPLEMENTED(hasFunction(kernel), no_kernel(name, common, kernel));

  const Pipeline pipeline = getPipelineStateForFunc(kernel);
  launch(pipeline, kernel, {operands[1], operands[2], operands[3]}, [&](Encoder encoder) {
    unsigned next = 0;
    for (const auto arg : c10::irange(4)) {
      bind_operand(encoder, iter, arg, operands[arg], next++);
    }
    if (alpha) {
      mtl_setBytes(encoder, getMPSScalar(*alpha, alpha_type), next++);
    }
    if (!dense) {
      for (const auto& values : {iter.shape(), iter.strides(0), iter.strides(1), iter.strides(2), iter.strides(3)}) {
        mtl_setBytes(encoder, values, next++);
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
    } else {
      const NSUInteger x = iter.shape()[0];
      const NSUInteger y = iter.ndim() > 1 ? iter.shape()[1] : 1;
      dispatch_rows(encoder, pipeline, x, y, iter.numel() / (x * y));
    }
  });
}

} // namespace at::native::mps
