"""A diff that says of each hunk why it is there, and still applies."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from expecttest import assert_expected_inline

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.plan.planner import plan_operator
from porter.report.terminal import explain_hunks

FORK = Checkout(EMBEDDED_FORK, "test")


def list_reasons(diff: str) -> str:
    lines = re.findall(r"^\+\+\+ b/.*/(.*)|^@@ .* @@ (.*)", diff, re.M)
    names = [name for name, _ in lines]
    for before, after in pairwise(range(len(names))):
        names[after] = names[after] or names[before]
    return "\n".join(f"{name}: {reason}" for name, (_, reason) in zip(names, lines, strict=True) if reason)


def test_each_hunk_has_a_reason() -> None:
    assert_expected_inline(
        list_reasons(explain_hunks(plan_operator(FORK, "hypot"))),
        """\
BinaryKernel.metal: hypot computes it, written from c10::metal::hypot of c10/metal/special_math.h
BinaryKernel.metal: registers hypot for float32, float16, bfloat16
BinaryKernel.mm: hypot_mps_kernel launches it for hypot_stub
BinaryOps.mm: nothing uses #include <ATen/ops/hypot_native.h> any more
BinaryOps.mm: nothing uses hypot_out_mps any more
native_functions.yaml: hypot.out: CPU, CUDA, MPS: hypot_out serves MPS now, not hypot_out_mps
common_methods_invocations.py: tests of hypot: what they expect on MPS is what the port does
common_mps.py: hypot leaves ON_MPS_XFAILLIST: float16: native now""",
    )


@pytest.mark.parametrize("op", ["hypot", "erf", "logaddexp"])
def test_the_diff_is_the_same_without_the_reasons(op: str) -> None:
    plan = plan_operator(FORK, op)
    explained = explain_hunks(plan)
    assert re.sub(r"^(@@ .* @@) .*", r"\1", explained, flags=re.M) == plan.changes.diff()
    assert all(line.count("@@ ") == 2 for line in explained.splitlines() if line.startswith("@@"))
