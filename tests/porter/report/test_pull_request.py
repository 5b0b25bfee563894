"""The text of a pull request says what moves, what changes for users, and on what evidence, in PyTorch's words."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.aten.metal_functions import LIBRARY
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.dtypes import Kind
from porter.metal.functor import Provenance
from porter.plan.plan import Plan, RejectedCandidate
from porter.plan.planner import plan_operator
from porter.report.pull_request import group_pull_request, pull_request
from porter.report.verdict import describe_backend
from porter.verdict.backends.choice import BACKENDS
from porter.verdict.behavior import Behavior, PathCount
from porter.verdict.result import DTypeVerdict, Failure, Skip, Verdict
from tests.porter.plan.recorded import fork
from tests.porter.plan.recorded.test_index_map_ports import MIRRORED
from tests.porter.plan.recorded.test_index_map_ports import plan as plan_map

FORK = Checkout(EMBEDDED_FORK, "embedded")
PLAN = plan_operator(FORK, "atan2")
GAINED = "int64: now supported"
LOST = "bool: no longer supported, nor is it on the CPU"
UNKNOWN = "float16: not compared in 2 of 10 samples (not modeled)"
VERDICT = Verdict(
    "atan2", "host", "default", 14, 0, 1, 178, 0.5, 3.2,
    dtypes=(DTypeVerdict("float32", 8, 0, 1, 96, 0.5, 0.79), DTypeVerdict("int64", 6, 0, 0, 82)),
    notes=("no test launched 2 of 9 kernels: atan2_dense_long",),
    skips=(Skip("too large", 1),),
    old_path=Behavior(
        (PathCount("float32", 10, 9, 10, 21.5), PathCount("int64", 10, 0, 10)),
        (UNKNOWN, LOST, GAINED, "float32: max error 21.5 ULP before, 0.5 now"), (LOST,), (GAINED,), (UNKNOWN,),
    ),
)  # fmt: skip
REJECTED = RejectedCandidate("atan2", (Kind.FLOATING,), Provenance("c10::metal::atan2", LIBRARY), 3, "-0.0 for 0.0")


def describe(plan: Plan) -> str:
    """The text without a verdict, up to what is the same for all."""
    return pull_request(plan, None).partition("\n## Supported types")[0]


def test_a_binary_operator_with_a_verdict() -> None:
    assert_expected_inline(
        pull_request(PLAN, VERDICT, (REJECTED,)),
        """\
[MPS] Migrate atan2 to Metal

Moves `atan2.out` from MPSGraph to a native Metal kernel behind `atan2_stub`.

- `atan2.out`: `MPS: atan2_out_mps` becomes `CPU, CUDA, MPS: atan2_out`

## New kernels

- `atan2_functor` in `aten/src/ATen/native/mps/kernels/BinaryKernel.metal`, for float32, float16, bfloat16, uint8 to float32, int8 to float32, int16 to float32, int32 to float32, int64 to float32, bool to float32; written from Metal's own function, which the old graph names
- not c10::metal::atan2: it fails 3 tests (-0.0 for 0.0)
  Whoever prefers one function to two can mend it there, so that `atan2` calls it.

## Supported types and backward compatibility

**Needs a decision**, as it breaks what works on MPS today:

- bool: no longer supported, nor is it on the CPU

Either this is wanted (label `topic: bc breaking`), or the kernel has to take these types too.

New on MPS:

- int64: now supported

## Accuracy, old against new

| dtype | samples that match the CPU: MPSGraph | Metal | largest error in ULP: MPSGraph | Metal | CPU |
| --- | --- | --- | --- | --- | --- |
| float32 | 9/10 | 10/10 | 21.50 | 0.50 | 0.79 |
| int64 | 0/10 | 10/10 |  |  |  |

Errors are against float64. Those of MPSGraph are of a model of its operations, computed on the CPU; Apple's own may differ.

Results that change:

- float32: max error 21.5 ULP before, 0.5 now

## How this was verified

The tests ran on Linux, against a stand-in for Metal and MPSGraph. The host code (`.mm`) and the kernels (`.metal`) of this checkout were compiled for the CPU and ran PyTorch's OpInfo tests as an `mps` device. No Apple hardware, and no Apple software, took part.

14 passed, 0 failed, 1 skipped; 178 calls of the new kernels.

| dtype | tests passed | failed | skipped | kernel calls |
| --- | --- | --- | --- | --- |
| float32 | 8 | 0 | 1 | 96 |
| int64 | 6 | 0 | 0 | 82 |

## What was not verified

- that Apple's compiler takes the kernels, and that an Apple GPU computes the same values
- speed: nothing was measured
- other arithmetic that a GPU may use: fused multiply-adds, flushed denormals, other orders of operations
- the old path on some samples: float16: not compared in 2 of 10 samples (not modeled)
- 1 test skipped: too large
- note: no test launched 2 of 9 kernels: atan2_dense_long

## Test lists

The 14 tests above passed with the lists as this change leaves them:

- `UNIMPLEMENTED_XFAILLIST`: `atan2` removed (int64: native now)

Authored with porter, a program that wrote this code and this text from the old code and from runs of it. `porter migrate atan2 --write` writes it again.""",
    )


def test_a_unary_operator() -> None:
    assert_expected_inline(
        describe(plan_operator(FORK, "log1p")),
        """\
[MPS] Migrate log1p to Metal

Moves `log1p.out` from MPSGraph to a native Metal kernel behind `log1p_stub`.

- `log1p.out`: `MPS: log1p_out_mps` becomes `CPU, CUDA, MPS: log1p_out`

## New kernels

- `log1p_functor` in `aten/src/ATen/native/mps/kernels/UnaryKernel.metal`, for float32, float16, bfloat16, int64 to float32, int32 to float32, int16 to float32, uint8 to float32, int8 to float32, bool to float32, complex64, complex32; written from c10::metal::log1p of c10/metal/special_math.h (floating, integral, bool elements); a formula for complex numbers (complex elements)
""",
    )


def test_a_ternary_operator() -> None:
    assert_expected_inline(
        describe(plan_operator(FORK, "lerp")),
        """\
[MPS] Migrate lerp to Metal

Moves `lerp.Scalar_out` from MPSGraph to a native Metal kernel behind `lerp_kernel_scalar_weight`.

- `lerp.Scalar_out`: `MPS: lerp_Scalar_mps` becomes `CPU, MPS: lerp_Scalar`

## New kernels

- `lerp_scalar_weight_functor` in `aten/src/ATen/native/mps/kernels/BinaryKernel.metal`, for float32, float16, bfloat16, complex64, complex32; written from ATen's CPU kernel (aten/src/ATen/native/cpu/LerpKernel.cpp:19) (floating elements); a formula for complex numbers (complex elements)
""",
    )


def test_a_reduction_from_runs(tmp_path: Path) -> None:
    plan = plan_operator(fork.copy_fork(tmp_path), "largest", programs=lambda served: fork.largest())
    assert_expected_inline(
        describe(plan),
        """\
[MPS] Migrate largest to Metal

`largest_out_mps`, which serves `largest.out`, launches a native Metal kernel and builds no MPSGraph.

## New kernels

- `largest` in `aten/src/ATen/native/mps/kernels/Turns.metal`, for float32, float16, bfloat16; written from recorded runs of the MPSGraph code
""",
    )


def test_an_operator_that_goes_by_indices(tmp_path: Path) -> None:
    assert_expected_inline(
        describe(plan_map(tmp_path, "mirrored", MIRRORED)),
        """\
[MPS] Migrate mirrored to Metal

`mirrored_mps`, which serves `mirrored`, launches a native Metal kernel and builds no MPSGraph.

## New kernels

- `mirrored` in `aten/src/ATen/native/mps/kernels/Puts.metal`, for float32, float16, bfloat16, int64, int32, int16, uint8, int8, bool, complex64, complex32; written from recorded runs of the MPSGraph code
""",
    )


def test_not_verified() -> None:
    assert "## How this was verified\n\nNot verified." in pull_request(PLAN, None)


def test_a_failing_verdict_says_so_first() -> None:
    failing = replace(VERDICT, failed=1, failures=(Failure("test_output_match", "2 for 1\nmore"),))
    text = pull_request(PLAN, failing)
    assert text.splitlines()[2].startswith("**Not ready: 1 test fails**")
    assert "- fails: `test_output_match`: 2 for 1\n" in text


def test_nothing_changes() -> None:
    same = Verdict(
        "atan2", "host", "default", 1, 0, 0, 1, None, 1.0, old_path=Behavior((PathCount("int8", 3, 3, 3),), ())
    )
    assert "No type or sample that worked is refused now, in the 3 samples compared." in pull_request(PLAN, same)


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_is_told_in_words(backend: str) -> None:
    words = describe_backend(backend)
    assert words != f"on `{backend}`." and words in pull_request(PLAN, replace(VERDICT, backend=backend))


def test_a_file_of_porter_is_not_named() -> None:
    plan = plan_operator(FORK, "log1p")
    [functor] = plan.functors
    assert "porter/" in functor.origin, "there is a file to leave out"
    text = pull_request(plan, replace(VERDICT, notes=("PTR131 no such operation",)), ())
    assert re.findall(r"(?:porter|aten_overlay)/\S*|PTR\d+", text) == []
    assert "note: no such operation" in text


def test_a_group_has_a_part_for_each_operator() -> None:
    text = group_pull_request("BinaryOps", 90, [(PLAN, VERDICT, ()), (replace(PLAN, op="fmod"), None, ())])
    assert text.splitlines()[0] == "[MPS] Migrate atan2, fmod to Metal"
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["atan2", "fmod"]
    assert "`porter migrate atan2 fmod --write` writes it again. It changes 90 lines." in text


def test_the_title_of_many_is_short() -> None:
    ports = [(replace(PLAN, op=f"op{number}"), None, ()) for number in range(4)]
    assert group_pull_request("BinaryOps", 9, ports).startswith("[MPS] Migrate 4 operators of BinaryOps to Metal\n")
