"""Joins cases that one kernel can serve: they differ in the types of their tensors alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from porter.core.errors import PorterError
from porter.loops.program import SymbolicProgram
from porter.metal.native.kernel import KernelStyle, write_kernel


def join_cases(cases: Sequence[SymbolicProgram], style: KernelStyle) -> tuple[SymbolicProgram, ...]:
    """The cases, those joined whose kernels have one text as a template over all of their types."""
    made: list[SymbolicProgram] = []
    for case in cases:
        joined = next((at for at, other in enumerate(made) if _are_alike(other, case, style)), None)
        if joined is None:
            made.append(case)
        else:
            made[joined] = _join(made[joined], case)
    return tuple(made)


def _join(one: SymbolicProgram, other: SymbolicProgram) -> SymbolicProgram:
    """The first program for the calls of both."""
    types = tuple(dict.fromkeys((*one.dtypes, *other.dtypes)))
    return replace(one, dtypes=types, calls=(*one.calls, *other.calls))


def _are_alike(one: SymbolicProgram, other: SymbolicProgram, style: KernelStyle) -> bool:
    """Whether two programs are for the same arguments, and write the same kernels for all of their types."""
    if one.when != other.when or one.key != other.key or len(one.nests) != len(other.nests):
        return False
    if [nest.rows for nest in one.nests] != [nest.rows for nest in other.nests]:
        return False
    try:
        return _write(_join(one, other), style) == _write(_join(other, one), style)
    except PorterError:  # the types of one do not follow from those of the other
        return False


def _write(program: SymbolicProgram, style: KernelStyle) -> list[object]:
    names = {i: f"result{i}" for i, _ in enumerate(program.roles)}
    kernels = [write_kernel(program, nest, "kernel", names, style) for nest in program.nests]
    return [(kernel.source, [(each.name, each.value) for each in kernel.numbers]) for kernel in kernels]
