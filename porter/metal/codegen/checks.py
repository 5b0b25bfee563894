"""What host code checks before it launches kernels: types of tensors, optional ones, and results that callers give.

A kernel is named by the type of one tensor or two; all others are read as that, or as the one type that they had in all
calls. Another type would be read as these bytes, unless host code converts it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations

from porter.core import dtypes
from porter.core.dtypes import BY_METAL, LONG, DType, Kind
from porter.languages.patterns import has_code
from porter.loops.host_values import Given, HostValue
from porter.loops.optional import find_flag_of, list_readers
from porter.loops.program import ArgumentBuffer, ResultBuffer, SymbolicProgram, list_loaded
from porter.metal.codegen.elements import KEY
from porter.metal.codegen.host_code import Block, Line, Node
from porter.metal.codegen.host_values import Names
from porter.metal.codegen.kept_code import KeptCode
from porter.metal.codegen.kernel import NativeKernel
from porter.metal.codegen.reduced import find_strided
from porter.mpsgraph.conditions import Flag

_ALL_OTHERS = {each for each in dtypes.ALL if each.kind is Kind.INTEGRAL and each != LONG}
_ALL_FLOATING = {each for each in dtypes.ALL if each.kind is Kind.FLOATING}
_SAME_TYPES = ("checkSameType(", "checkAllSameType(")
ElementType = DType | str  # a type, or the tensor that has it, as what a member of it is called on


def write_type_checks(
    program: SymbolicProgram,
    kernels: Sequence[NativeKernel],
    names: Names,
    name_form: Callable[[str], str],
    find_flag: Callable[[str], str],
    converted: str = "",
) -> Iterator[Node]:
    """The checks of a launch; `name_form` gives the variable that kernels read a tensor from, and `find_flag` the one
    that says whether it is given: nothing if it always is. What stands for it may have the type of the first.

    None is needed of a tensor that is `converted`, that the function compares, or that is given the other's type.
    """
    for tensor in list_converted(program, kernels):
        if not _compares(names.code, names.variable(tensor), _find_conversion(program, tensor, names)):
            yield Line(_check_converted(names, tensor, program.conversions[tensor], find_flag(tensor)))
    if names.code.has(*_SAME_TYPES):
        return
    common = {names.member(each) for each in names.common}
    for expected, tensors in _group(program, kernels, names, converted).items():
        unchecked = [each for each in tensors if not _compares(names.code, names.variable(each), expected)]
        unchecked = [each for each in unchecked if expected not in common or each not in names.common]
        key_type = names.member(program.key)
        alone = [each for each in unchecked if len(unchecked) == 1 or (expected != key_type and find_flag(each))]
        for each in alone:
            flag = find_flag(each) if expected != key_type else ""
            yield Line(_check(name_form(each), names.show(each), expected, f"!{flag} || " if flag else ""))
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
    return f"to({_spell(_find_conversion(program, tensor, names), short=True)})"


def _find_conversion(program: SymbolicProgram, tensor: str, names: Names) -> ElementType:
    """The type that a tensor is converted to."""
    return names.member(program.key) if _are_floating(program.conversions[tensor]) else LONG


def _are_floating(others: Collection[DType]) -> bool:
    return all(each.kind is Kind.FLOATING for each in others)


def _check_converted(names: Names, tensor: str, others: Collection[DType], flag: str) -> str:
    """The check of a tensor that is converted to 64-bit integers, or to the floating type of another."""
    given = f"{names.member(tensor)}scalar_type()"
    unless = f"!{flag} || " if flag else ""
    if _ALL_OTHERS.issubset(others):
        accepted, words = f"isIntegralType({given}, /*includeBool=*/false)", "an integral dtype"
    elif _ALL_FLOATING.issubset(others):
        accepted, words = f"isFloatingType({given})", "a floating point dtype"
    else:
        types = [dtype.aten for dtype in (others if _are_floating(others) else (LONG, *others))]
        accepted = " || ".join(f"{given} == ScalarType::{each}" for each in types)
        accepted, words = (f"({accepted})" if unless else accepted), f"dtype {' or '.join(types)}"
    return f'TORCH_CHECK({unless}{accepted}, "Expected {names.show(tensor)} to have {words}, but got ", {given});'


def write_agreement(given: str, made: str, code: KeptCode) -> Iterator[str]:
    """The check that an operand has the type that a kernel is chosen by, that of another tensor, `made`.

    None is needed if the code has it, or makes that tensor of the operand's type.
    """
    expected = f"{made}."
    options = [f"{given}.{member}()" for member in ("scalar_type", "options")]
    is_made = any(has_code(place["value"], *options) for place in code.find(f"{made} = $$value;"))
    if not is_made and not code.has(*_SAME_TYPES) and not _compares(code, given, expected):
        yield _check(given, given, expected)


def _check(tensor: str, what: str, expected: ElementType, unless: str = "") -> str:
    words = f'"Expected {what} to have dtype ", {_spell(expected)}, ", but got ", {tensor}.scalar_type()'
    return f"TORCH_CHECK({unless}{tensor}.scalar_type() == {_spell(expected)}, {words});"


def _group(
    program: SymbolicProgram, kernels: Sequence[NativeKernel], names: Names, converted: str
) -> dict[ElementType, list[str]]:
    """The tensors that have to be of a type."""
    tensors_by_type: dict[ElementType, list[str]] = {}
    others = (converted, *list_converted(program, kernels))
    for kernel in kernels:
        chosen = {each.name: each.tensor for each in kernel.elements.parameters}
        for buffer in kernel.buffers:
            role, spelled = program.roles[buffer], kernel.elements.types[buffer]
            if not isinstance(role, ArgumentBuffer) or role.name in (*others, *chosen.values()):
                continue
            key = chosen.get(spelled)
            tensors = tensors_by_type.setdefault(names.member(key) if key else BY_METAL[spelled], [])
            if role.name not in tensors:
                tensors.append(role.name)
    return tensors_by_type


def _spell(type_: ElementType, short: bool = False) -> str:
    if isinstance(type_, DType):
        return f"{'k' if short else 'ScalarType::'}{type_.aten}"
    return f"{type_}scalar_type()"


def _compares(code: KeptCode, variable: str, expected: ElementType) -> bool:
    """Whether a function compares the type of a variable with the one that is expected."""
    others = [_spell(expected), _spell(expected, short=True) if isinstance(expected, DType) else f"{expected}dtype()"]
    both = [(f"{variable}.{member}()", other) for member in ("scalar_type", "dtype") for other in others]
    return code.has(*(f"{a} == {b}" for pair in both for a, b in (pair, pair[::-1])))


def list_unguarded(program: SymbolicProgram, names: Names) -> Iterator[str]:
    """The optional tensors that kernels read in every call, or in every one that asks for what they compute of them."""
    for tensor in sorted(list_loaded(program)):
        is_required = tensor in program.required or find_flag_of(program, tensor) is None
        if names.types.get(tensor) == "Tensor?" and is_required:
            yield tensor


def write_required_checks(program: SymbolicProgram, names: Names, write: Callable[[HostValue], str]) -> Iterator[str]:
    """Checks that the function does not have; `write` gives the C++ of whether a tensor is given.

    It may have them for calls of the case alone: `training || has_total`, of one without training.
    """
    base = program.name.partition(".")[0]
    flags = [each.question.name for each in program.when if not each.holds and isinstance(each.question, Flag)]
    unless = [f"{names.variable(flag)} ||" for flag in flags if flag in names.types]
    for tensor in list_unguarded(program, names):
        given = write(Given(tensor))
        starts = [
            f"TORCH_CHECK({' '.join(some)} {given}" for n in range(len(unless) + 1) for some in combinations(unless, n)
        ]
        if not names.code.has(*(f"{start}{end}" for start in starts for end in ",)")):
            condition = _write_condition(program, tensor, given, write)
            yield f'TORCH_CHECK({condition}, "{base}: expected {tensor} to be given");'


def _write_condition(program: SymbolicProgram, tensor: str, given: str, write: Callable[[HostValue], str]) -> str:
    """That a tensor is given, or that no result is asked for which is computed from it."""
    flags = [find_flag_of(program, each) for each in sorted(list_readers(program, tensor))]
    asked = [write(each.value) for each in dict.fromkeys(flags) if each]
    if find_flag_of(program, tensor) is None or None in flags:
        return given
    given = f"({given})" if "&&" in given else given
    return f"{given} || !{asked[0]}" if len(asked) == 1 else f"{given} || !({' || '.join(asked)})"


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


def write_type_check(operand: str, result: str, names: Names) -> Line:
    """The check of ATen/native/ReduceOpsUtils.h (`get_result_or_self_value_dtype`): a result has an operand's type."""
    given, expected = f"{names.variable(result)}.scalar_type()", f"{names.member(operand)}scalar_type()"
    words = f'"Expected out tensor to have dtype ", {expected}, ", but got ", {given}, " instead"'
    return Line(f"TORCH_CHECK({given} == {expected}, {words});")


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
