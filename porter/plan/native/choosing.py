"""Host code that chooses among the cases of an operator: by the types of its tensors, and by its arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from porter.aten.condition import Condition
from porter.core.dtypes import INT, Kind
from porter.core.errors import PorterError
from porter.languages.statements import name_tokens
from porter.loops.host_values import Scalar
from porter.loops.program import Programs
from porter.metal.native.cases import UNKNOWN_CONDITION
from porter.metal.native.elements import NARROW
from porter.metal.native.host_values import Names, write_value
from porter.metal.native.launch import Launch, find_locals
from porter.mpsgraph.conditions import holds

_GIVEN = ".has_value()"
_COMPARED = re.compile(r"(?P<name>\w+) (?P<sign>==|<|>) (?P<number>\S+)")
_INFINITY = "std::numeric_limits<double>::infinity()"
_OF_KIND: Mapping[Kind, str] = {
    Kind.FLOATING: "at::isFloatingType({})", Kind.INTEGRAL: "at::isIntegralType({}, /*includeBool=*/false)",
    Kind.BOOL: "{} == kBool", Kind.COMPLEX: "at::isComplexType({})",
}  # fmt: skip


def list_suffixes(programs: Programs) -> tuple[str, ...]:
    """What the names of the kernels of cases end with: nothing for the last, else the kind of type that only it has."""
    kinds = [{dtype.kind for dtype in case.dtypes} for case in programs.cases]
    of_kind = [next(iter(each)).name.lower() if len(each) == 1 and kinds.count(each) == 1 else "" for each in kinds]
    made = [f"_{kind}" if kind else f"_case{i + 1}" for i, kind in enumerate(of_kind)]
    return (*made[:-1], "")


def write_cases(
    programs: Programs, launches: Sequence[Launch], kernels: Sequence[Sequence[str]], names: Names, body: str
) -> str:
    """The launches of all cases, each where its condition holds; one of the kernel's name if only that differs.

    `kernels` are the names of those of each case, and `body` is the rest of the function. Raises PTR376.
    """
    alike = {_with_name(launch.text, kernel[0]) for launch, kernel in zip(launches, kernels, strict=True)}
    if len(launches) > 1 and len(alike) == 1 and all(len(each) == 1 for each in kernels):
        chosen = _choose_name(programs, [each[0] for each in kernels], names, body)
        return f"const std::string kernel = {chosen};\n{alike.pop()}"
    return "\n".join(_join_cases(programs, launches, names, body))


def _with_name(launch: str, kernel: str) -> str:
    """A launch of the kernel that a variable names."""
    return launch.replace(f'"{kernel}_" + ', 'kernel + "_" + ').replace(f', "{kernel}", ', ", kernel, ")


def _choose_name(programs: Programs, kernels: Sequence[str], names: Names, body: str) -> str:
    *conditional, last = kernels
    tests = [_write_test(programs, i, names, body) for i, _ in enumerate(conditional)]
    chosen = "".join(f'{test} ? "{kernel}" : ' for test, kernel in zip(tests, conditional, strict=True))
    return f'{chosen}"{last}"'


def _write_test(programs: Programs, at: int, names: Names, body: str) -> str:
    """The condition of a case that is not the last."""
    conditions = (_write_condition(each, names, body) for each in programs.cases[at].when)
    tests = [*_write_types(programs, at, names), *conditions]
    if not tests:
        raise _refuse("two cases hold for the same calls")
    return " && ".join(tests)


def _refuse(what: str) -> PorterError:
    return PorterError("PTR376", what, hint="See docs/errors/PTR376.md.")


def _join_cases(programs: Programs, launches: Sequence[Launch], names: Names, body: str) -> Iterator[str]:
    """The launches of all cases, each under its condition but the last; what all begin with comes first."""
    texts = [launch.text.splitlines() for launch in launches]
    if len(texts) == 1:
        yield from texts[0]
        return
    shared = _count_shared(texts)
    yield from texts[0][:shared]
    *conditional, last = (lines[shared:] for lines in texts)
    for i, lines in enumerate(conditional):
        yield f"{'} else ' if i else ''}if ({_write_test(programs, i, names, body)}) {{"
        yield from lines
    yield from ("} else {", *last, "}")


def _count_shared(texts: Sequence[Sequence[str]]) -> int:
    """How many statements, of a line each, all launches begin with."""
    alike = takewhile(lambda lines: len(set(lines)) == 1 and lines[0].endswith(";"), zip(*texts, strict=False))
    return sum(1 for _ in alike)


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


def _write_given(tensor: str, names: Names) -> str:
    """Whether a tensor is given that may be left out: an optional one may also have a tensor that is undefined."""
    variable = names.variable(tensor)
    return f"({variable}{_GIVEN} && {variable}->defined())" if variable in names.optional else f"{variable}.defined()"


def _write_condition(condition: Condition, names: Names, body: str) -> str:
    """A condition on arguments of the schema, on the variables of the function. Raises PTR376 if it is not known."""
    if condition.text == UNKNOWN_CONDITION:
        raise _refuse("the calls of one case have nothing in common that others lack")
    compared = _COMPARED.fullmatch(condition.text)
    if compared and names.types.get(compared["name"], "").startswith("Scalar"):
        return _write_comparison(compared, condition.holds, names, body)
    parts, last = [], 0
    for token in name_tokens(condition.text):
        if names.types.get(token.text) == "Tensor?" and condition.text.startswith(_GIVEN, token.end):
            parts += [condition.text[last : token.start], _write_given(token.text, names)]
            last = token.end + len(_GIVEN)
        elif token.text in names.types:
            is_plain = condition.text[token.end : token.end + 1] != "."
            converted = ".to<double>()" if is_plain and names.types[token.text].startswith("Scalar") else ""
            parts += [condition.text[last : token.start], names.variable(token.text), converted]
            last = token.end
    text = "".join([*parts, condition.text[last:]])
    return text if condition.holds else f"!({text})"


def _write_comparison(compared: re.Match[str], is_met: bool, names: Names, body: str) -> str:
    """Whether a scalar is equal to a number, less or greater; one that is left out is none of these."""
    name, sign, number = compared["name"], compared["sign"], compared["number"]
    variable, value = names.variable(name), write_value(Scalar(name), names)
    is_given = not names.types[name].endswith("?")
    for local, default in find_locals(body, value):
        if default is None or holds(f"{name} {sign} {number}", {name: default}) is False:
            value, is_given = local, True
    text = f"{value} {sign} {number.replace('inf', _INFINITY)}"
    if not is_given:
        text = f"{variable}.has_value() && {text}"
    if is_met:
        return text
    return text.replace(" == ", " != ") if is_given and sign == "==" else f"!({text})"
