"""How a fork's own test draws its samples."""

from __future__ import annotations

import pytest

from porter.verdict.suite.tolerances import seeds_each_sample

OTHER = "    def test_other(self):\n        op.sample_inputs(device, dtype, set_seed=False)\n"
TEST = "class TestConsistency:\n    def test_output_match(self, device):\n        op.sample_inputs(device, dtype{})\n"


@pytest.mark.parametrize(
    ("text", "each"),
    [("", True), (TEST.format("") + OTHER, True), (TEST.format(", set_seed=False"), False), (OTHER, True)],
    ids=["no test", "another test's", "the test's", "no such test"],
)
def test_only_the_test_itself_says_how_it_draws(text: str, each: bool) -> None:
    assert seeds_each_sample(text) is each
