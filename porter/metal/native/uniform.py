"""Results whose elements are all the same: written where they are, whatever the strides, without a copy."""

from __future__ import annotations

from dataclasses import dataclass, replace

from porter.loops.expressions import Buffer, find_buffers
from porter.loops.fusion import Shape
from porter.loops.program import Programs, ResultBuffer, SymbolicProgram
from porter.metal.native.host_code import Line, declare

# The sizes and strides of the dimensions of a result, and how many there are.
ARGUMENTS = ("constant long* sizes", "constant long* strides", "constant uint& ndim")
PASSED = ("dims.sizes", "dims.strides", "static_cast<uint32_t>(dims.sizes.size())")


@dataclass(frozen=True)
class UniformResult(ResultBuffer):
    """The elements of a result by its own strides, in any order."""


def with_uniform(programs: Programs) -> Programs:
    """The programs with each case that writes one value to all elements of a result as one of all strides."""
    return replace(programs, cases=tuple(map(_generalize, programs.cases)))


def is_uniform(program: SymbolicProgram) -> bool:
    """Whether a program writes its result, which is all that it does, by the strides that it has."""
    return any(isinstance(role, UniformResult) for role in program.roles.values())


def _generalize(case: SymbolicProgram) -> SymbolicProgram:
    stores = [store for nest in case.nests for store in nest.nest.stores]
    if len(stores) != 1 or case.nests[0].nest.shape is not Shape.MAP or not stores[0].loops:
        return case
    [store] = stores
    role = case.roles[store.buffer]
    if not isinstance(role, ResultBuffer) or store.value.loops or find_buffers(store.value):
        return case
    return replace(case, roles={**case.roles, store.buffer: UniformResult(role.index)})


def place_uniform(_buffer: Buffer, index: str) -> str:
    """Where the result has the element of an index."""
    return f"strided_offset({index}, sizes, strides, ndim)"


def write_dims(tensor: str) -> Line:
    """A variable for the dimensions of a result, of which those that one stride goes over are one."""
    return declare("dims", f"merge_dims({tensor}, DimMask().set())")
