"""`--large`: offsets in 32 bits fail the verdict, which names kernel and argument; operators without them pass."""

from __future__ import annotations

import pytest

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.verdict.judge import describe_large, merge_large
from porter.verdict.native import native_target
from porter.verdict.result import Failure, Verdict
from porter.verdict.verify import verify

LIBRARY = "aten/src/ATen/native/mps/MetalShaderLibrary.mm"
TARGET = native_target(Checkout(EMBEDDED_FORK, "embedded"), "exp")
SELECTED = "(test_large or test_out_) and float32"


def test_offsets_of_the_embedded_fork_are_wide_enough() -> None:
    found = verify(EMBEDDED_FORK, {}, TARGET, SELECTED, large=True)
    assert found.failures == () and found.passed == 3
    [note] = found.notes
    assert note.startswith("large tensors: 2 tests, ") and not note.startswith("large tensors: 2 tests, 0 calls")


def test_host_code_that_does_not_split_what_passes_32_bits() -> None:
    text = (EMBEDDED_FORK / LIBRARY).read_text()
    whole = text.replace("if (!iter.can_use_32bit_indexing()) {", "if (false) {")
    assert whole != text
    found = verify(EMBEDDED_FORK, {LIBRARY: whole}, TARGET, SELECTED, large=True)
    told = {each.test.split(".")[1]: each.reason for each in found.failures}
    offsets, counts = told["test_large_exp_mps_float32"], told["test_large_dense_exp_mps_float32"]
    assert "PTR270: kernel `exp_strided_float_float` reads 4 bytes" in offsets
    assert "of argument `input` (buffer 1)" in offsets
    assert "PTR270 kernel `exp_dense_float_float`" in counts or "PTR270 kernel `exp_dense_scalar_float_float`" in counts
    assert "the last rows of" in counts


def test_only_the_host_backend_has_large_tensors() -> None:
    with pytest.raises(PorterError) as refused:
        verify(EMBEDDED_FORK, {}, TARGET, backend="kernels", large=True)
    assert refused.value.code == "PTR271"


def judged(passed: int, *failures: Failure, calls: int = 0) -> Verdict:
    return Verdict("exp", "host", "default", passed, len(failures), 0, calls, None, 0.0, failures=failures)


def test_a_run_without_kernels_says_so() -> None:
    assert "no kernel under test ran" in describe_large(judged(1), ()).notes[0]
    assert describe_large(judged(1, calls=3), ("refused: too large",)).notes == (
        "large tensors: 1 tests, 3 calls of kernels under test",
        "large tensors: refused: too large",
    )


def test_failures_are_added_and_a_selection_without_large_tests_is_none() -> None:
    large = judged(1, Failure("test_large_exp", "wrong"), Failure("selection", "no test was selected"))
    merged = merge_large(judged(2), large)
    assert (merged.passed, merged.failed) == (3, 1)
    assert merged.failures[0].reason == "in large tensors: wrong"
