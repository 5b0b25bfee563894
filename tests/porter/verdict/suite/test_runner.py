"""What becomes of a test that has parts."""

from __future__ import annotations

import unittest
from types import ModuleType

from porter.verdict.suite.runner import run_modules


class Parts(unittest.TestCase):
    __test__ = False  # for the runner alone

    def test_some_fail(self) -> None:
        for part in range(4):
            with self.subTest(part=part):
                self.assertLess(part, 2, f"part {part}")

    def test_all_pass(self) -> None:
        for part in range(4):
            with self.subTest(part=part):
                self.assertLess(part, 4)


def test_a_part_that_fails_fails_its_test_once() -> None:
    module = ModuleType("parts")
    module.Parts = Parts  # type: ignore[attr-defined]
    found = {outcome.test: outcome for outcome in run_modules([module])}
    assert {name: outcome.status for name, outcome in found.items()} == {
        "Parts.test_all_pass": "passed",
        "Parts.test_some_fail": "failed",
    }
    assert "part 2" in found["Parts.test_some_fail"].reason


def test_there_is_one_outcome_of_each_test() -> None:
    module = ModuleType("parts")
    module.Parts = Parts  # type: ignore[attr-defined]
    assert len(run_modules([module])) == 2
