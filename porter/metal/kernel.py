"""A native kernel as a value, what it has to compute, and what every family of kernels can do.

    Operator ─> KernelSpec ─> Kernel ─> ChangeSet

A family is a module with the functions of `KernelFamily`, in a file of its own in `porter/metal/families/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from porter.aten.meta import TypeRule
from porter.aten.native_functions import NativeFunction
from porter.aten.stubs import Stub, StubCall
from porter.core.checkout import Checkout
from porter.core.dtypes import DType, Kind
from porter.core.edits import Edit
from porter.core.errors import PorterError
from porter.cpu.kernels import CpuKernel
from porter.metal.functor import Origin
from porter.metal.registration import Line
from porter.mpsgraph.graph import Graph

# The edits of one step, over the texts that the step before it left.
Step = Callable[[Checkout], Iterator[Edit]]
# Which candidate computes a kind of element in the kernel of a name, from 0; the first where nothing is said.
CandidateChoice = Mapping[tuple[str, Kind], int]
FIRST_CANDIDATES: CandidateChoice = MappingProxyType({})


@dataclass(frozen=True)
class KernelSpec:
    """What the kernel of one stub has to compute, whichever family writes it.

    `function` is the row whose shared implementation makes the `call`; `graph` is the old implementation's, None where
    it is not read, which `notes` say.
    """

    function: NativeFunction
    call: StubCall
    rule: TypeRule
    cpu: CpuKernel
    graph: Graph | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Kernel:
    """The native kernel of one stub: its Metal `source`, the lines that register it, and the host `function`.

    `steps` put it into the fork, one after the other.
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


class KernelFamily(Protocol):
    """One way to write a native kernel."""

    def refusal(self, function: NativeFunction, call: StubCall) -> PorterError | None:
        """Why this family cannot serve a call of a stub, from its declaration alone; None where it may."""

    def write(self, fork: Checkout, spec: KernelSpec, choice: CandidateChoice) -> Kernel:
        """The kernel in the style of the fork's files. Raises PorterError where this family cannot write it."""
