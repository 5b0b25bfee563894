"""Statements that all branches have are written once."""

from __future__ import annotations

from porter.plan.native.hoisting import Hoisted, hoist

LAUNCH = ("launch(^() {", "run();", "});")
COPY_A = ("if (!a_.is_same(a)) {", "a.copy_(a_);", "}")
COPY_B = ("if (!b_.is_same(b)) {", "b.copy_(b_);", "}")
MADE_A, MADE_B = "const auto a_ = a.contiguous();", "const auto b_ = b.contiguous();"


def test_the_order_of_statements_does_not_matter() -> None:
    found = hoist([(MADE_A, MADE_B, *LAUNCH, *COPY_A, *COPY_B), (MADE_B, MADE_A, *LAUNCH, *COPY_B, *COPY_A)])
    assert found == Hoisted((MADE_A, MADE_B), (LAUNCH, LAUNCH), (*COPY_A, *COPY_B))


def test_a_launch_stays_before_what_copies_its_results() -> None:
    found = hoist([(MADE_A, MADE_B, *LAUNCH, *COPY_A, *COPY_B), (MADE_A, *LAUNCH, *COPY_A)])
    assert found == Hoisted((MADE_A,), ((MADE_B, *LAUNCH, *COPY_B), LAUNCH), COPY_A)


def test_what_uses_a_variable_of_one_branch_stays_there() -> None:
    size, rows = "const int64_t size = a.size(SIZE);", "const auto rows = share_rows(size);"
    one, other = size.replace("SIZE", "0"), size.replace("SIZE", "1")
    found = hoist([(one, rows, *LAUNCH), (other, rows, *LAUNCH)])
    assert found == Hoisted((), ((one, rows, *LAUNCH), (other, rows, *LAUNCH)), ())


def test_what_copies_a_result_that_branches_make_otherwise_stays_there() -> None:
    other = MADE_A.replace("contiguous", "clone")
    found = hoist([(MADE_A, *LAUNCH, *COPY_A), (other, *LAUNCH, *COPY_A)])
    assert found == Hoisted((), ((MADE_A, *LAUNCH, *COPY_A), (other, *LAUNCH, *COPY_A)), ())


def test_nothing_moves_before_a_block_that_may_return() -> None:
    returns = ("if (a.numel() == 0) {", "return;", "}")
    found = hoist([(*returns, MADE_A, *LAUNCH), (MADE_A, *LAUNCH)])
    assert not found.before
