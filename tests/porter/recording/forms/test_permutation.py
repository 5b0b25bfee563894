"""Whether an operator writes a random order is found from the random numbers that its graphs drew."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from aten_overlay.apple.mpsgraph.objects import Ref
from aten_overlay.apple.mpsgraph.recorder import GraphRun, Node, RecordedGraph
from porter.core.dtypes import FLOAT, LONG
from porter.metal.forms.sort import Permutation
from porter.recording.calls import OpCall
from porter.recording.forms.order import find_permutation
from porter.recording.runs import RecordedRun

OPERATOR = torch.ops.aten.randperm.generator


def list_calls(shift: int = 0, descending: bool = False, least: int = 0) -> Iterator[RecordedRun]:
    """Calls whose graph drew whole numbers, some of them twice, and sorted these."""
    for at, size in enumerate((7, 2, 12, 300, 1, 40, 9, 33)):
        dtype = torch.float32 if at % 2 else torch.int64
        numbers = torch.randint(-8, 8, (size,), generator=torch.Generator().manual_seed(at)).int() << 28
        result = ((numbers.argsort(stable=True, descending=descending) + shift) % size).clamp(min=least).to(dtype)
        node = Node("randomTensorWithShape:descriptor:stateTensor", (), (numbers,), (numbers.dtype,))
        run = GraphRun(RecordedGraph([node]), {}, {Ref(0, 0): numbers}, {})
        yield RecordedRun(OpCall(OPERATOR, {"n": size, "generator": None}), {}, (run,), (result,), False)


def test_orders_are_found() -> None:
    assert find_permutation(list(list_calls())) == Permutation("generator", (LONG, FLOAT))


def test_other_orders_and_other_numbers_are_none() -> None:
    assert find_permutation(list(list_calls(shift=1))) is None
    assert find_permutation(list(list_calls(descending=True))) is None
    assert find_permutation(list(list_calls(least=1))) is None
    assert find_permutation([run for run in list_calls() if run.results[0].numel() <= 2] * 4) is None


def test_what_is_printed() -> None:
    assert list(Permutation("generator").describe())[1] == "for a random word u of generator for each element"
