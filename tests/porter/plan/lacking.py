"""A copy of the embedded fork with operators that MPS lacks, in ATen's idioms."""

from __future__ import annotations

import shutil
from pathlib import Path

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.layout import COMMON_MPS, CPU_KERNELS, NATIVE, NATIVE_FUNCTIONS

ROWS = """
- func: heaviside(Tensor self, Tensor values) -> Tensor
  structured_delegate: heaviside.out

- func: heaviside_(Tensor(a!) self, Tensor values) -> Tensor(a!)
  structured_delegate: heaviside.out

- func: heaviside.out(Tensor self, Tensor values, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  structured_inherits: TensorIteratorBase
  dispatch:
    CPU, CUDA: heaviside_out
  tags: pointwise

- func: wave(Tensor self) -> Tensor
  structured_delegate: wave.out

- func: wave.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  structured_inherits: TensorIteratorBase
  dispatch:
    CPU, CUDA: wave_out

- func: ripple(Tensor self) -> Tensor
  structured_delegate: ripple.out

- func: ripple.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  structured_inherits: TensorIteratorBase
  dispatch:
    CPU, CUDA: ripple_out

- func: most_common(Tensor self, int dim=-1) -> Tensor
  dispatch:
    CPU, CUDA: most_common

- func: distances(Tensor self) -> Tensor

- func: folded(Tensor self) -> Tensor

- func: cuda_only(Tensor self) -> Tensor
  dispatch:
    CUDA: cuda_only
"""
HEADER = """#pragma once
#include <ATen/native/DispatchStub.h>
namespace at::native {
using steps_fn = void (*)(TensorIteratorBase&);
DECLARE_DISPATCH(steps_fn, wave_stub)
DECLARE_DISPATCH(steps_fn, ripple_stub)
} // namespace at::native
"""
DECLARED = "DECLARE_DISPATCH(structured_binary_fn, heaviside_stub)\n"  # where the installed torch declares it too
SHARED = """#include <ATen/native/Steps.h>
namespace at::meta {
TORCH_META_FUNC(heaviside)(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(!self.is_complex() && !other.is_complex(), "heaviside is not yet implemented for complex tensors.");
  build_binary_op(maybe_get_output(), self, other);
}
TORCH_META_FUNC(wave)(const Tensor& self) {
  build_borrowing_unary_float_op(maybe_get_output(), self);
}
TORCH_META_FUNC(ripple)(const Tensor& self) {
  build_borrowing_unary_float_op(maybe_get_output(), self);
}
} // namespace at::meta
namespace at::native {
DEFINE_DISPATCH(heaviside_stub);
DEFINE_DISPATCH(wave_stub);
DEFINE_DISPATCH(ripple_stub);
TORCH_IMPL_FUNC(heaviside_out)(const Tensor& self, const Tensor& other, const Tensor& result) {
  heaviside_stub(device_type(), *this);
}
TORCH_IMPL_FUNC(wave_out)(const Tensor& self, const Tensor& result) {
  wave_stub(device_type(), *this);
}
TORCH_IMPL_FUNC(ripple_out)(const Tensor& self, const Tensor& result) {
  ripple_stub(device_type(), *this);
}
Tensor most_common(const Tensor& self, int64_t dim) {
  return at::empty({0}, self.options());
}
Tensor distances(const Tensor& self) {
  return at::most_common(self.contiguous(), 0);
}
Tensor folded(const Tensor& self) {
  return self.reshape({-1});
}
} // namespace at::native
"""
KERNELS = """#include <ATen/native/Steps.h>
#include <ATen/native/cpu/Loops.h>
namespace at::native {
namespace {
template <typename T>
inline T polynomial(const T x, const T A[], size_t len) {
  T result = 0;
  for (size_t i = 0; i <= len; i++) {
    result = result * x + A[i];
  }
  return result;
}
template <typename T>
inline T wave_forward(T x, int64_t n) {
  static const T A[3] = {
      0.5,
      -1.25E0,
      2.0,
  };
  T p = T(1.0);
  for (int64_t k = 1; k <= n; ++k) {
    p = p + x * T{0.25};
  }
  return p * polynomial(x, A, 2);
}
template <typename T>
inline T wave_forward(T x, T n) {
  return wave_forward(x, static_cast<int64_t>(n));
}
void heaviside_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_ALL_TYPES_AND3(kHalf, kBool, kBFloat16, iter.dtype(), "heaviside_cpu", [&]() {
    cpu_kernel(iter, [](scalar_t a, scalar_t b) -> scalar_t {
      return a == 0 ? b : static_cast<scalar_t>(a > 0);
    });
  });
}
void wave_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES(iter.common_dtype(), "wave_cpu", [&]() {
    cpu_kernel(iter, [](scalar_t x) { return wave_forward(x, scalar_t{3}); });
  });
}
void ripple_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES(iter.common_dtype(), "ripple_cpu", [&]() {
    cpu_kernel(iter, [](scalar_t x) { return wave_forward(x, scalar_t{2}); });
  });
}
} // namespace
REGISTER_DISPATCH(heaviside_stub, &heaviside_kernel)
REGISTER_DISPATCH(wave_stub, &wave_kernel)
REGISTER_DISPATCH(ripple_stub, &ripple_kernel)
} // namespace at::native
"""


def make_fork(folder: Path) -> Checkout:
    """A fork that lacks kernels for `heaviside`, which the installed torch has too, and for made-up operators."""
    shutil.copytree(EMBEDDED_FORK, folder)
    for path, text in (
        (f"{NATIVE}/Steps.h", HEADER),
        (f"{NATIVE}/Steps.cpp", SHARED),
        (f"{CPU_KERNELS}/StepsKernel.cpp", KERNELS),
    ):
        (folder / path).write_text(text)
    header = folder / NATIVE / "BinaryOps.h"
    first = header.read_text().index("DECLARE_DISPATCH")
    header.write_text(header.read_text()[:first] + DECLARED + header.read_text()[first:])
    yaml = folder / NATIVE_FUNCTIONS
    yaml.write_text(yaml.read_text() + ROWS)
    return Checkout(folder, "test")


def expect_failure(fork: Checkout, name: str) -> None:
    """Puts an operator in the list of expected failures."""
    tests = fork.root / COMMON_MPS
    text = tests.read_text()
    opening = "UNIMPLEMENTED_XFAILLIST = {\n"
    assert opening in text
    tests.write_text(text.replace(opening, f'{opening}            "{name}": None,\n', 1))
