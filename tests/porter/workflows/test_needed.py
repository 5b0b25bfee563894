"""What is ported before an operator whose shared code only calls others."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from porter.aten.operator import Operator, find_called_operators
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.plan.plan import Draft, Plan
from porter.plan.planner import plan_operator
from porter.report.results import FAIL, NOT_PLANNED, PASS, OperatorResult
from porter.verdict.verify import find_target
from porter.workflows.coverage import find_coverage, find_needed
from porter.workflows.migrate import NotPlanned, PortedOperator, Request, migrate
from porter.workflows.results import collect, no_results
from tests.porter.plan.recorded.fork import copy_fork
from tests.porter.plan.recorded.test_leading_rows import HOST as LEADING
from tests.porter.plan.recorded.test_leading_rows import ROWS as LEADING_ROWS

ROWS = """
- func: halved(Tensor self) -> Tensor
  dispatch:
    CPU, CUDA: halved
    MPS: halved_mps
"""
SHARED = """
namespace at::native {
Tensor halved(const Tensor& self) {
  return at::atan2(self, self);
}
} // namespace at::native
"""
HOST = """#include <ATen/native/mps/OperationUtils.h>
namespace at::native {
Tensor halved_mps(const Tensor& self) {
  using namespace mps;
  Tensor output = at::empty_like(self);
  @autoreleasepool {
    auto cachedGraph = LookUpOrCreateCachedGraph<MPSUnaryCachedGraph>(key, makeGraph);
    runMPSGraph(getCurrentMPSStream(), cachedGraph->graph(), feeds, output);
  }
  return output;
}
} // namespace at::native
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    root = tmp_path / "fork"
    shutil.copytree(EMBEDDED_FORK, root)
    with (root / NATIVE_FUNCTIONS).open("a") as file:
        file.write(ROWS)
    (root / "aten/src/ATen/native/Halved.cpp").write_text(SHARED)
    (root / OPERATIONS / "Halved.mm").write_text(HOST)
    return Checkout(root, "made up")


def test_what_shared_code_calls_is_ported_first(checkout: Checkout) -> None:
    assert find_called_operators(checkout, Operator.read(checkout, "halved")) == ("atan2",)
    assert find_needed(checkout, "halved") == ("atan2",)


def test_an_operator_with_a_stub_needs_no_other(checkout: Checkout) -> None:
    assert find_needed(checkout, "atan2") == () == find_needed(checkout, "nothing of that name")


def test_what_is_needed_is_ported_but_is_no_result(checkout: Checkout) -> None:
    found = [each for each in migrate(checkout, Request(("halved",))) if isinstance(each, PortedOperator)]
    assert [(each.plan.op, each.needed) for each in found] == [("atan2", True), ("halved", False)]
    assert [each.op for each in collect(checkout, found, None).operators] == ["halved"]


def test_what_calls_an_operator_without_a_plan_has_none_and_ends_no_others(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan(fork: Checkout, op: str, **options: Any) -> Plan:
        if op == "atan2":
            raise PorterError("PTR050", "its graph is too odd")
        return plan_operator(fork, op, **options)

    monkeypatch.setattr("porter.workflows.migrate.plan_operator", plan)
    lacking, ported = migrate(checkout, Request(("halved", "erf")))
    assert isinstance(lacking, NotPlanned) and (lacking.op, lacking.error.code) == ("halved", "PTR050")
    assert lacking.error.what == "halved calls atan2, which has no plan: its graph is too odd"
    assert isinstance(ported, PortedOperator) and ported.plan.op == "erf"
    with pytest.raises(PorterError, match="its graph is too odd"):
        list(migrate(checkout, Request(("halved",))))


def test_a_verdict_runs_what_shared_code_calls(checkout: Checkout) -> None:
    draft = Draft(checkout)
    for op in ("atan2", "halved"):
        plan = plan_operator(draft.fork, op)
        draft = draft.follow(plan.changes)
    target = find_target(plan, "halved", draft.fork)
    assert target.through == ("atan2",) and target.kernels == ("atan2",)
    assert target.old().through == ("atan2",) and not target.old().kernels


def test_no_verdict_where_what_is_called_builds_graphs(checkout: Checkout) -> None:
    plan = plan_operator(checkout, "halved")
    with pytest.raises(PorterError, match="no row of atan2 runs Metal kernels") as raised:
        find_target(plan, "halved", Draft(checkout).follow(plan.changes).fork)
    assert raised.value.code == "PTR019"


def test_what_came_with_what_it_calls_is_covered_if_that_passed(checkout: Checkout) -> None:
    for outcome, wanted in ((PASS, PASS), (FAIL, NOT_PLANNED)):
        called, left = OperatorResult("atan2", "", outcome), OperatorResult("halved", "", NOT_PLANNED, "PTR013", "no")
        found = find_coverage(checkout, replace(no_results(checkout), operators=(called, left)))
        assert next(row.outcome for row in (*found.rows, *found.others) if row.name == "halved") == wanted


def test_a_row_that_came_with_one_whose_function_it_calls_is_covered_if_that_passed(tmp_path: Path) -> None:
    copy = copy_fork(tmp_path)
    with (copy.root / NATIVE_FUNCTIONS).open("a") as file:
        file.write(LEADING_ROWS)
    (copy.root / OPERATIONS / "Leading.mm").write_text(LEADING)
    for outcome, wanted in ((PASS, PASS), (FAIL, NOT_PLANNED)):
        lead, left = (
            OperatorResult("leading", "", outcome),
            OperatorResult("following", "", NOT_PLANNED, "PTR013", "no"),
        )
        found = find_coverage(copy, replace(no_results(copy), operators=(lead, left)))
        assert next(row.outcome for row in found.others if row.name == "following") == wanted
