"""A CUDA kernel of a person's own, its Metal functor, and how their values compare: values only."""

from __future__ import annotations

from dataclasses import dataclass

from porter.core.dtypes import DType
from porter.cuda.own import OwnKernel
from porter.metal.own_functor import OwnFunctor

# Metal's own functions are not those of the host's C++ library: neither is off by more.
SLACK = 4.0


@dataclass(frozen=True)
class Difference:
    """The worst value of a type: its inputs and numbers, what the functor and the kernel computed, and how far off."""

    inputs: tuple[float, ...]
    scalars: tuple[float, ...]
    found: float
    expected: float
    ulps: float


@dataclass(frozen=True)
class Comparison:
    """The values compared for a type of element, the largest error in units of its spacing, and a wrong value."""

    dtype: DType
    values: int
    largest: float
    wrong: Difference | None


@dataclass(frozen=True)
class TranslatedKernel:
    """A kernel of a file, its functor, and how their values compare: nothing if neither was run."""

    file: str
    own: OwnKernel
    functor: OwnFunctor
    comparisons: tuple[Comparison, ...] = ()
    not_compared: str = ""

    @property
    def done(self) -> bool:
        """Whether no value is wrong, of those that were asked to be compared."""
        return not any(each.wrong for each in self.comparisons)
