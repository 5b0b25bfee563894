// The operators of $name: their schemas, and what they do on the CPU.
#include <Python.h>

#include <ATen/core/Tensor.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <torch/library.h>

#include <tuple>

namespace {

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  TORCH_CHECK(gate.sizes() == up.sizes(), "swiglu: gate has shape ", gate.sizes(), " and up has shape ", up.sizes());
  TORCH_CHECK(gate.scalar_type() == up.scalar_type(), "swiglu: gate is ", gate.scalar_type(), " and up is ",
              up.scalar_type());
  return at::mul(at::silu(gate), up);
}

std::tuple<at::Tensor, at::Tensor> swiglu_backward(const at::Tensor& grad, const at::Tensor& gate,
                                                   const at::Tensor& up) {
  return {at::silu_backward(at::mul(grad, up), gate), at::mul(grad, at::silu(gate))};
}

}  // namespace

TORCH_LIBRARY($name, m) {
  m.def("swiglu(Tensor gate, Tensor up) -> Tensor");
  m.def("swiglu_backward(Tensor grad, Tensor gate, Tensor up) -> (Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL($name, CPU, m) {
  m.impl("swiglu", &swiglu);
  m.impl("swiglu_backward", &swiglu_backward);
}

// Importing $name._C is what loads this library, and that registers the operators; the module itself is empty.
PyMODINIT_FUNC PyInit__C() {
  static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};
  return PyModule_Create(&module);
}
