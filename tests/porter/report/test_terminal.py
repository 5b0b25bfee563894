"""The summary of a plan."""

from __future__ import annotations

from dataclasses import replace

from expecttest import assert_expected_inline

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.plan.planner import plan_operator
from porter.report.terminal import summary
from porter.report.verdict import summary as verdict_line
from porter.verdict.result import DTypeVerdict, Verdict


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


def test_a_large_error_stands_beside_the_error_of_the_cpu() -> None:
    rows = (DTypeVerdict("float32", 5, max_ulp=6.7e8, cpu_ulp=6.6e8), DTypeVerdict("float16", 5, max_ulp=0.5))
    verdict = Verdict("airy", "host", "default", 10, 0, 0, 9, 6.7e8, 1.0, dtypes=rows)
    assert "at most 670000000.00 ULP in float32, where the CPU's kernel has 660000000.00 (backend" in verdict_line(
        verdict
    )
    small = replace(verdict, max_ulp=2.5, dtypes=(replace(rows[0], max_ulp=2.5, cpu_ulp=0.5),))
    assert "at most 2.50 ULP (backend" in verdict_line(small)
