"""Checks that host code lost: each call that the CPU refuses is refused."""

from __future__ import annotations

import pytest

from porter.core.checkout import EMBEDDED_FORK
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.verdict.result import NO_TEST, VerifyTarget
from tests.porter.verdict.test_planted_faults import reasons
from tests.porter.verdict.written_ports import Port

HOST_FILE = f"{OPERATIONS}/Checked.mm"
ROWS = """
- func: reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor
  dispatch:
    CPU: reflection_pad1d
    MPS: reflection_pad1d_mps

- func: glu(Tensor self, int dim=-1) -> Tensor
  dispatch:
    CPU: glu
    MPS: glu_mps

- func: channel_shuffle(Tensor self, SymInt groups) -> Tensor
  dispatch:
    CPU: channel_shuffle
    MPS: channel_shuffle_mps
"""
HOST = """\
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/core/Tensor.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/channel_shuffle_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/glu_native.h>
#include <ATen/ops/reflection_pad1d_native.h>

namespace at::native {

Tensor reflection_pad1d_mps(const Tensor& self, IntArrayRef padding) {
  TORCH_CHECK(padding.size() == 2, "two numbers");
  TORCH_CHECK(self.dim() == 2 || self.dim() == 3, "two or three dimensions");
  for (int64_t at = self.dim() - 2; at < self.dim(); at++) {
    TORCH_CHECK(self.size(at) != 0, "no elements");
  }
  const int64_t size = self.size(-1);
  TORCH_CHECK(padding[0] < size, "too much on the left");
  TORCH_CHECK(padding[1] < size, "too much on the right");
  TORCH_CHECK(size + padding[0] + padding[1] >= 1, "too small");
  auto sizes = self.sizes().vec();
  sizes.back() += padding[0] + padding[1];
  return at::empty(sizes, self.options());
}

Tensor glu_mps(const Tensor& self, int64_t dim) {
  TORCH_CHECK(self.dim() > 0, "a dimension");
  const auto wrapped = maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK(self.size(wrapped) % 2 == 0, "two halves");
  auto sizes = self.sizes().vec();
  sizes[wrapped] /= 2;
  return at::empty(sizes, self.options());
}

Tensor channel_shuffle_mps(const Tensor& self, int64_t groups) {
  TORCH_CHECK(self.dim() > 2, "more than two dimensions");
  TORCH_CHECK(groups > 0, "groups");
  TORCH_CHECK(self.size(1) % groups == 0, "channels in groups");
  return at::empty(self.sizes(), self.options());
}

} // namespace at::native
"""


def write_port(base: str) -> Port:
    """An operator new to the fork that computes nothing: the same files for all."""
    rows = (EMBEDDED_FORK / NATIVE_FUNCTIONS).read_text()
    return Port(VerifyTarget(base, kernels=(base,)), {NATIVE_FUNCTIONS: rows + ROWS, HOST_FILE: HOST})


@pytest.mark.parametrize("base", ["reflection_pad1d", "glu", "channel_shuffle"])
def test_host_code_with_all_checks_passes(base: str) -> None:
    verdict = write_port(base).verdict("test_refused_arguments")
    # What is refused calls no kernel, which a verdict of this test alone says.
    assert {failure.test for failure in verdict.failures} <= {NO_TEST}
    assert verdict.passed > 0


def test_checks_that_are_lost() -> None:
    lost = [
        'TORCH_CHECK(padding[1] < size, "too much on the right");',
        'TORCH_CHECK(self.size(wrapped) % 2 == 0, "two halves");',
        'TORCH_CHECK(self.size(1) % groups == 0, "channels in groups");',
    ]
    text = HOST
    for check in lost:
        assert check in text
        text = text.replace(check, "")
    told = {}
    for base in ("reflection_pad1d", "glu", "channel_shuffle"):
        port = write_port(base)
        wrong = Port(port.target, {**port.texts, HOST_FILE: text})
        told[base] = reasons(wrong.verdict("test_refused_arguments"))
    assert "mps accepts it, but the CPU refuses the call with" in told["reflection_pad1d"]
    assert "Padding size should be less than" in told["reflection_pad1d"]
    assert "Halving dimension must be even" in told["glu"]
    assert "Number of channels must be divisible by groups" in told["channel_shuffle"]
