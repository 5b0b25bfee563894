"""Arguments that an operator writes to are compared as results are."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite import samples
from porter.verdict.suite.consistency import Consistency, Refused
from porter.verdict.suite.context import Context


class Suite(Consistency):
    """The comparison alone, with the CPU for a device."""

    opinfos: Any = SimpleNamespace(tolerances=lambda *_: {"rtol": 0, "atol": 0}, context=Context())
    elements = answers = 0

    def runTest(self) -> None:
        """No test of its own."""


class Adds:
    """Adds to its second argument what the first call does, and something else in later ones."""

    name = "adds"

    def __init__(self, *steps: float) -> None:
        self._steps = list(steps)

    def __call__(self, given: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
        step = self._steps.pop(0)
        for at in range(len(total)):  # as a kernel that does not ask whether elements share memory
            total[at] = total[at] + step
        return given.clone()


def sample() -> SampleInput:
    return SampleInput(torch.rand(3), args=(torch.zeros(3),))


def match(op: Adds, given: SampleInput) -> None:
    Suite().match(op, torch.float32, given, "cpu")  # type: ignore[arg-type, no-untyped-call]


def test_what_is_written_is_compared() -> None:
    match(Adds(1, 1), sample())
    with pytest.raises(AssertionError, match="argument 1"):
        match(Adds(1, 2), sample())


def test_what_the_device_alone_does_not_write_differs() -> None:
    with pytest.raises(AssertionError, match="argument 1"):
        match(Adds(1, 0), sample())


def test_the_device_is_given_what_the_cpu_was() -> None:
    given = sample()
    match(Adds(1, 1), given)
    assert given.args[0].tolist() == [1, 1, 1]


def test_written_memory_that_overlaps_itself_is_refused() -> None:
    given = SampleInput(torch.rand(3), args=(torch.zeros(1).expand(3),))
    with pytest.raises(Refused):
        match(Adds(1, 1), given)
    read_alone = SampleInput(torch.rand(1).expand(3), args=(torch.zeros(3),))
    match(Adds(1, 1), read_alone)


def test_written_tensors_are_found_by_their_places() -> None:
    before = SampleInput(torch.rand(2), args=(torch.zeros(2), 3), kwargs={"other": torch.full((2,), float("nan"))})
    after = samples.copy_sample(before)
    assert samples.find_written(before, after) == {}
    after.kwargs["other"][0] = 1
    assert list(samples.find_written(before, after)) == [3]


class Keeps:
    """Returns its argument: itself, or a part of it, or elements of their own."""

    name = full_name = "keeps"

    def __init__(self, *takes: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self._takes = list(takes)

    def __call__(self, argument: torch.Tensor) -> torch.Tensor:
        return self._takes.pop(0)(argument)


@pytest.mark.parametrize("take", [lambda x: x, lambda x: x.view(3), lambda x: x[:]])
def test_a_result_in_the_memory_of_an_argument_is_no_copy(take: Callable[[torch.Tensor], torch.Tensor]) -> None:
    suite, argument = Suite(), SampleInput(torch.rand(3))  # type: ignore[no-untyped-call]
    suite.match(Keeps(take, take), torch.float32, argument, "cpu")  # type: ignore[arg-type]
    suite.match(Keeps(take, torch.clone), torch.float32, argument, "cpu")  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="in the memory of an argument"):
        suite.match(Keeps(torch.clone, take), torch.float32, argument, "cpu")  # type: ignore[arg-type]


def test_what_draws_random_numbers_is_not_compared() -> None:
    """Dropout within an operator that calls others, as attention does; elsewhere the same difference is a failure."""

    class Drops:
        name = full_name = "drops"

        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.dropout(x)

    ones = SampleInput(torch.ones(1000))
    suite = Suite()  # type: ignore[no-untyped-call]
    with pytest.raises(AssertionError):
        suite.match(Drops(), torch.float32, ones, "cpu")  # type: ignore[arg-type]
    suite.opinfos = SimpleNamespace(tolerances=Suite.opinfos.tolerances, context=Context(through=("drops",)))
    with pytest.raises(Refused, match="draws random numbers"):
        suite.match(Drops(), torch.float32, ones, "cpu")  # type: ignore[arg-type]
