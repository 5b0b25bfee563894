"""The summary of a plan."""

from __future__ import annotations

from expecttest import assert_expected_inline

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.plan.planner import plan_operator
from porter.report.terminal import summary


def test_what_the_port_takes_away_comes_first() -> None:
    plan = plan_operator(Checkout(EMBEDDED_FORK, "embedded"), "atan2")
    lost = ("int64: no longer supported, nor is it on the CPU",)
    assert_expected_inline(
        "\n".join(summary(plan, lost=lost).splitlines()[:3]),
        """\
atan2
  decide   int64: no longer supported, nor is it on the CPU
  moved    atan2.out: MPS: atan2_out_mps -> CPU, CUDA, MPS: atan2_out""",
    )
    assert "no longer supported" not in summary(plan)
