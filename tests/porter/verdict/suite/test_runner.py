"""What becomes of a test that has parts."""

from __future__ import annotations

import unittest
from collections import Counter
from types import ModuleType

from porter.verdict.result import Finding
from porter.verdict.suite import results
from porter.verdict.suite.context import Context
from porter.verdict.suite.runner import find_tests, run_tests


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
    found = {outcome.test: outcome for outcome in run_tests(find_tests([module]))}
    assert {name: outcome.status for name, outcome in found.items()} == {
        "Parts.test_all_pass": "passed",
        "Parts.test_some_fail": "failed",
    }
    assert "part 2" in found["Parts.test_some_fail"].reason


def test_there_is_one_outcome_of_each_test() -> None:
    module = ModuleType("parts")
    module.Parts = Parts  # type: ignore[attr-defined]
    assert len(run_tests(find_tests([module]))) == 2


class Ends(unittest.TestCase):
    __test__ = False

    def note(self) -> None:
        results.get_record(self._testMethodName).findings.append(Finding("RuntimeError: no tensor", 0, sample=1))

    def test_ends_with_its_samples(self) -> None:
        self.note()
        raise results.Noted("RuntimeError: no tensor")

    def test_ends_before(self) -> None:
        self.note()
        raise RuntimeError("no tensor")


def test_an_error_that_ends_a_test_is_found_beside_a_sample_with_the_same_words() -> None:
    """Samples behind it were not judged, so that the fork's having the first excuses nothing."""
    module = ModuleType("ends")
    module.Ends = Ends  # type: ignore[attr-defined]
    samples = {outcome.test: [each.sample for each in outcome.findings] for outcome in run_tests(find_tests([module]))}
    assert samples == {"Ends.test_ends_before": [1, -1], "Ends.test_ends_with_its_samples": [1]}


class Listed(unittest.TestCase):
    __test__ = False

    def fail_after(self, kernel: str, *others: str) -> None:
        record = results.get_record(self._testMethodName)
        record.calls, record.kernels = 1, Counter((kernel, *others))
        self.fail("wrong")

    @unittest.expectedFailure
    def test_output_match_topk_mps_int64(self) -> None:
        self.fail_after("topk_blocks_long_int")

    @unittest.expectedFailure
    def test_far_numbers_topk_mps_int64(self) -> None:
        self.fail_after("topk_blocks_long_int")

    @unittest.expectedFailure
    def test_far_numbers_topk_mps_int32(self) -> None:
        self.fail_after("topk_blocks_long_int")

    @unittest.expectedFailure
    def test_combines_topk_mps_int32(self) -> None:
        self.fail_after("topk_combine_int")

    @unittest.expectedFailure
    def test_combines_topk_mps_int64(self) -> None:
        self.fail_after("fill_long_int")

    @unittest.expectedFailure
    def test_cuts_nn_functional_pad_mps_int32(self) -> None:
        self.fail_after("topk_combine_int")

    @unittest.expectedFailure
    def test_cuts_nn_functional_attention_mps_int32(self) -> None:
        self.fail_after("topk_combine_int", "fill_int")


def test_a_list_excuses_no_kernel_of_a_recorded_port_outside_of_upstreams_tests() -> None:
    module = ModuleType("listed")
    module.Listed = Listed  # type: ignore[attr-defined]
    kernels = ("topk_blocks", "topk_combine")
    through = ("nn.functional.pad", "nn.functional.attention")
    ported = Context(kernels=kernels, functors=(*kernels, "fill"), has_before=True, through=through)
    failed = {outcome.test for outcome in run_tests(find_tests([module]), context=ported) if outcome.status == "failed"}
    assert failed == {
        "Listed.test_far_numbers_topk_mps_int64",
        "Listed.test_combines_topk_mps_int32",
        "Listed.test_cuts_nn_functional_pad_mps_int32",
    }
    assert {outcome.status for outcome in run_tests(find_tests([module]))} == {"xfailed"}
