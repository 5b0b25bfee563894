"""A fork's own tests run on its own operators, and what a change loses is named."""

from __future__ import annotations

import json
from pathlib import Path

from porter.core.checkout import EMBEDDED_FORK
from tests.conftest import Run

FAILING = """
import os
import unittest

import torch


class TestMine(unittest.TestCase):
    def test_erf(self):
        x = torch.ones(3, device="mps")
        self.assertTrue(torch.allclose(torch.erf(x).cpu(), torch.erf(x.cpu())))

    def test_dies(self):
        os._exit(3)

    def test_fails(self):
        self.fail("as it has to")

    @unittest.expectedFailure
    def test_is_expected_to_fail(self):
        self.fail("as listed")

    @unittest.skip("not here")
    def test_is_skipped(self):
        pass
"""


def test_tests_that_passed_before_are_named(tmp_path: Path, python: Run) -> None:
    (tmp_path / "mine.py").write_text(FAILING)
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    names = ("test_dies", "test_erf", "test_fails", "test_is_skipped")
    held = {"test_dies": "passed", "test_erf": "passed", "test_is_expected_to_fail": "xpassed"}
    before.write_text(
        "".join(json.dumps({"test": f"TestMine.{name}", "status": status}) + "\n" for name, status in held.items())
    )
    options = ("--tests", str(tmp_path / "mine.py"), "--save", str(after), "--before", str(before))
    done = python("tools/whole_tests.py", str(EMBEDDED_FORK), *options)
    assert done.returncode == 1, done.stderr
    status = {each["test"]: each["status"] for each in map(json.loads, after.read_text().splitlines())}
    assert [status[f"TestMine.{name}"] for name in names] == ["failed", "passed", "failed", "skipped"]
    assert done.stdout.splitlines() == [
        "TestMine.test_dies: failed: its process died, or took over 60 s",
        "TestMine.test_fails: failed: as it has to",
        "2 failed, 1 passed, 1 skipped, 1 xfailed",
        "passed before: TestMine.test_dies",
        "fails now, as the file expects: TestMine.test_is_expected_to_fail",
    ]
