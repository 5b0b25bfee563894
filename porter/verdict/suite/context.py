"""What one run of the tests is about: which operators, which kernels must run, and the fork's test lists as edited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from porter.aten.names import base_of

if TYPE_CHECKING:
    from torch.testing._internal.opinfo.core import OpInfo


@dataclass(frozen=True)
class Context:
    """The subject of a run. Without `bases` every operator of the OpInfo database is tested, and no kernel is demanded.

    `bases` are ATen base names; `kernels` the functor names whose calls count, `functors` all functor names of the fork
    (the longest one that begins a host_name owns it); `dtypes` the torch names of input types that have a kernel.
    Bases that name no OpInfo are tested `through` those (full names) that dispatch them, or whose backward does.
    Host code that is tested `as_is` may answer some samples without a kernel, but never fall back to the CPU.
    `lists` and `lists_before` are the text of the file that holds the MPS test lists, as edited and as it was;
    `precision` is that of the fork's `test/test_mps.py`, for its low-precision lists; `flushes` says that the run's
    arithmetic takes denormals for zeros; `literals` are the numbers in the text of the kernels.
    """

    bases: tuple[str, ...] = ()
    through: tuple[str, ...] = ()
    through_backward: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    functors: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    as_is: bool = False
    lists_file: str = ""
    lists: str = ""
    lists_before: str = ""
    precision: str = ""
    flushes: bool = False
    literals: tuple[float, ...] = ()

    def owner(self, host_name: str) -> str:
        """The functor a host_name belongs to: `div_floor` for `div_floor_dense_float_float`, `""` if none."""
        names = (n for n in {*self.functors, *self.kernels} if host_name == n or host_name.startswith(f"{n}_"))
        return max(names, key=len, default="")

    def ported(self, calls: Mapping[str, int]) -> int:
        """How many of these calls, by host_name, were of the kernels under test."""
        return sum(count for name, count in calls.items() if self.owner(name) in self.kernels)

    def demands(self, dtype: str) -> bool:
        """Whether a call with inputs of this type (torch name) has to reach a kernel under test."""
        return bool(self.kernels) and not self.as_is and (not self.dtypes or dtype in self.dtypes)

    def names(self, op: OpInfo) -> bool:
        """Whether an OpInfo is of an operator under test."""
        return not self.bases or not aten_names(op).isdisjoint(self.bases)

    def fell_back(self, fallbacks: Iterable[str]) -> bool:
        """Whether an operator under test is among these names of the dispatcher."""
        return not {base_name(name) for name in fallbacks}.isdisjoint(self.bases)


def aten_names(op: OpInfo) -> frozenset[str]:
    """What an OpInfo's operator may be called in ATen: as it says, for aliases and dunder forms, or as modules are."""
    return frozenset((op.name, op.aten_name, op.name.removeprefix("nn.functional."), op.name.replace(".", "_")))


def base_name(name: str) -> str:
    """`atan2` for the dispatcher's `aten::atan2_` and `aten::atan2.out`."""
    return base_of(name.removeprefix("aten::"))


_current: list[Context] = []


def current() -> Context:
    """The run's subject: what `use` was given, else everything."""
    return _current[-1] if _current else Context()


def use(context: Context) -> None:
    """Sets the subject for test modules imported from now on in this process."""
    _current.append(context)
