// The operators of $name. Their CPU implementations are in Python: $name/ops.py.
#include <Python.h>

#include <torch/library.h>

#include "kernels.h"

TORCH_LIBRARY($name, m) {
  for (const auto& kernel : $name::sources()) {
    m.def((kernel.name + "(Tensor[] inputs, SymInt[] grid, SymInt[] threadgroup, SymInt[] output_sizes, "
           "int[] output_ranks, str[] output_types, str[] definitions, float? init_value) -> Tensor[]").c_str());
  }
}

// Importing $name._C is what loads this library, and that registers the operators; the module itself is empty.
PyMODINIT_FUNC PyInit__C() {
  static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};
  return PyModule_Create(&module);
}
