// The operators of $name on the mps device.
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <tuple>

#include "kernels.h"
#include "launch.h"

namespace {

$name::Kernels& kernels() {
  static auto& value = *new $name::Kernels(kKernels);  // never destroyed: Metal may be gone before static objects are
  return value;
}

// The suffix of the kernels of an element type.
std::string suffix(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return "_float";
    case at::kHalf:
      return "_half";
    case at::kBFloat16:
      return "_bfloat";
    default:
      TORCH_CHECK_TYPE(false, "swiglu: no kernel takes ", tensor.scalar_type());
  }
}

void check(const at::Tensor& gate, const at::Tensor& up) {
  TORCH_CHECK(up.device() == gate.device(), "swiglu: gate is on ", gate.device(), " and up is on ", up.device());
  TORCH_CHECK(gate.sizes() == up.sizes(), "swiglu: gate has shape ", gate.sizes(), " and up has shape ", up.sizes());
  TORCH_CHECK(gate.scalar_type() == up.scalar_type(), "swiglu: gate is ", gate.scalar_type(), " and up is ",
              up.scalar_type());
}

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  check(gate, up);
  const at::Tensor x = gate.contiguous(), y = up.contiguous();
  at::Tensor out = at::empty_like(x);
  $name::launch(kernels().get("swiglu" + suffix(x)), {x, y, out}, out.numel());
  return out;
}

std::tuple<at::Tensor, at::Tensor> swiglu_backward(const at::Tensor& grad, const at::Tensor& gate,
                                                   const at::Tensor& up) {
  check(gate, up);
  check(gate, grad);
  const at::Tensor g = grad.contiguous(), x = gate.contiguous(), y = up.contiguous();
  at::Tensor grad_gate = at::empty_like(x), grad_up = at::empty_like(y);
  $name::launch(kernels().get("swiglu_backward" + suffix(x)), {g, x, y, grad_gate, grad_up}, x.numel());
  return {grad_gate, grad_up};
}

}  // namespace

TORCH_LIBRARY_IMPL($name, MPS, m) {
  m.impl("swiglu", &swiglu);
  m.impl("swiglu_backward", &swiglu_backward);
}
