"""Each stage of an operator as `porter explain` tells it."""

from __future__ import annotations

from expecttest import assert_expected_inline

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.report.status import stage_text
from porter.workflows.explain import explain

FORK = Checkout(EMBEDDED_FORK, "embedded")


def test_a_stub_shared_by_two_rows_is_printed_once() -> None:
    stages = [stage for stage in explain(FORK, "eq", record=False) if stage.title in ("stub", "reference")]
    assert_expected_inline(
        "\n".join(map(stage_text, stages)),
        """\
stub
  eq_stub (aten/src/ATen/native/BinaryOps.h:41), called by eq_Scalar_out (aten/src/ATen/native/BinaryOps.cpp:126)
reference
  eq_kernel at aten/src/ATen/native/cpu/BinaryOpsKernel.cpp:114, for float, half, bfloat, long, int, short, uchar, char, bool, float2
stub
  eq_stub (aten/src/ATen/native/BinaryOps.h:41), called by eq_Tensor_out (aten/src/ATen/native/BinaryOps.cpp:126)""",
    )
