"""The runner of upstream's Inductor tests, on a template of its own."""

from __future__ import annotations

import json
from pathlib import Path

from expecttest import assert_expected_inline

import inductor_template
from inductor_template import FAILED, NOT_MPS, Outcome
from tests.conftest import Run

TEMPLATE = """\
import os
import unittest
import torch
from torch._inductor.utils import a_name_that_is_gone

TestCase = unittest.TestCase


def check_model_gpu(self, function, inputs):
    inputs = [tensor.to(self.device) for tensor in inputs]
    self.assertTrue(torch.equal(function(*inputs), function(*inputs)))


class CommonTemplate:
    def test_a_passes(self):
        self.common(torch.sin, [torch.ones(2)])

    def test_b_ends_the_process(self):
        os._exit(3)

    def test_c_has_doubles(self):
        torch.ones(2, dtype=torch.float64, device=self.device)

    @unittest.skip("for a reason")
    def test_d_is_skipped(self):
        pass

    def test_e_is_wrong(self):
        raise ValueError("wrong")
"""


def test_a_template_runs_on_the_device(python: Run, tmp_path: Path) -> None:
    """A test that ends the process has failed, and those after it run."""
    folder, report = tmp_path / "test" / "inductor", tmp_path / "report.json"
    folder.mkdir(parents=True)
    (folder / "test_torchinductor.py").write_text(TEMPLATE)
    done = python("tools/inductor_template.py", str(tmp_path), "--json", str(report))
    assert done.returncode == 1, done.stderr
    outcomes = [json.loads(line) for line in report.read_text().splitlines()]
    assert [outcome["status"] for outcome in outcomes] == ["passed", FAILED, NOT_MPS, "skipped", FAILED]
    assert [outcomes[place]["reason"] for place in (1, 3, 4)] == [
        "its process ended with 3", "for a reason", "ValueError: wrong"
    ]  # fmt: skip


def test_the_table_has_the_reasons_of_failures() -> None:
    outcomes = [Outcome("test_a", "passed"), Outcome("test_b", FAILED, "AssertionError: a | b")]
    assert_expected_inline(
        "\n".join(inductor_template.describe(outcomes)),
        """\
| passed | failed | does not apply | skipped |
| --- | --- | --- | --- |
| 1 | 1 | 0 | 0 |

| test | what it says |
| --- | --- |
| `test_b` | AssertionError: a / b |""",
    )
