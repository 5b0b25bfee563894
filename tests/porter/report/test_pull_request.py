"""The text of a pull request says what moves, what changes for users, and on what evidence."""

from __future__ import annotations

from expecttest import assert_expected_inline

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.plan.planner import plan_operator
from porter.report.verdict import pull_request
from porter.verdict.behavior import Behavior, PathCount
from porter.verdict.result import DTypeVerdict, Verdict

PLAN = plan_operator(Checkout(EMBEDDED_FORK, "embedded"), "atan2")
VERDICT = Verdict(
    "atan2", "host", "default", 14, 0, 0, 178, 0.5, 3.2,
    dtypes=(DTypeVerdict("float32", 8, 0, 0, 96, 0.5, 0.79), DTypeVerdict("int64", 6, 0, 0, 82)),
    old_path=Behavior(
        (PathCount("float32", 10, 10, 10), PathCount("int64", 10, 0, 10)), ("int64: now supported",)
    ),
)  # fmt: skip


def test_verified() -> None:
    assert_expected_inline(
        pull_request(PLAN, VERDICT),
        """\
[MPS] Migrate atan2 to Metal

Moves `atan2.out` from MPSGraph to a Metal kernel behind `atan2_stub`.

- `atan2_functor` in `aten/src/ATen/native/mps/kernels/BinaryKernel.metal`, from Metal's own function, which the old graph names
- `UNIMPLEMENTED_XFAILLIST`: `atan2` removed

### User-facing changes

- int64: now supported

### Test plan

atan2: PASS: 14 passed, 0 failed, 0 skipped, 178 kernel calls, at most 0.50 ULP (backend host, default arithmetic, 3.2 s)

| dtype | tests passed | kernel calls | max ULP | CPU max ULP | samples matching CPU: before | after |
| --- | --- | --- | --- | --- | --- | --- |
| float32 | 8/8 | 96 | 0.50 | 0.79 | 10/10 | 10/10 |
| int64 | 6/6 | 82 |  |  | 0/10 | 10/10 |""",
    )


def test_not_verified() -> None:
    assert pull_request(PLAN, None).endswith("\nNot verified.")


def test_nothing_changes() -> None:
    same = Verdict("atan2", "host", "default", 1, 0, 0, 1, None, 1.0, old_path=Behavior((), ()))
    assert "- none in the OpInfo samples" in pull_request(PLAN, same)
