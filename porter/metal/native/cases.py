"""Joins cases that one kernel can serve: they differ in the types of their tensors alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from porter.core.errors import PorterError
from porter.loops.host_values import evaluate
from porter.loops.program import SymbolicProgram
from porter.metal.native.kernel import KernelStyle, write_kernel

UNKNOWN_CONDITION = "unknown condition"  # of cases that nothing separates


def join_cases(cases: Sequence[SymbolicProgram], style: KernelStyle) -> tuple[SymbolicProgram, ...]:
    """The cases, those joined whose kernels have one text as a template over all of their types.

    A case that was joined from others has the conditions that these have in common, and comes after all that were not;
    those without a condition come last, and of these the one of most types.
    """
    wide = _join_alike(cases, style, lambda one, other: True)
    joined = [each for each in wide if each not in cases]
    if any(set(one.dtypes) & set(other.dtypes) for i, one in enumerate(joined) for other in joined[:i]):
        return _join_alike(cases, style, lambda one, other: one.when == other.when)
    return tuple(sorted(wide, key=lambda each: (not each.when, each in joined, len(each.dtypes))))


def _join_alike(
    cases: Sequence[SymbolicProgram], style: KernelStyle, may_join: Callable[[SymbolicProgram, SymbolicProgram], bool]
) -> tuple[SymbolicProgram, ...]:
    made: list[SymbolicProgram] = []
    for case in cases:
        found = (i for i, each in enumerate(made) if may_join(each, case) and _are_alike(each, case, style))
        at = next(found, None)
        if at is None:
            made.append(case)
        else:
            made[at] = _join(made[at], case)
    return tuple(made)


def _join(one: SymbolicProgram, other: SymbolicProgram) -> SymbolicProgram:
    """The first program for the calls of both, which have the conditions in common that both need."""
    types = tuple(dict.fromkeys((*one.dtypes, *other.dtypes)))
    when = tuple(each for each in one.when if each in other.when and each.text != UNKNOWN_CONDITION)
    return replace(one, when=when, dtypes=types, calls=(*one.calls, *other.calls))


def _are_alike(one: SymbolicProgram, other: SymbolicProgram, style: KernelStyle) -> bool:
    """Whether two programs write the same kernels for all of their types, and launch them alike."""
    if one.key != other.key or len(one.nests) != len(other.nests):
        return False
    calls = (*one.calls, *other.calls)
    rows = [(a.rows, b.rows) for a, b in zip(one.nests, other.nests, strict=True)]
    if any(evaluate(a, call) != evaluate(b, call) for a, b in rows if a != b for call in calls):
        return False
    try:
        return _write(_join(one, other), style) == _write(_join(other, one), style)
    except PorterError:  # the types of one do not follow from those of the other
        return False


def _write(program: SymbolicProgram, style: KernelStyle) -> list[object]:
    names = {i: f"result{i}" for i, _ in enumerate(program.roles)}
    kernels = [write_kernel(program, nest, "kernel", names, style) for nest in program.nests]
    return [(kernel.source, [(each.name, each.value) for each in kernel.numbers]) for kernel in kernels]
