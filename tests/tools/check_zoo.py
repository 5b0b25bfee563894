"""tools/zoo.py in its short form, and faults that it has to find."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing._internal.common_modules import module_db

import aten_overlay

aten_overlay.start()

from training import modules, optimizers  # noqa: E402
from training.case import Case  # noqa: E402
from training.others import OTHERS  # noqa: E402
from training.trial import DIFFERENT, EQUAL, Outcome, try_case  # noqa: E402

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "zoo.md").read_text()
SHORT = (
    "Linear",
    "BatchNorm2d",
    "LSTM",
    "Dropout",
    "MultiheadAttention",
    "CrossEntropyLoss",
    "LazyLinear",
    "Sequential",
)
MODULES = [case for case in modules.cases(torch.float32, 1) if case.name in SHORT]
OPTIMIZERS = [
    case for case in optimizers.cases(torch.float32, 1) if case.name in ("SGD", "Adam", "LBFGS", "SparseAdam")
]


CASES: list[Case] = [*MODULES, *OPTIMIZERS]


def outcome(name: str, variant: str = "") -> Outcome:
    return try_case(next(case for case in CASES if case.name == name and variant in case.variant))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}, {case.variant}")
def test_the_device_trains_as_the_cpu(case: Any) -> None:
    found = try_case(case)
    assert (found.kind, found.told) == (EQUAL, ())


def test_random_modules_are_compared_number_by_number() -> None:
    assert outcome("Dropout").random == 7 and outcome("Linear").random == 0


@pytest.fixture
def plant() -> Iterator[Callable[[str, Callable[..., Any]], None]]:
    """Registers a kernel for the device in place of the fallback, for one test."""
    library = torch.library.Library("aten", "IMPL")
    yield lambda name, kernel: library.impl(name, kernel, "MPS")
    library._destroy()


def forgets_to_copy_back(self: Any, other: Any, alpha: float = 1) -> Any:
    self.cpu().add_(other.cpu() if isinstance(other, torch.Tensor) else other, alpha=alpha)
    return self


def draws_nothing(self: Any, p: float = 0.5, *, generator: Any = None) -> Any:
    return self.fill_(1)


def keeps_the_statistics(x: Any, weight: Any, bias: Any, mean: Any, variance: Any, *rest: Any) -> Any:
    given: Any = [t.cpu() if isinstance(t, torch.Tensor) else t for t in (x, weight, bias, mean, variance)]
    forgets: Any = torch.native_batch_norm
    return tuple(t.to("mps") for t in forgets(*given, *rest))


@pytest.mark.parametrize(
    ("operator", "kernel", "name", "variant"),
    [
        ("add_.Tensor", forgets_to_copy_back, "SparseAdam", ""),
        ("add_.Tensor", forgets_to_copy_back, "BatchNorm2d", ""),
        ("bernoulli_.float", draws_nothing, "Dropout", ""),
        ("native_batch_norm", keeps_the_statistics, "BatchNorm2d", ""),
        ("_foreach_add_.List", lambda mine, others, alpha=1: None, "SGD", "foreach"),
    ],
)
def test_a_planted_fault_is_found(
    operator: str, kernel: Callable[..., Any], name: str, variant: str, plant: Callable[[str, Callable[..., Any]], None]
) -> None:
    assert outcome(name, variant).kind == EQUAL
    plant(operator, kernel)
    found = outcome(name, variant)
    assert found.kind == DIFFERENT and found.told


def test_every_module_and_optimizer_has_a_case() -> None:
    known = {info.module_cls.__name__ for info in module_db} | set(OTHERS) | set(modules.ABSTRACT)
    assert set(modules.names()) <= known
    trained = {case.name for case in optimizers.cases(torch.float32, 1)}
    assert set(optimizers.names()) == trained | set(optimizers.ABSTRACT)


def test_the_page_has_a_row_for_each_and_nothing_differs() -> None:
    rows = re.findall(r"^\| `(\w+)` \|(.+)\|$", PAGE, re.MULTILINE)
    left_out = {**modules.ABSTRACT, **optimizers.ABSTRACT}
    assert {name for name, _ in rows} == {*modules.names(), *optimizers.names()} - set(left_out)
    wrong = {name for name, cells in rows if "equal (" not in cells or re.search(r"differs \(|fails \(", cells)}
    assert wrong == set()
