"""A native kernel as a value, its specification, and the protocol of kernel families.

    Operator ─> KernelSpec ─> Kernel ─> ChangeSet

A family is a module in `porter/metal/families/` with the functions of `KernelFamily`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Protocol

from porter.aten.meta import Promotion, TypeRule
from porter.aten.native_functions import NativeFunction
from porter.aten.stubs import Stub, StubCall
from porter.core import dtypes
from porter.core.checkout import Checkout
from porter.core.dtypes import DType, Kind
from porter.core.edits import Edit
from porter.core.errors import PorterError
from porter.cpu.kernels import CpuKernel, read_result_kernels
from porter.metal.functor import Origin, Source
from porter.metal.registration import Line
from porter.mpsgraph.graph import Graph

# The edits of one step, which apply to the fork after the previous step.
Step = Callable[[Checkout], Iterator[Edit]]
# The index of the candidate for a (kernel name, kind of element); the first one, 0, if missing.
CandidateChoice = Mapping[tuple[str, Kind], int]
FIRST_CANDIDATES: CandidateChoice = MappingProxyType({})


@dataclass(frozen=True)
class KernelCase:
    """The kernel that a stub has while an argument is one enumerator, by C++'s test of it; the last one has no test."""

    test: str
    suffix: str
    cpu: CpuKernel


@dataclass(frozen=True)
class KernelResult:
    """One of the results of a stub that has several: its name in the CPU's code, its kernel and its type rule."""

    name: str
    cpu: CpuKernel
    rule: TypeRule


@dataclass(frozen=True)
class KernelSpec:
    """What the kernel of a stub has to compute, for any family.

    `function` is the native function whose shared implementation makes the `call`. `graph` is that of the old
    implementation, or None if it could not be read; `notes` then say why. `cuda` is CUDA's kernel, if needed. A stub
    that takes an enumerator has `cases`, one with several `results` these. One that `keeps` dtypes takes what the old
    implementation took. A person's `functor` is written as it is.
    """

    function: NativeFunction
    call: StubCall
    rule: TypeRule
    cpu: CpuKernel
    graph: Graph | None
    notes: tuple[str, ...]
    cuda: CpuKernel | None = None
    source: Source = Source.ANY
    cases: tuple[KernelCase, ...] = ()
    results: tuple[KernelResult, ...] = ()
    keeps: bool = False
    functor: str = ""


@dataclass(frozen=True)
class Kernel:
    """The native kernel of a stub: its Metal `source`, the lines that register it, and its host `function`.

    `steps`, applied in order, add it to the fork. What runs it without a stub needs `launch`, the statement that does,
    and `launcher`, the definition that this calls if the fork has none.
    """

    name: str
    stub: Stub
    source: str
    origins: tuple[Origin, ...]
    registrations: tuple[Line, ...]
    dtypes: tuple[DType, ...]
    kernel_file: str
    host_file: str
    function: str
    notes: tuple[str, ...]
    steps: tuple[Step, ...]
    launch: Callable[[str], str] = lambda scope: ""
    launcher: str = ""


class KernelFamily(Protocol):
    """A way to write native kernels; those of `FUNCTORS` need the functor dialect."""

    FUNCTORS: bool

    def refusal(self, function: NativeFunction, call: StubCall) -> PorterError | None:
        """Returns why this family cannot write a stub's kernel, judging by its declaration only, or None if it may."""

    def write(self, fork: Checkout, spec: KernelSpec, choice: CandidateChoice) -> tuple[Kernel, ...]:
        """Returns the kernel, or that of each case, in the style of the fork's files.

        Raises PorterError if this family cannot write it.
        """


# The functors of a stub with several results: one for each, launched one after the other.


_PROMOTIONS = {"T": Promotion.SAME, dtypes.INT.metal: Promotion.INT, dtypes.BOOL.metal: Promotion.BOOL}


def read_results(
    checkout: Checkout, function: NativeFunction, call: StubCall, rule: TypeRule
) -> tuple[KernelResult, ...]:
    """Returns the kernel of each result. Raises PTR018 for one that no functor computes."""

    def output(dtype: DType) -> DType:
        return dtype if rule.promotion is Promotion.OUTPUT else rule.result(dtype) or dtype

    kernels = read_result_kernels(checkout, call.stub.name, function.results, output)
    return tuple(KernelResult(name, cpu, replace(rule, promotion=_promote(cpu, call))) for name, cpu in kernels)


def _promote(cpu: CpuKernel, call: StubCall) -> Promotion:
    """The result type that a kernel's functions return."""
    types = {each.result for each in cpu.lambdas}
    if len(types) == 1 and (found := _PROMOTIONS.get(next(iter(types)))):
        return found
    why = "; ".join(each.error.what for each in cpu.untranslated) or f"it is {' or '.join(sorted(types))}"
    raise PorterError(
        "PTR018", f"a result of {call.stub.name} has no known type: {why}", call.place, "Port it by hand."
    )
