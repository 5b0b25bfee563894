"""Native operators are judged as the fork has them: by its own host code, which may answer a sample without a kernel."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import NATIVE, NATIVE_FUNCTIONS, OPERATIONS
from porter.verdict.native import native_target
from porter.verdict.result import VerifyTarget
from porter.verdict.suite import lists
from porter.verdict.suite.context import Context, aten_names
from porter.verdict.verify import verify

MATCH = "test_output_match and float32"


def test_some_test_must_reach_a_kernel() -> None:
    target = VerifyTarget("copysign", kernels=("nextafter",), stubs=("copysign_stub",), as_is=True)
    found = verify(EMBEDDED_FORK, {}, target, MATCH)
    assert found.passed > 0 and not found.ok
    assert [failure.reason for failure in found.failures] == ["no test reached its kernels (nextafter)"]


def test_a_selection_without_a_test_is_refused_with_its_code() -> None:
    target = native_target(Checkout(EMBEDDED_FORK, "test"), "exp")
    for expr, said in (("nosuch", "no test of exp is selected by -k nosuch"), ("a b", "is not an expression")):
        with pytest.raises(PorterError, match="PTR430") as caught:
            verify(EMBEDDED_FORK, {}, target, expr)
        assert said in caught.value.what


ROW = """
- func: own.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU: own_out_cpu
    MPS: own_out_mps
"""
OWN = """TORCH_IMPL_FUNC(own_out_mps)(const Tensor& self, const Tensor& out) {
  exp_stub(device_type(), *this);
}
"""


def test_the_target_of_a_function_that_leaves_all_to_a_stub_has_its_kernel(tmp_path: Path) -> None:
    shutil.copytree(EMBEDDED_FORK, tmp_path / "fork")
    (tmp_path / "fork" / OPERATIONS / "Own.mm").write_text(OWN)
    with (tmp_path / "fork" / NATIVE_FUNCTIONS).open("a") as rows:
        rows.write(ROW)
    target = native_target(Checkout(tmp_path / "fork", "test"), "own")
    assert (target.kernels, target.stubs, target.rows) == (("exp",), ("exp_stub",), ("own.out",))


COPIES = """TORCH_IMPL_FUNC(own_out)(const Tensor& self, const Tensor& result) {
  if (c10::isIntegralType(self.scalar_type(), /*includeBool=*/false)) {
    result.copy_(self);
  } else {
    exp_stub(device_type(), *this);
  }
}
"""


def test_types_that_a_shared_function_copies_need_no_kernel(tmp_path: Path) -> None:
    """Upstream's round has integer kernels that ATen's function never asks for."""
    shutil.copytree(EMBEDDED_FORK, tmp_path / "fork")
    (tmp_path / "fork" / NATIVE / "Own.cpp").write_text(COPIES)
    with (tmp_path / "fork" / NATIVE_FUNCTIONS).open("a") as rows:
        rows.write(ROW.replace("    CPU: own_out_cpu\n    MPS: own_out_mps", "    CPU, MPS: own_out"))
    target = native_target(Checkout(tmp_path / "fork", "test"), "own")
    assert (target.kernels, target.registers) == (("exp",), False)
    assert set(target.elsewhere) == {"int64", "int32", "int16", "int8", "uint8"}


def test_the_target_of_a_forward_has_the_operator_of_its_gradient(tmp_path: Path) -> None:
    """The CPU's log_sigmoid_backward takes a buffer that MPS does not fill."""
    shutil.copytree(EMBEDDED_FORK, tmp_path / "fork")
    (tmp_path / "fork" / OPERATIONS / "Own.mm").write_text(OWN.replace("own", "own_forward"))
    with (tmp_path / "fork" / NATIVE_FUNCTIONS).open("a") as rows:
        rows.write(ROW.replace("own", "own_forward") + ROW.replace("own", "own_backward"))
    assert native_target(Checkout(tmp_path / "fork", "test"), "own_forward").through == ("own_backward",)


def test_native_host_code_may_not_fall_back() -> None:
    context = Context(bases=("atan2",), kernels=("atan2",), as_is=True)
    assert not context.demands("float32")
    assert context.fell_back(["aten::mul.out", "aten::atan2_"])
    assert not context.fell_back(["aten::mul.out", "aten::atan.out"])


def test_an_opinfo_is_found_under_the_names_of_modules() -> None:
    from types import SimpleNamespace

    found = aten_names(SimpleNamespace(name="nn.functional.rms_norm", aten_name="nn.functional.rms_norm"))  # type: ignore[arg-type]
    assert "rms_norm" in found
    found = aten_names(SimpleNamespace(name="special.zeta", aten_name="special.zeta"))  # type: ignore[arg-type]
    assert "special_zeta" in found and "zeta" not in found


def test_gradient_types_are_those_of_the_fork() -> None:
    assert lists.grad_dtypes("x = 1\nMPS_GRAD_DTYPES = [torch.float32, torch.float16]\n") == ("float32", "float16")
    assert lists.grad_dtypes("") == ("float32", "float16", "bfloat16")
