"""What a window of time holds, with a clock that the test turns."""

from __future__ import annotations

import torch

from aten_overlay.metal.launch import LIMIT
from porter.kernels.benchmark import measure
from porter.kernels.timing import on_one_core


class Stage:
    """A device whose first call takes 100 seconds and every other 2, on a clock of its own."""

    def __init__(self) -> None:
        self.now, self.calls, self.log = 0.0, 0, ""

    def call(self) -> None:
        self.now += 2 if self.calls else 100
        self.calls += 1
        self.log += "c"

    def wait(self) -> None:
        self.log += "w"

    def clock(self) -> float:
        self.log += "t"
        return self.now


def test_the_first_call_is_left_out() -> None:
    stage = Stage()
    assert measure(stage.call, wait=stage.wait, clock=stage.clock, window=1, repeats=3) == 2


def test_the_device_is_waited_for_at_both_ends_of_a_window() -> None:
    stage = Stage()
    measure(stage.call, wait=stage.wait, clock=stage.clock, window=6, repeats=2)
    assert stage.log == "wtcwt" * 2 + "wtcccwt" * 2


def test_torch_and_kernels_are_timed_on_one_core_each() -> None:
    before = torch.get_num_threads()
    with on_one_core():
        assert (torch.get_num_threads(), LIMIT.value) == (1, 1)
    assert (torch.get_num_threads(), LIMIT.value) == (before, 0)
