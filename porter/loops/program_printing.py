"""Prints a symbolic program: its numbers, then its kernels as pseudocode with the numbers by name."""

from __future__ import annotations

from collections.abc import Iterator

from porter.loops.expressions import Buffer
from porter.loops.host_values import describe
from porter.loops.naming import name_tensor
from porter.loops.printing import nest_lines
from porter.loops.program import ArgumentBuffer, ResultBuffer, SymbolicProgram, Table, Temporary


def program_lines(program: SymbolicProgram) -> Iterator[str]:
    """Lines such as `input_size_0 = self.size(0)`, then those of the kernels, each with its number of rows."""
    if program.when:
        yield f"when {', '.join(map(str, program.when))}"
    yield from (f"{number.name} = {describe(number.value)}" for number in program.numbers)
    names = name_memory(program)
    yield from (
        f"{names[buffer]}: {describe(role.size)} of {role.dtype.metal}"
        for buffer, role in program.roles.items()
        if isinstance(role, Temporary)
    )
    for each in program.nests:
        yield from nest_lines(each.nest, names)


def name_memory(program: SymbolicProgram) -> dict[Buffer, str]:
    """The names of buffers: those of arguments, `output`, `temporary0`, `table0`."""
    names: dict[Buffer, str] = {}
    counts = {Temporary: 0, Table: 0}
    has_one = sum(isinstance(role, ResultBuffer) for role in program.roles.values()) == 1
    for buffer, role in program.roles.items():
        match role:
            case ArgumentBuffer(name):
                names[buffer] = name_tensor(name)
            case ResultBuffer(index):
                names[buffer] = "output" if has_one else f"output{index}"
            case Temporary() | Table():
                names[buffer] = f"{type(role).__name__.lower()}{counts[type(role)]}"
                counts[type(role)] += 1
    return names
