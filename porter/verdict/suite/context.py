"""The context of one test run: the operators, the kernels that must run, and the fork's test lists."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import torch
from torch.autograd.profiler import profile
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.aten.declarations import parse_base_name
from porter.core.dtypes import BY_METAL, BY_TORCH
from porter.verdict.suite.leaves import compute, list_tensors

if TYPE_CHECKING:
    from torch.testing._internal.opinfo.core import OpInfo

    from porter.verdict.build.siblings import Siblings

_WIDTHS = ("int", "long")  # of indices, at the end of a name


@dataclass(frozen=True)
class Context:
    """The context of a run. Without `bases`, tests every operator of the OpInfo database and requires no kernel.

    `bases` are ATen base names; `kernels` the functor names whose calls count, `functors` all functor names of the fork
    (the longest one that begins a host_name owns it); `dtypes` the torch names of input types that have a kernel.
    `rows` are the names of the functions under test; where they are known, an overload of the operator that is none of
    them, and that the CPU computes, is not tested. Bases that name no OpInfo are tested
    `through` those (full names) that dispatch them, or whose backward does. Host code tested `as_is`
    may compute some samples without a kernel, but must not fall back to the CPU; types (torch names) that are computed
    `elsewhere` need none.
    `lists` and `lists_before` are the text of the file that holds the MPS test lists, as edited and as it was;
    `precision` is that of the fork's `test/test_mps.py`, for its low-precision lists; `flushes` says that the run's
    arithmetic takes denormals for zeros; `literals` are the numbers in the text of the kernels; `most` is the
    largest number that they are given, for those that count up to it. A run without the fork's host code has nobody
    who checks operands for overlaps: not `runs_host_code`. One that `checks_memory` reports what kernels reach beyond
    their tensors, as others do not. `has_before` says that the fork as it was can be asked about
    a test that only upstream's own comparison fails. A `thorough` run has the variations that cost more, too.
    `expression` selects tests, as pytest's -k does: samples of others need not be made.
    `adding` are those kernels under test that add to floating-point numbers atomically. `siblings` are the fork's
    natives of the same kind, if it has any. `wide` are kernels with indices of 32 bits, each with the one of 64 bits.
    """

    bases: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    through: tuple[str, ...] = ()
    through_backward: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    functors: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    as_is: bool = False
    elsewhere: tuple[str, ...] = ()
    lists_file: str = ""
    lists: str = ""
    lists_before: str = ""
    precision: str = ""
    flushes: bool = False
    literals: tuple[float, ...] = ()
    most: float = math.inf
    runs_host_code: bool = True
    checks_memory: bool = False
    has_before: bool = False
    thorough: bool = False
    expression: str = ""
    adding: tuple[str, ...] = ()
    siblings: Siblings | None = None
    wide: tuple[tuple[str, str], ...] = ()

    def owner(self, host_name: str) -> str:
        """The functor a host_name belongs to: `div_floor` for `div_floor_dense_float_float`, `""` if none."""
        names = (n for n in {*self.functors, *self.kernels} if host_name == n or host_name.startswith(f"{n}_"))
        return max(names, key=len, default="")

    def count_ported(self, calls: Mapping[str, int]) -> int:
        """How many of these calls, by host_name, were of the kernels under test."""
        return sum(count for name, count in calls.items() if self.owner(name) in self.kernels)

    def has_ported(self, dtype: str, calls: Mapping[str, int]) -> bool:
        """Whether calls, by host_name, were of a port's kernels for a type (torch name).

        Where no types are planned, as of recorded ports, names say it: `topk_blocks_long_int`, of indices in 32 bits.
        """
        ported = [name for name in calls if calls[name] and self.owner(name) in self.kernels]
        if self.dtypes or not self.has_before:
            return bool(ported) and dtype in self.dtypes
        names = [name.removeprefix(self.owner(name)).split("_") for name in ported]
        types = (words[:-1] if words[-1] in _WIDTHS and words[-2] in BY_METAL else words for words in names)
        return dtype in BY_TORCH and any(BY_TORCH[dtype].metal in words for words in types)

    def demands(self, dtype: str) -> bool:
        """Whether a call with inputs of this type (torch name) has to reach a kernel under test."""
        return (
            bool(self.kernels)
            and not self.as_is
            and dtype not in self.elsewhere
            and (not self.dtypes or dtype in self.dtypes)
        )

    def count_beside(self, fallbacks: Mapping[str, int]) -> int:
        """How many of these calls, by names of the dispatcher, were of overloads beside the rows under test."""
        named = {name: name.removeprefix("aten::") for name in fallbacks}
        beside = (name for name, plain in named.items() if base_name(name) in self.bases and plain not in self.rows)
        return sum(fallbacks[name] for name in beside) if self.rows else 0

    def names(self, op: OpInfo) -> bool:
        """Whether an OpInfo is of an operator under test."""
        return not self.bases or not aten_names(op).isdisjoint(self.bases)

    def fell_back(self, fallbacks: Iterable[str]) -> bool:
        """Whether an operator under test is among these names of the dispatcher."""
        return not {base_name(name) for name in fallbacks}.isdisjoint(self.bases)


def aten_names(op: OpInfo) -> frozenset[str]:
    """The names an OpInfo's operator may have in ATen."""
    return _aten_names(op.name, op.aten_name)


@cache
def _aten_names(name: str, aten_name: str) -> frozenset[str]:
    return frozenset((name, aten_name, name.removeprefix("nn.functional."), name.replace(".", "_")))


def base_name(name: str) -> str:
    """`atan2` for the dispatcher's `aten::atan2_` and `aten::atan2.out`."""
    return parse_base_name(name.removeprefix("aten::"))


_current: list[Context] = []


def get_context() -> Context:
    """The context given to `set_context`, or else one that tests everything."""
    return _current[-1] if _current else Context()


def set_context(context: Context) -> None:
    """Sets the context for test modules imported from now on."""
    _current.append(context)


def computes_all(op: OpInfo, samples: Sequence[SampleInput], ran: Collection[str], slopes: bool = False) -> bool:
    """Whether ATen on the CPU calls all operators that `ran` on the device, and none is `op`.

    It does so for every sample; with `slopes`, also to compute gradients.
    A row that MPS shares with the CPU does the same on the device: there is no call of a kernel to demand.
    """
    names = {base_name(name) for name in ran}
    return names.isdisjoint(aten_names(op)) and all(names <= _called(op, sample, slopes) for sample in samples)


def run_sample(op: OpInfo, sample: SampleInput, slopes: bool) -> None:
    """Computes a sample; with `slopes`, its gradients too."""
    with torch.set_grad_enabled(slopes):
        result = compute(op, sample)
        found = [t for t in list_tensors(result) if t.requires_grad]
        torch.autograd.backward(found, [torch.ones_like(t) for t in found])


def _called(op: OpInfo, sample: SampleInput, slopes: bool) -> set[str]:
    with profile() as seen:
        run_sample(op, sample, slopes)
    return {base_name(event.name) for event in seen.function_events}
