"""Host code that chooses among the cases of an operator: by the types of its tensors, and by its arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from porter.aten.condition import Condition
from porter.core.dtypes import INT, Kind
from porter.core.errors import PorterError
from porter.languages.statements import name_tokens
from porter.loops.program import Programs, SymbolicProgram
from porter.metal.native.cases import UNKNOWN_CONDITION
from porter.metal.native.elements import NARROW
from porter.metal.native.host_values import Names, write_given
from porter.metal.native.launch import Launch

_GIVEN = ".has_value()"
_OF_KIND: Mapping[Kind, str] = {
    Kind.FLOATING: "at::isFloatingType({})", Kind.INTEGRAL: "at::isIntegralType({}, /*includeBool=*/false)",
    Kind.BOOL: "{} == kBool", Kind.COMPLEX: "at::isComplexType({})",
}  # fmt: skip


def list_suffixes(programs: Programs) -> tuple[str, ...]:
    """What the names of the kernels of cases end with: nothing for the last, else the kind of type that only it has."""
    kinds = [{dtype.kind for dtype in case.dtypes} for case in programs.cases]
    of_kind = [next(iter(each)).name.lower() if len(each) == 1 and kinds.count(each) == 1 else "" for each in kinds]
    named = zip(of_kind, programs.cases, strict=True)
    made = [
        f"_{name}" if (name := kind or _find_flag(case)) else f"_case{i + 1}" for i, (kind, case) in enumerate(named)
    ]
    return (*made[:-1], "")


def _find_flag(case: SymbolicProgram) -> str:
    """The flag that is all of a case's condition; nothing if it has another."""
    only = case.when[0] if len(case.when) == 1 else None
    return only.text if only and only.holds and re.fullmatch(r"[a-z]\w*", only.text) else ""


def write_cases(programs: Programs, launches: Sequence[Launch], kernels: Sequence[Sequence[str]], names: Names) -> str:
    """The launches of all cases, each where its condition holds; one of the kernel's name if only that differs.

    `kernels` are the names of those of each case. Raises PTR376.
    """
    alike = {_with_name(launch.text, kernel[0]) for launch, kernel in zip(launches, kernels, strict=True)}
    if len(launches) > 1 and len(alike) == 1 and all(len(each) == 1 for each in kernels):
        chosen = _choose_name(programs, [each[0] for each in kernels], names)
        return f"const std::string kernel = {chosen};\n{alike.pop()}"
    return "\n".join(_join_cases(programs, launches, names))


def _with_name(launch: str, kernel: str) -> str:
    """A launch of the kernel that a variable names."""
    return launch.replace(f'"{kernel}_" + ', 'kernel + "_" + ').replace(f', "{kernel}", ', ", kernel, ")


def _choose_name(programs: Programs, kernels: Sequence[str], names: Names) -> str:
    *conditional, last = kernels
    chosen = "".join(f'{_write_test(programs, i, names)} ? "{kernel}" : ' for i, kernel in enumerate(conditional))
    return f'{chosen}"{last}"'


def _write_test(programs: Programs, at: int, names: Names) -> str:
    """The condition of a case that is not the last."""
    conditions = (_write_condition(each, names) for each in programs.cases[at].when)
    tests = [*_write_types(programs, at, names), *conditions]
    if not tests:
        raise _refuse("two cases hold for the same calls")
    return " && ".join(tests)


def _refuse(what: str) -> PorterError:
    return PorterError("PTR376", what, hint="See docs/errors/PTR376.md.")


def _join_cases(programs: Programs, launches: Sequence[Launch], names: Names) -> Iterator[str]:
    """The launches of all cases, each under its condition but the last."""
    *conditional, last = zip(programs.cases, launches, strict=True)
    if not conditional:
        yield last[1].text
        return
    for i, (_, launch) in enumerate(conditional):
        yield f"{'} else ' if i else ''}if ({_write_test(programs, i, names)}) {{\n{launch.text}"
    yield f"}} else {{\n{last[1].text}\n}}"


def _write_types(programs: Programs, at: int, names: Names) -> Iterator[str]:
    """The condition on the element type of a case, where later cases are of others."""
    case, later = programs.cases[at], programs.cases[at + 1 :]
    if all(set(case.dtypes) >= set(each.dtypes) for each in later):
        return
    tensor = names.member(case.key)
    kinds = {dtype.kind for dtype in case.dtypes}
    others = {dtype.kind for each in later for dtype in each.dtypes if dtype not in case.dtypes}
    if kinds & others or len(kinds) > 1:
        known = {dtype for each in programs.cases for dtype in each.dtypes}
        narrow = [dtype for dtype in NARROW if INT in case.dtypes and dtype not in known]  # as int is
        listed = (f"{tensor}scalar_type() == ScalarType::{each.aten}" for each in (*case.dtypes, *narrow))
        yield f"({' || '.join(listed)})"
    else:
        yield _OF_KIND[next(iter(kinds))].format(f"{tensor}scalar_type()")


def _write_condition(condition: Condition, names: Names) -> str:
    """A condition on arguments of the schema, on the variables of the function. Raises PTR376 if it is not known."""
    if condition.text == UNKNOWN_CONDITION:
        raise _refuse("the calls of one case have nothing in common that others lack")
    parts, last = [], 0
    for token in name_tokens(condition.text):
        if names.types.get(token.text) == "Tensor?" and condition.text.startswith(_GIVEN, token.end):
            given = write_given(token.text, names)
            parts += [condition.text[last : token.start], f"({given})" if "&&" in given else given]
            last = token.end + len(_GIVEN)
        elif token.text in names.types:
            is_plain = condition.text[token.end : token.end + 1] != "."
            converted = ".to<double>()" if is_plain and names.types[token.text].startswith("Scalar") else ""
            parts += [condition.text[last : token.start], names.variable(token.text), converted]
            last = token.end
    text = "".join([*parts, condition.text[last:]])
    return text if condition.holds else f"!({text})"
