"""Rows that copy a number to the device: the shared function makes a double of it, which MPS lacks."""

from __future__ import annotations

import pytest

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.layout import NATIVE, NATIVE_FUNCTIONS, OPERATIONS
from porter.plan.planner import plan_operator

ROWS = """
- func: hypot.Scalar_out(Scalar self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU, CUDA: hypot_scalar_out
    MPS: hypot_scalar_out_mps
"""
SHARED = """\
TORCH_IMPL_FUNC(hypot_scalar_out)(const Scalar& self, const Tensor& other, const Tensor& out) {
  at::hypot_out(const_cast<Tensor&>(out), WRAPPED, other);
}
"""
MPS = """\
TORCH_IMPL_FUNC(hypot_scalar_out_mps)(const Scalar& self, const Tensor& other, const Tensor& out) {
  at::hypot_out(const_cast<Tensor&>(out), mps::wrapped_scalar_tensor_mps(self, other.device()), other);
}
"""


@pytest.mark.parametrize(
    ("wrapped", "moves"),
    [
        ("wrapped_scalar_tensor(self, other.device())", False),
        ("c10::scalar_to_tensor(self, other.device())", False),
        ("wrapped_scalar_tensor(self)", True),
    ],
)
@pytest.mark.parametrize("forwards", [True, False])
def test_a_row_moves_unless_the_number_would_be_a_double_there(wrapped: str, moves: bool, forwards: bool) -> None:
    fork = Checkout(EMBEDDED_FORK, "test")
    rows = ROWS if forwards else ROWS.replace("    MPS: hypot_scalar_out_mps\n", "")
    texts = {
        NATIVE_FUNCTIONS: fork.read(NATIVE_FUNCTIONS) + rows,
        f"{NATIVE}/Scalars.cpp": SHARED.replace("WRAPPED", wrapped),
        f"{OPERATIONS}/Scalars.mm": MPS if forwards else "",
    }
    plan = plan_operator(fork.layer(texts), "hypot")
    assert plan.complete
    assert [each.name for each in plan.entries] == ["hypot.out", *(["hypot.Scalar_out"] if moves else [])]
