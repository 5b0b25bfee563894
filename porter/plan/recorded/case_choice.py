"""Host code that chooses among the cases of an operator: by the types of its tensors, and by its arguments."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from porter.core.dtypes import BY_METAL, INT, Kind
from porter.core.errors import explained
from porter.languages.identifiers import rename_identifiers
from porter.loops.host_values import Scalar
from porter.loops.program import Programs, SymbolicProgram
from porter.metal.codegen.elements import NARROW
from porter.metal.codegen.host_code import KERNEL, Branches, Launch, Node, declare, hoist
from porter.metal.codegen.host_values import Names, write_given, write_value
from porter.metal.codegen.result_types import chooses_type, takes_bools_alone
from porter.mpsgraph.conditions import UNKNOWN, Answered, Compared, Flag, Present

_REDUCTIONS: Mapping[object, str] = {0: "none", 1: "mean", 2: "sum"}  # ATen/core/Reduction.h
_NUMBERS = {math.inf: "inf", -math.inf: "negative_inf", 0: "zero"}
# How recordings differ in which dimensions a list names; ATen has no such functions.
_NAMED_DIMS = ("names_all_dims(", "names_first_dims(", "names_last_dims(", "names_adjacent_dims(")
_NUMBER_TYPES = ("float", "int", "SymInt")
_INFINITY = "std::numeric_limits<double>::infinity()"
_OF_KIND: Mapping[Kind, str] = {
    Kind.FLOATING: "at::isFloatingType({})", Kind.INTEGRAL: "at::isIntegralType({}, /*includeBool=*/false)",
    Kind.BOOL: "{} == kBool", Kind.COMPLEX: "at::isComplexType({})",
}  # fmt: skip


def list_suffixes(programs: Programs) -> tuple[str, ...]:
    """What the names of the kernels of cases end with: nothing for the last, else what only it has.

    That is its kind of type, or the flag, the number or the reduction that its condition asks for.
    """
    kinds = [{dtype.kind for dtype in case.dtypes} for case in programs.cases]
    of_kind = [next(iter(each)).name.lower() if len(each) == 1 and kinds.count(each) == 1 else "" for each in kinds]
    named = [kind or _name_condition(case) for kind, case in zip(of_kind, programs.cases, strict=True)]
    named = [f"of_{name}" if name.partition("_")[0] in BY_METAL else name for name in named]
    made = [f"_{name}" if name and named.count(name) == 1 else f"_case{i + 1}" for i, name in enumerate(named)]
    return (*made[:-1], "")


def _name_condition(case: SymbolicProgram) -> str:
    """What is all of a case's condition, as a part of a name; nothing if that is more than a flag or one value."""
    only = case.when[0] if len(case.when) == 1 else None
    if only is None or not only.holds:
        return ""
    match only.question:
        case Compared("reduction", "==", value):
            return _REDUCTIONS.get(value, "")
        case Compared(name, "==", int() | float() as number) if name.isidentifier():
            is_plain = math.isfinite(number) and number >= 0 and number == int(number)
            return _NUMBERS.get(number) or (f"{name}_{int(number)}" if is_plain else "")
        case Flag(name) if name.isidentifier():
            return name
    return ""


def write_cases(programs: Programs, launches: Sequence[Launch], names: Names) -> tuple[Node, ...]:
    """The launches of all cases, each where its condition holds; one of the kernel's name if only that differs.

    What all have is outside of the branches. Raises PTR376.
    """
    tests = [*(_write_test(programs, i, names) for i, _ in enumerate(launches[:-1])), ""]
    grouped = groupby(zip(launches, tests, strict=True), key=lambda case: case[0].with_variable().nodes)
    chosen, bodies = zip(*(_write_group(alike, list(group)) for alike, group in grouped), strict=True)
    if len(bodies) == 1:
        return tuple(bodies[0])
    hoisted = hoist(bodies)
    return (*hoisted.before, Branches(chosen, hoisted.branches), *hoisted.behind)


def _write_group(alike: tuple[Node, ...], cases: Sequence[tuple[Launch, str]]) -> tuple[str, tuple[Node, ...]]:
    """The test and the nodes of cases that follow each other and differ in the name of their kernel alone."""
    if len(cases) == 1:
        [(launch, test)] = cases
        return test, launch.nodes
    tests = [test for _, test in cases]
    *others, last = (launch.kernels[0] for launch, _ in cases)
    chosen = "".join(f'{test} ? "{kernel}" : ' for kernel, test in zip(others, tests, strict=False))
    joined = " || ".join(f"({test})" if " && " in test else test for test in tests) if all(tests) else ""
    return joined, (declare(KERNEL, f'{chosen}"{last}"', "std::string"), *alike)


def _write_test(programs: Programs, at: int, names: Names) -> str:
    """The condition of a case that is not the last."""
    case = programs.cases[at]
    left = [each for each in case.when if not _is_excluded(each, programs, at, names)]
    conditions = (_write_condition(each, names) for each in left or case.when)
    tests = [*_write_types(programs, at, names), *conditions]
    if not tests:
        raise explained("PTR376", "two cases hold for the same calls")
    return " && ".join(f"({each})" if " || " in each and len(tests) > 1 else each for each in tests)


def _is_excluded(condition: Answered, programs: Programs, at: int, names: Names) -> bool:
    """Whether an earlier case, which alone asks for the opposite, has taken the calls that do not meet a condition."""
    return any(
        each.when == (condition.opposite,) and not list(_write_types(programs, i, names))
        for i, each in enumerate(programs.cases[:at])
    )


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
        yield " || ".join(listed)
    elif takes_bools_alone(case) and chooses_type(names):
        result = names.member("result0")
        yield f"{tensor}scalar_type() == kBool || {result}scalar_type() == kBool"
    else:
        yield _OF_KIND[next(iter(kinds))].format(f"{tensor}scalar_type()")


def _write_condition(condition: Answered, names: Names) -> str:
    """A condition on arguments of the schema, on the variables of the function. Raises PTR376 if it is not known."""
    if condition == UNKNOWN:
        raise explained("PTR376", "the calls of one case have nothing in common that others lack")
    match condition.question:
        case Flag(name) if name.startswith(_NAMED_DIMS):
            raise explained(
                "PTR376", "cases differ in which dimensions a list names, and no kernel computes all of them"
            )
        case Compared(name) as compared if names.types.get(name, "").startswith("Scalar"):
            return _write_comparison(compared, condition.holds, names)
        case Compared(name) as compared if names.types.get(name) in _NUMBER_TYPES:
            return _compare(names.variable(name), compared, condition.holds)
        case Present(name) if names.types.get(name) == "Tensor?":
            given = write_given(name, names)
            text = f"({given})" if "&&" in given else given
        case Flag(name) if names.types.get(name, "").startswith("Scalar"):
            text = f"{names.variable(name)}.to<double>()"
        case question:
            variables = {name: names.variable(name) for name in names.types if name in names.variables}
            text = str(replace(question, name=rename_identifiers(question.name, variables)))
    if condition.holds:
        return text
    return f"!{text}" if text.isidentifier() or text.startswith("(") else f"!({text})"


def _write_comparison(compared: Compared, is_met: bool, names: Names) -> str:
    """Whether a scalar is equal to a number, less or greater; one that is left out is none of these."""
    variable, value = names.variable(compared.name), write_value(Scalar(compared.name), names)
    is_given = not names.types[compared.name].endswith("?")
    for local, default in names.code.find_scalars(value):
        if default is None or not compared.compare(default):
            value, is_given = local, True
    if is_given:
        return _compare(value, compared, is_met)
    text = f"{variable}.has_value() && {_compare(value, compared, True)}"
    return text if is_met else f"!({text})"


def _compare(value: str, compared: Compared, is_met: bool) -> str:
    """Whether a number in C++ compares as it is to, or does not; NaN is not less and not greater."""
    number = str(compared.value)
    if compared.value in (math.inf, -math.inf):
        number = f"{'-' if compared.value == -math.inf else ''}{_INFINITY}"
    if is_met or compared.sign == "==":
        return f"{value} {compared.sign if is_met else '!='} {number}"
    return f"!({value} {compared.sign} {number})"
