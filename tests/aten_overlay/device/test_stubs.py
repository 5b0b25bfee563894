"""libtorch's own host functions reach kernels that are registered for the device: the way of every port."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aten_overlay import memory, toolchain
from aten_overlay.device import libraries
from tests.conftest import Run

SOURCE = r"""
#define HAVE_AVX2_CPU_DEFINITION
#define HAVE_AVX512_CPU_DEFINITION
#include <ATen/core/Tensor.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/Fill.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/ops/fill_native.h>
#include <torch/library.h>
#include "memory/memory.h"

namespace at::native {
extern "C" { int calls = 0; }
static void fill_kernel(TensorIterator& iter, const Scalar& value) {
  ++calls;
  auto* out = static_cast<float*>(porter_host_address(iter.data_ptr(0)));
  std::fill(out, out + iter.numel(), value.to<float>());
}
#ifdef REGISTERED
REGISTER_MPS_DISPATCH(fill_stub, &fill_kernel)
#else
auto* unused = &fill_kernel;
#endif
TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("fill_.Scalar", static_cast<Tensor& (*)(Tensor&, const Scalar&)>(&fill_));
}
}
"""


@pytest.fixture
def run(tmp_path: Path, on_device: Run) -> Any:
    """Loads the source built with flags, then runs code that finds it as `library`."""
    source = tmp_path / "fill.cpp"
    source.write_text(SOURCE)

    def build_and_run(code: str, *flags: str) -> Any:
        library = toolchain.build(
            "fill",
            [source],
            (*toolchain.torch_flags(), f"-I{libraries.HERE.parent}", *flags),
            link=(*toolchain.torch_libraries(), *toolchain.link_with(memory.build_library()), "-lstdc++"),
        )
        return on_device(f"import ctypes, torch\nlibrary = ctypes.CDLL({str(library)!r})\n{code}")

    return build_and_run


def test_a_registered_kernel_is_called(run: Run) -> None:
    done = run(
        "x = torch.empty(5, device='mps').fill_(3)\n"
        "print(x.tolist(), ctypes.c_int.in_dll(library, 'calls').value, torch.ones(2).tolist())",
        "-DREGISTERED",
    )
    assert done.stdout == "[3.0, 3.0, 3.0, 3.0, 3.0] 1 [1.0, 1.0]\n", done.stderr


def test_a_missing_kernel_is_reported(run: Run) -> None:
    done = run("torch.empty(5, device='mps').fill_(3)")
    assert done.returncode == 1 and "DispatchStub: missing kernel for mps" in done.stderr, done.stderr
