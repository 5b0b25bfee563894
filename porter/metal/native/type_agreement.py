"""Checks that the tensors which kernels read have the types that the kernels were chosen by.

A kernel is named by the type of one tensor or two; all others are read as that, or as the one type that they had in all
calls. Another type would be read as these bytes, unless host code converts it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence

from porter.core import dtypes
from porter.core.dtypes import LONG, DType, Kind
from porter.loops.program import ArgumentBuffer, SymbolicProgram
from porter.metal.native.elements import KEY
from porter.metal.native.host_code import Block, Line, Node
from porter.metal.native.host_values import Names
from porter.metal.native.kernel import NativeKernel
from porter.metal.native.reduced import find_strided

_ALL_OTHERS = {each for each in dtypes.ALL if each.kind is Kind.INTEGRAL and each != LONG}
_ALL_FLOATING = {each for each in dtypes.ALL if each.kind is Kind.FLOATING}
_SAME_TYPES = re.compile(r"\bcheck(?:All)?SameType\(")


def write_type_checks(
    program: SymbolicProgram,
    kernels: Sequence[NativeKernel],
    names: Names,
    body: str,
    name_form: Callable[[str], str],
    find_flag: Callable[[str], str],
    converted: str = "",
) -> Iterator[Node]:
    """The checks of a launch; `name_form` gives the variable that kernels read a tensor from, and `find_flag` the one
    that says whether it is given: nothing if it always is. What stands for it may have the type of the first.

    None is needed of a tensor that is `converted`, or that the function's `body` compares.
    """
    for tensor in list_converted(program, kernels):
        if not _compares(body, names.variable(tensor), _name_conversion(program, tensor, names)):
            yield Line(_check_converted(names, tensor, program.conversions[tensor], find_flag(tensor)))
    if _SAME_TYPES.search(body):
        return
    for expected, tensors in _group(program, kernels, names, converted).items():
        unchecked = [each for each in tensors if not _compares(body, names.variable(each), expected)]
        own = f"{names.member(program.key)}scalar_type()"
        alone = [each for each in unchecked if len(unchecked) == 1 or (expected != own and find_flag(each))]
        for each in alone:
            flag = find_flag(each) if expected != own else ""
            yield Line(_check(name_form(each), names.variable(each), expected, f"!{flag} || " if flag else ""))
        if together := [each for each in unchecked if each not in alone]:
            head = f"for (const auto& each : {{{', '.join(map(name_form, together))}}}) {{"
            yield Block(head, (Line(_check("each", "all tensors", expected)),))


def list_converted(program: SymbolicProgram, kernels: Sequence[NativeKernel]) -> list[str]:
    """The tensors that kernels read as one type and that callers may give as others; none read by strides."""
    buffers = [
        (program.roles[buffer], kernel.elements.types[buffer]) for kernel in kernels for buffer in kernel.buffers
    ]
    strided = find_strided(program)
    read = [(role.name, type_) for role, type_ in buffers if isinstance(role, ArgumentBuffer) and role is not strided]
    return [name for name, type_ in dict.fromkeys(read) if type_ in _list_spelled(program.conversions.get(name, ()))]


def _list_spelled(others: Collection[DType]) -> tuple[str, ...]:
    """How kernels spell the type that is converted to."""
    return () if not others else (KEY,) if _are_floating(others) else (LONG.metal,)


def write_conversion_of(program: SymbolicProgram, tensor: str, names: Names) -> str:
    """The call that converts a tensor to the type that kernels read it as."""
    return f"to({_name_conversion(program, tensor, names).replace('ScalarType::', 'k')})"


def _name_conversion(program: SymbolicProgram, tensor: str, names: Names) -> str:
    """The type that a tensor is converted to."""
    is_of_key = _are_floating(program.conversions[tensor])
    return f"{names.member(program.key)}scalar_type()" if is_of_key else _name_type(LONG.metal)


def _are_floating(others: Collection[DType]) -> bool:
    return all(each.kind is Kind.FLOATING for each in others)


def _check_converted(names: Names, tensor: str, others: Collection[DType], flag: str) -> str:
    """The check of a tensor that is converted to 64-bit integers, or to the floating type of another."""
    variable, given = names.variable(tensor), f"{names.member(tensor)}scalar_type()"
    unless = f"!{flag} || " if flag else ""
    if _ALL_OTHERS.issubset(others):
        accepted, words = f"isIntegralType({given}, /*includeBool=*/false)", "an integral dtype"
    elif _ALL_FLOATING.issubset(others):
        accepted, words = f"isFloatingType({given})", "a floating point dtype"
    else:
        types = [dtype.aten for dtype in (others if _are_floating(others) else (LONG, *others))]
        accepted = " || ".join(f"{given} == ScalarType::{each}" for each in types)
        accepted, words = (f"({accepted})" if unless else accepted), f"dtype {' or '.join(types)}"
    return f'TORCH_CHECK({unless}{accepted}, "Expected {variable} to have {words}, but got ", {given});'


def write_agreement(given: str, made: str, body: str) -> Iterator[str]:
    """The check that an operand has the type that a kernel is chosen by, that of another tensor, `made`.

    None is needed if the body has it, or makes that tensor of the operand's type.
    """
    expected = f"{made}.scalar_type()"
    is_made = re.search(rf"\b{made}\s*=[^;=]*\b{re.escape(given)}\.(?:scalar_type|options)\(\)", body)
    if not is_made and not _SAME_TYPES.search(body) and not _compares(body, given, expected):
        yield _check(given, given, expected)


def _check(given: str, what: str, expected: str, unless: str = "") -> str:
    words = f'"Expected {what} to have dtype ", {expected}, ", but got ", {given}.scalar_type()'
    return f"TORCH_CHECK({unless}{given}.scalar_type() == {expected}, {words});"


def _group(
    program: SymbolicProgram, kernels: Sequence[NativeKernel], names: Names, converted: str
) -> dict[str, list[str]]:
    """The tensors that have to be of a type, by the expression of it."""
    found: dict[str, list[str]] = {}
    others = (converted, *list_converted(program, kernels))
    for kernel in kernels:
        chosen = {each.name: each.tensor for each in kernel.elements.parameters}
        for buffer in kernel.buffers:
            role, spelled = program.roles[buffer], kernel.elements.types[buffer]
            if not isinstance(role, ArgumentBuffer) or role.name in (*others, *chosen.values()):
                continue
            key = chosen.get(spelled)
            expected = f"{names.member(key)}scalar_type()" if key else _name_type(spelled)
            tensors = found.setdefault(expected, [])
            if role.name not in tensors:
                tensors.append(role.name)
    return found


def _name_type(metal: str) -> str:
    [dtype] = (each for each in dtypes.ALL if each.metal == metal)
    return f"ScalarType::{dtype.aten}"


def _compares(body: str, variable: str, expected: str) -> bool:
    """Whether a function compares the type of a variable with the one that is expected."""
    ours = rf"\b{re.escape(variable)}\.(?:scalar_type|dtype)\(\)"
    theirs = re.escape(expected).replace("scalar_type", "(?:scalar_type|dtype)")
    if expected.startswith("ScalarType::"):
        theirs = rf"(?:(?:at::|c10::)?ScalarType::|(?:at::)?k){expected.removeprefix('ScalarType::')}\b"
    return re.search(rf"{ours}\s*==\s*{theirs}|\b{theirs}\s*==\s*{ours}", body) is not None
