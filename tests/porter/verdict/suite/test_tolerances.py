"""The tolerances of a fork's own test, computed by its own code."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from porter.core.checkout import EMBEDDED_FORK
from porter.core.errors import PorterError
from porter.verdict.suite.tolerances import tolerances

OWN = """\
import something_that_is_not_here

class TestOther(TestCase):
    def test_output_match(self):
        atol, rtol = 1, 1

class TestConsistency(TestCaseMPS):
    FP32_LOW_PRECISION_LIST = {
        'add',
    }

    def _compute_tolerances(self, op, dtype):
        if op.name in self.FP32_LOW_PRECISION_LIST and dtype in [torch.float32]:
            return (1e-4, 3e-5)
        if op.name == "pow" and MACOS_VERSION < 14:
            return (1, 1)
        return (None, None)

    @ops(mps_ops_modifier(test_consistency_op_db), allowed_dtypes=MPS_DTYPES)
    def test_output_match(self, device, dtype, op):
        for cpu_sample in get_samples():
            cpu_kwargs = cpu_sample.kwargs
            atol, rtol = self._compute_tolerances(op, dtype)
            if op.name == "zoom" and cpu_kwargs.get("scale") == 1.7:
                atol, rtol = 1, 0
            self.assertEqual(cpu_out, mps_out, atol=atol, rtol=rtol)
            atol, rtol = 5, 5

class TestLast:
    pass
"""


def asked(text: str, name: str, dtype: torch.dtype = torch.float32, **kwargs: object) -> tuple[object, object]:
    found = tolerances(text)(SimpleNamespace(name=name), dtype, kwargs)  # type: ignore[arg-type]
    return found["atol"], found["rtol"]


def test_the_method_of_the_fork_is_used() -> None:
    assert asked(OWN, "add") == (1e-4, 3e-5)
    assert asked(OWN, "add", torch.float16) == (None, None)
    assert asked(OWN, "pow") == (None, None)  # as on the newest macOS


def test_per_sample_adjustments_are_used() -> None:
    assert asked(OWN, "zoom", scale=1.7) == (1, 0)
    assert asked(OWN, "zoom", scale=2) == (None, None)


def test_a_fork_without_the_method_uses_its_lists() -> None:
    text = OWN.replace("_compute_tolerances", "_something_else")
    assert asked(text, "add") == (1e-4, 3e-5)
    assert asked(text, "zoom", scale=1.7) == (None, None)
    assert asked("", "add") == (None, None)


def test_code_that_does_not_run_is_refused() -> None:
    with pytest.raises(PorterError, match="PTR163"):
        tolerances(OWN.replace("FP32_LOW_PRECISION_LIST = {", "FP32_LOW_PRECISION_LIST = undefined | {"))


def test_the_embedded_fork_is_read() -> None:
    text = (EMBEDDED_FORK / "test" / "test_mps.py").read_text()
    assert asked(text, "an operator that is on no list") == (None, None)
