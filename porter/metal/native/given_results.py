"""Results that callers give and nothing has checked: they may be of another type, or share memory with an operand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from porter.loops.program import ArgumentBuffer, ResultBuffer, SymbolicProgram
from porter.metal.native.elements import KEY
from porter.metal.native.host_values import Names
from porter.metal.native.kernel import NativeKernel
from porter.metal.native.reduced import find_strided


def find_given(program: SymbolicProgram, kernels: Sequence[NativeKernel], names: Names) -> Iterator[str]:
    """The results, as `result0`, that callers give in the type that kernels have from another tensor.

    Those of reductions over dimensions, which are resized first, are checked where that is done.
    """
    if find_strided(program) is not None:
        return
    for kernel in kernels:
        for buffer in kernel.buffers:
            role = program.roles[buffer]
            if isinstance(role, ResultBuffer) and kernel.elements.types[buffer] == KEY:
                result = f"result{role.index}"
                if names.variable(result) in names.given and program.key != result:
                    yield result


def write_type_check(program: SymbolicProgram, result: str, names: Names) -> str:
    given, key = names.variable(result), names.member(program.key)
    words = f'"Expected out tensor to have dtype ", {key}scalar_type(), ", but got ", {given}.scalar_type(), " instead"'
    return f"TORCH_CHECK({given}.scalar_type() == {key}scalar_type(), {words});"


def write_aliases(
    program: SymbolicProgram,
    kernels: Sequence[NativeKernel],
    result: str,
    names: Names,
    name_form: Callable[[str], str],
) -> str:
    """What else has to hold of a result that kernels write directly: no operand is in its memory.

    `name_form` gives the variable that kernels read a tensor from, which is defined where that is left out.
    """
    roles = [program.roles[buffer] for kernel in kernels for buffer in kernel.buffers]
    read = dict.fromkeys(role.name for role in roles if isinstance(role, ArgumentBuffer))
    return "".join(f" && !{names.variable(result)}.is_alias_of({name_form(each)})" for each in read)
