"""Torch's test tools as porter runs them, beside torch's own."""

from __future__ import annotations

import subprocess
import sys
import unittest
from collections.abc import Callable
from typing import Any

import torch
from torch.testing._internal import common_utils

from porter.verdict.suite.runner import run_tests
from porter.verdict.suite.torch_tools import find_test

# A process of its own, because the tools of a process stay replaced.
SAMPLES = """
import traceback
import torch
from torch.testing._internal.common_utils import TestCase
from torch.testing._internal.common_methods_invocations import op_db
from porter.verdict.suite import torch_tools

seen = []

class TestSamples(TestCase):
    def test_drawn(self):
        op = next(each for each in op_db if each.name == "atan2")
        for sample in op.sample_inputs("cpu", torch.float32, set_seed=True):
            seen.append(float(sample.input.sum() + sample.args[0].sum() + torch.rand(())))

format_stack = traceback.format_stack
stacks = []
traceback.format_stack = lambda *given: stacks.append(1) or format_stack(*given)
for make_tools in (lambda: None, torch_tools.make_quick):
    make_tools()
    TestSamples("test_drawn").debug()
    print(bool(stacks), seen)
    stacks.clear()
    seen.clear()
"""


Tool = Callable[[], Any]


class Case(unittest.TestCase):
    """A test that asks for itself, from a function and from a method of something else."""

    __test__ = False
    asked: list[object]

    def test_asking(self) -> None:
        type(self).asked = [call(tool) for tool in TOOLS for call in (call_directly, Other().call)]

    def helper(self) -> None:
        self.test_asking()


class Other:
    def call(self, tool: Tool) -> Any:
        return tool()


def call_directly(tool: Tool) -> Any:
    return tool()


TOOLS: tuple[Tool, ...] = (find_test, common_utils.extract_test_fn)  # torch's own, as long as nothing has run


def test_the_test_that_runs_is_found_as_torch_finds_it() -> None:
    Case("test_asking").debug()
    assert Case.asked == [Case.test_asking] * 4
    Case("helper").debug()
    assert Case.asked == [None] * 4


def test_outside_of_tests_there_is_none() -> None:
    assert [tool() for tool in TOOLS] == [None, None]


def test_samples_are_drawn_from_the_same_seeds_without_a_stack() -> None:
    done = subprocess.run([sys.executable, "-c", SAMPLES], capture_output=True, text=True, check=True)
    (own_stacks, _, own), (quick_stacks, _, quick) = (line.partition(" ") for line in done.stdout.splitlines())
    assert (own_stacks, quick_stacks) == ("True", "False")
    assert own == quick
    assert len(own) > 100


class Attends(unittest.TestCase):
    __test__ = False
    result = torch.zeros(())

    def test_attending(self) -> None:
        query = torch.full((1, 1, 2, 4), torch.nan)
        type(self).result = torch.nn.functional.scaled_dot_product_attention(
            query, torch.ones(1, 1, 2, 4), torch.ones(1, 1, 2, 4)
        )


def test_attention_of_the_cpu_is_not_fused_in_tests() -> None:
    """The fused kernel of the CPU gives zeros for a query of NaN."""
    run_tests([Attends("test_attending")])
    assert Attends.result.isnan().all()
    assert torch.backends.cuda.flash_sdp_enabled()
