"""Halves beside a scalar of more digits, which ATen's CPU computes with as it is given."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.layout import CPU_KERNELS
from porter.plan.planner import plan_operator

BRANCH = """void hypot_kernel(TensorIteratorBase& iter) {
  const auto dtype = iter.dtype();
  if (iter.is_scalar(2) && iter.data_ptr(2) != nullptr && at::isReducedFloatingType(dtype)) {
    AT_DISPATCH_REDUCED_FLOATING_TYPES(dtype, "hypot_cpu_reduced_float", [&]() {
      using opmath_t = at::opmath_type<scalar_t>;
      opmath_t b = iter.original_scalar_value<opmath_t>(2);
      iter.remove_operand(2);
      cpu_kernel(iter, [=](scalar_t a) -> scalar_t { return std::hypot(static_cast<opmath_t>(a), b); });
    });
    return;
  }
"""


@pytest.mark.parametrize(("keeps", "macro"), [(False, "FLOAT"), (True, "OPMATH_FLOAT")])
def test_a_scalar_that_the_cpu_keeps_is_not_rounded_to_half(tmp_path: Path, keeps: bool, macro: str) -> None:
    shutil.copytree(EMBEDDED_FORK, tmp_path, dirs_exist_ok=True)
    file = tmp_path / CPU_KERNELS / "BinaryOpsKernel.cpp"
    if keeps:
        file.write_text(file.read_text().replace("void hypot_kernel(TensorIteratorBase& iter) {\n", BRANCH))
    diff = plan_operator(Checkout(tmp_path, "test"), "hypot").changes.diff()
    assert f"+REGISTER_{macro}_BINARY_OP(hypot);" in diff
