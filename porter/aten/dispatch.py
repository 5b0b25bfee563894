"""The element types that one of ATen's dispatch macros covers.

Source: aten/src/ATen/Dispatch.h and Dispatch_v2.h. Macros that a file defines on top of these are expanded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from porter.aten.branches import Facts, resolve_scalar_type
from porter.core.dtypes import HALF, SCALAR_TYPES, Kind, of_kind
from porter.languages import cpp
from porter.languages.cpp_parser import parse_expression
from porter.languages.directives import Macro

_INTEGERS, _FLOATS, _COMPLEXES = (
    frozenset(each.aten for each in of_kind(kind, basic=True)) for kind in (Kind.INTEGRAL, Kind.FLOATING, Kind.COMPLEX)
)
_BASES = {
    "FLOATING_TYPES_AND_HALF": _FLOATS | {HALF.aten},
    "REDUCED_FLOATING_TYPES": frozenset(each.aten for each in SCALAR_TYPES if each.is_reduced),
    "FLOATING_AND_COMPLEX_TYPES": _FLOATS | _COMPLEXES,
    "FLOATING_TYPES": _FLOATS,
    "COMPLEX_TYPES": _COMPLEXES,
    "INTEGRAL_TYPES": _INTEGERS,
    "ALL_TYPES_AND_COMPLEX": _INTEGERS | _FLOATS | _COMPLEXES,
    "ALL_TYPES": _INTEGERS | _FLOATS,
}
_V2 = {
    "AT_FLOAT8_TYPES": frozenset[str](),
    "AT_BAREBONES_UNSIGNED_TYPES": frozenset[str](),
    "AT_QINT_TYPES": frozenset[str](),
    "AT_INTEGRAL_TYPES": _INTEGERS,
    "AT_INTEGRAL_TYPES_V2": _INTEGERS,
    "AT_FLOATING_TYPES": _FLOATS,
    "AT_COMPLEX_TYPES": _COMPLEXES,
    "AT_ALL_TYPES": _BASES["ALL_TYPES"],
    "AT_ALL_TYPES_AND_COMPLEX": _BASES["ALL_TYPES_AND_COMPLEX"],
}
_ONE_CASE = "AT_DISPATCH_CASE"
_NAME = re.compile(rf"AT_DISPATCH_(CASE_)?({'|'.join(sorted(_BASES, key=len, reverse=True))})(?:_AND(\d*))?\Z")


@dataclass(frozen=True)
class DispatchCase:
    """One case of a dispatch: its element types (ATen names), the type dispatched on, and the lambda that runs."""

    types: frozenset[str]
    selector: cpp.Expr
    body: cpp.LambdaExpr


def find_dispatch_cases(call: cpp.Call, macros: dict[str, Macro], facts: Facts) -> tuple[DispatchCase, ...] | None:
    """Returns the cases of a dispatch macro, or None if the call is not a known dispatch."""
    if not isinstance(call.function, cpp.Name):
        return None
    name = call.function.path
    body = _find_lambda(call.arguments)
    if name == "AT_DISPATCH_SWITCH":
        return _read_switch(call, facts)
    if body is None or len(call.arguments) < 3:
        return None
    if name == "AT_DISPATCH_V2":
        return (DispatchCase(_read_v2_types(call.arguments[3:], facts), call.arguments[0], body),)
    known = _NAME.match(name)
    if known and not known.group(1):
        extra = len(call.arguments) - 3
        return (DispatchCase(_read_types(known, call.arguments[:extra], facts), call.arguments[extra], body),)
    own = _expand_own_macro(macros, name, facts)
    return None if own is None else (DispatchCase(own, call.arguments[0], body),)


def _read_switch(call: cpp.Call, facts: Facts) -> tuple[DispatchCase, ...] | None:
    found = []
    for case in call.arguments[2:]:
        if not isinstance(case, cpp.Call) or not isinstance(case.function, cpp.Name):
            return None
        body = _find_lambda(tuple(map(facts.resolve, case.arguments)))
        types = _read_case_types(case.function.path, case.arguments[:-1], facts)
        if body is None or types is None:
            return None
        found.append(DispatchCase(types, call.arguments[0], body))
    return tuple(found)


def _read_case_types(name: str, extra: tuple[cpp.Expr, ...], facts: Facts) -> frozenset[str] | None:
    """Returns the types of one case: those of its macro, or only those it names (`AT_DISPATCH_CASE(kHalf, ...)`)."""
    known = _NAME.match(name)
    if known:
        return _read_types(known, extra, facts)
    return frozenset(filter(None, (resolve_scalar_type(e, facts) for e in extra))) if name == _ONE_CASE else None


def _find_lambda(arguments: tuple[cpp.Expr, ...]) -> cpp.LambdaExpr | None:
    for argument in arguments:
        if isinstance(argument, cpp.LambdaExpr):
            return argument
        if isinstance(argument, cpp.Call) and argument.arguments and cpp.is_at_wrap(argument):
            return _find_lambda(argument.arguments)
    return None


def _read_types(known: re.Match[str], extra: tuple[cpp.Expr, ...], facts: Facts) -> frozenset[str]:
    return _BASES[known.group(2)] | {name for name in (resolve_scalar_type(e, facts) for e in extra) if name}


def _read_v2_types(arguments: tuple[cpp.Expr, ...], facts: Facts) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for argument in arguments:
        if isinstance(argument, cpp.Call) and argument.arguments and isinstance(argument.arguments[0], cpp.Name):
            found |= _V2.get(argument.arguments[0].path, frozenset())
        else:
            found |= {name for name in (resolve_scalar_type(argument, facts),) if name}
    return found


def _expand_own_macro(macros: dict[str, Macro], name: str, facts: Facts) -> frozenset[str] | None:
    """Returns the types of a variadic macro defined in the file, from the dispatch it expands to."""
    macro = macros.get(name)
    if macro is None or "..." not in (macro.params or ()):
        return None
    try:
        inner = parse_expression(f"#define {macro.name}", macro.body.strip())
    except cpp.ParseError:
        return None
    if not isinstance(inner, cpp.Call) or not isinstance(inner.function, cpp.Name):
        return None
    if inner.function.path == "AT_DISPATCH_V2":
        return _read_v2_types(inner.arguments[3:], facts)
    known = _NAME.match(inner.function.path)
    return _read_types(known, inner.arguments[: len(inner.arguments) - 3], facts) if known else None
