"""The summary of a plan."""

from __future__ import annotations

from dataclasses import replace

import pytest
from expecttest import assert_expected_inline

from porter.aten.metal_functions import LIBRARY
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.dtypes import Kind
from porter.core.errors import PorterError
from porter.metal.functor import Provenance
from porter.plan.plan import RejectedCandidate
from porter.plan.planner import plan_operator
from porter.report.pull_request import pull_request
from porter.report.terminal import summary
from porter.report.verdict import summary as verdict_line
from porter.verdict.result import DTypeVerdict, Verdict


def test_what_the_port_takes_away_comes_first() -> None:
    plan = plan_operator(Checkout(EMBEDDED_FORK, "embedded"), "atan2")
    lost = ("int64: no longer supported, nor is it on the CPU",)
    assert_expected_inline(
        "\n".join(summary(plan, lost=lost).splitlines()[:4]),
        """\
atan2
  decide   int64: no longer supported, nor is it on the CPU
           `--keep-dtypes` registers such integers too, computed in float
  moved    atan2.out: MPS: atan2_out_mps -> CPU, CUDA, MPS: atan2_out""",
    )
    assert "no longer supported" not in summary(plan)
    assert "--keep-dtypes" not in summary(plan, lost=("complex64: no longer supported, nor is it on the CPU",))


def test_a_port_can_keep_what_it_would_take_away() -> None:
    """Integers are computed as floats are; of others the summary says why they cannot be kept."""
    fork = Checkout(EMBEDDED_FORK, "embedded")
    plans = plan_operator(fork, "hypot"), plan_operator(fork, "hypot", keeps=True)
    types = [{r.input for r in plan.registrations} for plan in plans]
    assert types[1] - types[0] == {"long", "int", "short", "char", "uchar"}
    assert_expected_inline(
        "\n".join(summary(plans[1]).splitlines()[-2:]),
        """\
  decide   hypot: int64, int32, int16, uint8, int8 are kept, computed in float, which has 24 bits: no test compares them, as the CPU lacks them
           hypot: complex64, complex32 cannot be kept: no source defines the functor for them""",
    )
    with pytest.raises(PorterError, match="PTR434 the port of rsqrt drops no integers that the old graph takes"):
        plan_operator(fork, "rsqrt", keeps=True)


def test_a_wrong_function_of_the_library_may_be_mended() -> None:
    plan = plan_operator(Checkout(EMBEDDED_FORK, "embedded"), "hypot")
    source = Provenance("c10::metal::hypot of c10/metal/utils.h", LIBRARY)
    loser = RejectedCandidate("hypot", (Kind.FLOATING,), source, 3, "511.8 ULP")
    offer = "c10::metal::hypot of c10/metal/utils.h gives wrong values: mend it there, and hypot can call it"
    assert offer in summary(plan, [loser])
    assert "can mend it there, so that `hypot` calls it" in pull_request(plan, None, [loser])
    assert "mend it there" not in summary(plan, [replace(loser, source=Provenance("the old graph, translated"))])


def test_a_large_error_stands_beside_the_error_of_the_cpu() -> None:
    rows = (DTypeVerdict("float32", 5, max_ulp=6.7e8, cpu_ulp=6.6e8), DTypeVerdict("float16", 5, max_ulp=0.5))
    verdict = Verdict("airy", "host", "default", 10, 0, 0, 9, 6.7e8, 1.0, dtypes=rows)
    assert "at most 670000000.00 ULP in float32, where the CPU's kernel has 660000000.00 (backend" in verdict_line(
        verdict
    )
    small = replace(verdict, max_ulp=2.5, dtypes=(replace(rows[0], max_ulp=2.5, cpu_ulp=0.5),))
    assert "at most 2.50 ULP (backend" in verdict_line(small)
