"""A way in which samples differ from OpInfo's, and how the device's answer to them is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import torch
from torch.testing._internal.opinfo.core import OpInfo

from porter.verdict.suite.arguments import Varied
from porter.verdict.suite.opinfos import OpInfos


class Operators(Enum):
    """Which of the operators under test a variation is for."""

    ALL = "all"
    POINTWISE = "pointwise"
    STRUCTURED = "structured"


class Expectation(Enum):
    """What the device has to do with a varied sample."""

    VALUES = "the CPU's results"
    TRUNCATED = "the CPU's results, and of integers what is left of double precision, which a tolerance of one hides"
    ELEMENTS = "in each element the CPU's result, or what double precision rounds to"
    GRADIENTS = "the CPU's results and gradients"
    SUMS = "what sums in 32 bits are, rounded, and the gradients likewise"
    ROUNDED = "what the same call in 32 bits is, rounded"
    ROUNDED_ONCE = "what the same call in 32 bits is on the device, rounded once, where the CPU's is"
    REFUSAL = "an error, as on the CPU"


@dataclass(frozen=True)
class Variation:
    """One test: `list_samples` yields labeled samples of an operator in a type, in the order in which they run.

    It yields what the CPU computes, or for `REFUSAL` what the CPU refuses; an empty list means that the variation does
    not apply, and there is no test. Tests come in `dtypes` only (`None`: all that the run has). Samples of a
    variation of `GRADIENTS` or `SUMS` require them. A `thorough` one costs more than a verdict may take by default.

    Samples of one that `calls_overloads` are of `overloads.call_overload`; no others come before them. The OpInfos
    whose gradients call an operator under test have some too.
    """

    name: str
    list_samples: Callable[[OpInfos, OpInfo, torch.dtype], Iterator[Varied]]
    operators: Operators = Operators.STRUCTURED
    expectation: Expectation = Expectation.VALUES
    dtypes: Sequence[torch.dtype] | None = (torch.float32,)
    thorough: bool = False
    calls_overloads: bool = False

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ValueError(f"{self.name!r} names a test, so it has to be an identifier")
        if self.calls_overloads and self.expectation in (Expectation.GRADIENTS, Expectation.SUMS):
            raise ValueError("an overload has no gradients of its own: that of the gradient is one itself")
