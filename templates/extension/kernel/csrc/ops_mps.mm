// The operators of $name on the mps device.
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <torch/library.h>

#include <numeric>
#include <optional>
#include <utility>

#include "kernels.h"
#include "launch.h"

namespace {

using $name::Content;
using $name::Source;

const std::pair<const char*, at::ScalarType> kTypes[] = {
    {"float", at::kFloat}, {"half", at::kHalf},     {"bfloat", at::kBFloat16}, {"bool", at::kBool},
    {"char", at::kChar},   {"uchar", at::kByte},    {"short", at::kShort},     {"ushort", at::kUInt16},
    {"int", at::kInt},     {"uint", at::kUInt32},   {"long", at::kLong},       {"ulong", at::kUInt64},
    {"float2", at::kComplexFloat},
};

std::string metal_type(const std::string& operand, at::ScalarType type) {
  for (const auto& [name, scalar] : kTypes) {
    if (scalar == type) {
      return name;
    }
  }
  TORCH_CHECK_TYPE(false, "$name: ", operand, " is ", type, ", which Metal does not have");
}

at::ScalarType scalar_type(const std::string& name) {
  for (const auto& [known, scalar] : kTypes) {
    if (known == name) {
      return scalar;
    }
  }
  TORCH_CHECK_TYPE(false, "$name: there is no Metal type ", name);
}

// The source for operands of these types and ranks, and for these values of template parameters.
std::string complete(const Source& kernel, const std::vector<at::Tensor>& operands,
                     const std::vector<std::string>& definitions) {
  std::string text;
  for (size_t i = 0; i < operands.size(); i++) {
    const std::string& name = kernel.operands[i];
    text += "#define type_of_" + name + " " + metal_type(name, operands[i].scalar_type()) + "\n";
    text += "#define pointer_to_" + name + (operands[i].dim() ? " *\n" : " &\n");
    text += "#define rank_of_" + name + " " + std::to_string(operands[i].dim()) + "\n";
  }
  text += "#include <metal_stdlib>\nusing namespace metal;\n";
  for (const std::string& definition : definitions) {
    text += definition + "\n";
  }
  return text + "#line 1\n" + kernel.text;
}

id<MTLComputePipelineState> pipeline(const Source& kernel, const std::string& text) {
  static std::mutex mutex;
  static auto& known = *new std::map<std::string, $name::Kernels>;  // never destroyed: Metal may be gone before
  std::lock_guard<std::mutex> lock(mutex);
  return known.try_emplace(text, text).first->second.get(kernel.function);
}

void bind_buffers(id<MTLComputeCommandEncoder> encoder, const Source& kernel, const std::vector<at::Tensor>& operands) {
  NSUInteger index = 0;
  for (const auto& [operand, content] : kernel.buffers) {
    const at::Tensor& tensor = operands[operand];
    const int rank = static_cast<int>(tensor.dim());
    const int64_t offset = tensor.storage_offset();
    const std::vector<int> shape(tensor.sizes().begin(), tensor.sizes().end());
    const std::vector<int64_t> strides(tensor.strides().begin(), tensor.strides().end());
    switch (content) {
      case Content::kData:
        [encoder setBuffer:$name::buffer_of(tensor) offset:$name::offset_of(tensor) atIndex:index];
        break;
      case Content::kShape:
        [encoder setBytes:shape.data() length:std::max<size_t>(shape.size(), 1) * sizeof(int) atIndex:index];
        break;
      case Content::kStrides:
        [encoder setBytes:strides.data() length:std::max<size_t>(strides.size(), 1) * sizeof(int64_t) atIndex:index];
        break;
      case Content::kRank:
        [encoder setBytes:&rank length:sizeof rank atIndex:index];
        break;
      case Content::kStorageOffset:
        [encoder setBytes:&offset length:sizeof offset atIndex:index];
        break;
    }
    index++;
  }
}

std::vector<at::Tensor> run(const Source& kernel, at::TensorList inputs, at::IntArrayRef grid,
                            at::IntArrayRef threadgroup, at::IntArrayRef output_sizes, at::IntArrayRef output_ranks,
                            const std::vector<std::string>& output_types, const std::vector<std::string>& definitions,
                            std::optional<double> init_value) {
  TORCH_CHECK_VALUE(grid.size() == 3 && threadgroup.size() == 3, "$name: grid and threadgroup have three sizes");
  TORCH_CHECK_VALUE(inputs.size() + output_types.size() == kernel.operands.size(), kernel.name, " has ",
                    kernel.operands.size(), " inputs and outputs");
  std::vector<at::Tensor> operands, outputs;
  for (const at::Tensor& input : inputs) {
    TORCH_CHECK_VALUE(input.is_mps(), kernel.name, ": ", kernel.operands[operands.size()], " is on ", input.device());
    operands.push_back(kernel.contiguous ? input.contiguous() : input);
  }
  size_t at = 0;
  for (size_t i = 0; i < output_types.size(); i++) {
    const auto shape = output_sizes.slice(at, output_ranks[i]);
    at += output_ranks[i];
    const auto options = at::TensorOptions(at::kMPS).dtype(scalar_type(output_types[i]));
    outputs.push_back(init_value ? at::full(shape, *init_value, options) : at::empty(shape, options));
  }
  operands.insert(operands.end(), outputs.begin(), outputs.end());
  NSUInteger threads[3], group[3];
  for (size_t i = 0; i < 3; i++) {
    TORCH_CHECK_VALUE(grid[i] >= 0 && threadgroup[i] > 0, kernel.name, ": a grid of ", grid, " in groups of ", threadgroup);
    threads[i] = grid[i];
    group[i] = std::clamp<NSUInteger>(grid[i], 1, threadgroup[i]);
  }
  $name::launch(pipeline(kernel, complete(kernel, operands, definitions)),
                MTLSizeMake(threads[0], threads[1], threads[2]), MTLSizeMake(group[0], group[1], group[2]),
                [&](id<MTLComputeCommandEncoder> encoder) { bind_buffers(encoder, kernel, operands); });
  return outputs;
}

template <size_t I>
std::vector<at::Tensor> operation(at::TensorList inputs, at::IntArrayRef grid, at::IntArrayRef threadgroup,
                                  at::IntArrayRef output_sizes, at::IntArrayRef output_ranks,
                                  std::vector<std::string> output_types, std::vector<std::string> definitions,
                                  std::optional<double> init_value) {
  return run($name::sources()[I], inputs, grid, threadgroup, output_sizes, output_ranks, output_types, definitions,
             init_value);
}

}  // namespace

TORCH_LIBRARY_IMPL($name, MPS, m) {
$registrations
}
