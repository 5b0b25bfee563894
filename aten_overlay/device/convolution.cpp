// Convolutions by the fork's own operators: what libtorch itself calls on a Mac, where it is built with USE_MPS
// (ATen/native/Convolution.cpp). Here it asks for an "overrideable" convolution, and this answers.
#include "device.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_mps_convolution.h>
#include <ATen/ops/_mps_convolution_transpose.h>
#include <ATen/ops/mps_convolution_backward.h>
#include <ATen/ops/mps_convolution_transpose_backward.h>

namespace porter {
namespace {

using at::Tensor;

bool registered(const char* name) {
  const auto op = c10::Dispatcher::singleton().findSchema({name, ""});
  return op && op->hasKernelForDispatchKey(c10::DispatchKey::MPS);
}

// The arguments after the tensors, as both operators have them.
struct Geometry {
  std::vector<int64_t> stride, padding, dilation, output_padding;
  bool transposed;
  int64_t groups;
};

Geometry geometry_at(const torch::jit::Stack& arguments, size_t first) {
  const auto list = [&](size_t i) { return arguments[first + i].toIntVector(); };
  return {list(0), list(1), list(2), list(4), arguments[first + 3].toBool(), arguments[first + 5].toInt()};
}

// What libtorch checks before it calls an operator of MPS: an overrideable convolution checks its own.
void check_type(const Tensor& input, const Tensor& parameter, const char* name) {
  TORCH_CHECK(input.options().type_equal(parameter.options()), "Input type (", input.toString(), ") and ", name,
      " type (", parameter.toString(), ") should be the same");
}

Tensor along_channels(const Tensor& bias, int64_t rank) {
  std::vector<int64_t> shape(rank, 1);
  shape[1] = -1;
  return bias.reshape(shape);
}

Tensor bias_gradient(const Tensor& gradient) {
  std::vector<int64_t> others;
  for (int64_t dimension = 0; dimension < gradient.dim(); dimension++) {
    if (dimension != 1) {
      others.push_back(dimension);
    }
  }
  return gradient.sum(others);
}

Tensor forward(const torch::jit::Stack& arguments) {
  const Tensor& input = arguments[0].toTensor();
  const Tensor& weight = arguments[1].toTensor();
  const auto bias = arguments[2].toOptional<Tensor>();
  const Geometry g = geometry_at(arguments, 3);
  check_type(input, weight, "weight");
  if (bias && bias->defined()) {
    check_type(input, *bias, "bias");
  }
  if (!g.transposed) {
    return at::_mps_convolution(input, weight, bias, g.padding, g.stride, g.dilation, g.groups);
  }
  Tensor made = at::_mps_convolution_transpose(
      input, weight, g.padding, g.output_padding, g.stride, g.dilation, g.groups);
  return bias && bias->defined() ? made.add_(along_channels(*bias, input.dim())) : made;
}

std::tuple<Tensor, Tensor, Tensor> backward(const torch::jit::Stack& arguments) {
  const Tensor& gradient = arguments[0].toTensor();
  const Tensor& input = arguments[1].toTensor();
  const Tensor& weight = arguments[2].toTensor();
  const Geometry g = geometry_at(arguments, 3);
  const auto wanted = arguments[9].toBoolList();
  check_type(input, weight, "weight");
  std::tuple<Tensor, Tensor, Tensor> made;
  if (g.transposed) {
    std::tie(std::get<0>(made), std::get<1>(made)) = at::mps_convolution_transpose_backward(input, gradient, weight,
        g.padding, g.output_padding, g.stride, g.dilation, g.groups, {wanted[0], wanted[1]});
  } else {
    made = at::mps_convolution_backward(
        input, gradient, weight, g.padding, g.stride, g.dilation, g.groups, {wanted[0], wanted[1], wanted[2]});
  }
  if (wanted[2] && !std::get<2>(made).defined()) {
    std::get<2>(made) = bias_gradient(gradient);
  }
  return made;
}

}  // namespace

const char* own_convolution(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const bool back = op.schema().name() == "aten::convolution_backward_overrideable";
  if (!back && op.schema().name() != "aten::convolution_overrideable") {
    return nullptr;
  }
  const bool transposed = torch::jit::last(stack, op.schema().arguments().size())[6].toBool();
  return back ? (transposed ? "aten::mps_convolution_transpose_backward" : "aten::mps_convolution_backward")
              : (transposed ? "aten::_mps_convolution_transpose" : "aten::_mps_convolution");
}

bool run_own_convolution(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const char* own = own_convolution(op, *stack);
  if (own == nullptr || !registered(own)) {
    return false;
  }
  const bool back = op.schema().name() == "aten::convolution_backward_overrideable";
  const torch::jit::Stack arguments = torch::jit::pop(*stack, op.schema().arguments().size());
  if (back) {
    auto [input, weight, bias] = backward(arguments);
    torch::jit::push(*stack, std::move(input), std::move(weight), std::move(bias));
  } else {
    torch::jit::push(*stack, forward(arguments));
  }
  return true;
}

}  // namespace porter
