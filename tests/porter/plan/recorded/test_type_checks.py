"""The types of tensors that host code checks before kernels read or write there, and of those that it converts."""

from dataclasses import replace
from pathlib import Path

import pytest

from porter.core.dtypes import INT, LONG, DType
from porter.core.layout import NATIVE, NATIVE_FUNCTIONS, OPERATIONS, OPINFOS
from porter.loops.host_values import TensorValue
from porter.loops.program import Programs
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork, left_out

ROW = """
- func: largest(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor
  structured_delegate: largest.out
"""
META = """
TORCH_META_FUNC(largest)(const Tensor& self, OptionalIntArrayRef dim, bool keepdim) {
  auto type = TYPE;
  resize_reduction(*this, self, dim, keepdim, type);
}
"""


@pytest.mark.parametrize(
    ("given", "is_checked"),
    [("get_result_or_self_value_dtype(self, maybe_get_output(), std::nullopt)", True), ("self.scalar_type()", False)],
)
def test_a_result_of_any_type_is_checked(tmp_path: Path, given: str, is_checked: bool) -> None:
    checkout = fork.copy_fork(tmp_path)
    table = checkout.root / NATIVE_FUNCTIONS
    table.write_text(table.read_text() + ROW)
    (checkout.root / NATIVE / "Largest.cpp").write_text(META.replace("TYPE", given))
    made = " ".join(plan_operator(checkout, "largest", programs=lambda served: fork.largest()).changes.diff().split())
    assert ("TORCH_CHECK(out.scalar_type() == self.scalar_type()," in made) is is_checked


@pytest.mark.parametrize("others", [(), (INT,)])
def test_other_integers_are_converted_where_the_old_code_took_them(tmp_path: Path, others: tuple[DType, ...]) -> None:
    made = " ".join(diff(tmp_path, others).split())
    if others:
        given = "weight_opt->scalar_type() =="
        assert f"!has_weight || ({given} ScalarType::Long || {given} ScalarType::Int)" in made
        assert (
            "const auto weight_contiguous = has_weight ? weight_opt->to(kLong).contiguous() : self_contiguous;" in made
        )
    else:
        assert "!has_weight || weight_contiguous.scalar_type() == ScalarType::Long," in made and "kLong" not in made


def diff(folder: Path, others: tuple[DType, ...]) -> str:
    """The diff of a port whose weights are 64-bit integers in all calls."""
    cases = []
    for case in left_out.centered().cases:
        weights = {"weight": TensorValue((6,), LONG)}
        given = [replace(each, tensors={**each.tensors, **weights}) for each in case.calls if "weight" in each.tensors]
        calls = (*given, *(each for each in case.calls if "weight" not in each.tensors))
        cases.append(replace(case, calls=calls, conversions={"weight": others} if others else {}))
    programs = Programs(left_out.NAME, tuple(cases))
    return plan_operator(left_out.copy_fork(folder), left_out.NAME, programs=lambda served: programs).changes.diff()


@pytest.mark.parametrize(
    ("dtypes", "check", "is_refused"),
    [
        ("floating_and_complex_types()", "", True),
        ("floating_types()", "", False),
        ("floating_and_complex_types()", 'TORCH_CHECK(!self.is_complex(), "not complex");', False),
    ],
)
def test_complex_elements_that_the_cpu_takes_are_refused(
    tmp_path: Path, dtypes: str, check: str, is_refused: bool
) -> None:
    """Without a check, a launch looks for a kernel that does not exist."""
    checkout = left_out.copy_fork(tmp_path)
    with (checkout.root / OPINFOS).open("a") as file:
        file.write(f'more = [\n    OpInfo("{left_out.NAME}", dtypes={dtypes}),\n]\n')
    host = checkout.root / OPERATIONS / "Centered.mm"
    host.write_text(host.read_text().replace("  const bool has_weight", f"  {check}\n  const bool has_weight"))
    made = " ".join(left_out.port(checkout).diff().replace("\n+", " ").split())
    refused = 'TORCH_CHECK_NOT_IMPLEMENTED(!self.is_complex(), "centered: complex dtypes are not supported");'
    assert (refused in made) is is_refused
