"""Loop nests whose numbers are expressions of the call's arguments: what the kernels of a port compute, at any size.

The nests are those of one recorded call, the example. A number that varies between calls is a `Named` leaf: the
attribute of an INTEGER or a NUMBER, or `Loop.number`. Sizes of loops, bounds and stores stay those of the example.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from porter.aten.condition import Condition
from porter.core.dtypes import DType
from porter.core.errors import PorterError
from porter.loops.expressions import Buffer
from porter.loops.fusion import LoopNest
from porter.loops.host_values import Arguments, HostValue, Named, Number, list_names


@dataclass(frozen=True)
class ArgumentBuffer:
    """The elements of a tensor argument, in row-major order."""

    name: str


@dataclass(frozen=True)
class ResultBuffer:
    """A result of the call, by its place among those."""

    index: int


@dataclass(frozen=True)
class Temporary:
    """Memory between kernels."""

    size: HostValue
    dtype: DType


@dataclass(frozen=True)
class Table:
    """Constant elements of the graph, the same in every call of the case."""

    elements: tuple[Number, ...]
    dtype: DType


Role = ArgumentBuffer | ResultBuffer | Temporary | Table


@dataclass(frozen=True)
class SymbolicNest:
    """A loop nest, and how many turns its row loops have together: threads of a map, else rows."""

    nest: LoopNest
    rows: HostValue


@dataclass(frozen=True)
class SymbolicProgram:
    """What calls of one case compute, kernel by kernel.

    `when` holds for the calls of the case and no others; `dtypes` are the element types of `key`, the first tensor
    argument, that share the program, of which the nests have the first. `calls` were all foretold. `conversions` are
    the types that a tensor of 64-bit integers may have instead, or a floating one besides that of `key`. `required` are
    optional tensors without which the old code raises.
    """

    name: str  # of the overload
    when: tuple[Condition, ...]
    key: str
    dtypes: tuple[DType, ...]
    nests: tuple[SymbolicNest, ...]
    roles: Mapping[Buffer, Role]
    numbers: tuple[Named, ...]
    example: Arguments
    calls: tuple[Arguments, ...]
    conversions: Mapping[str, tuple[DType, ...]] = field(default_factory=dict)
    required: tuple[str, ...] = ()


@dataclass(frozen=True)
class LostCall:
    """A call that nothing is known of, and why: its run raised, or no program computes it."""

    arguments: Arguments
    why: str


@dataclass(frozen=True)
class Programs:
    """The cases of an overload, the most general first, and why other calls have no program.

    Of calls that are `lost` there is one of each kind.
    """

    name: str
    cases: tuple[SymbolicProgram, ...]
    left: tuple[PorterError, ...] = ()
    lost: tuple[LostCall, ...] = ()

    @property
    def calls(self) -> tuple[Arguments, ...]:
        """The recorded calls that are computed."""
        return tuple(call for case in self.cases for call in case.calls)


def list_loaded(program: SymbolicProgram) -> frozenset[str]:
    """The tensor arguments whose elements kernels read."""
    roles = (program.roles[buffer] for nest in program.nests for buffer in nest.nest.reads())
    return frozenset(role.name for role in roles if isinstance(role, ArgumentBuffer))


def list_read(programs: Programs) -> frozenset[str]:
    """The tensors that the kernels of all cases read, and the arguments that their numbers are computed from."""
    roles = (role for case in programs.cases for role in case.roles.values())
    tensors = frozenset(role.name for role in roles if isinstance(role, ArgumentBuffer))
    return tensors.union(*(list_names(number.value) for case in programs.cases for number in case.numbers))
