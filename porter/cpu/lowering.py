"""Lowers a CPU kernel's function to its scalar lambda in Metal, for one element type.

Host code around the loop (branches on the type or on a scalar, locals computed from scalars) becomes statements before
the lambda's own. Vectorized lambdas, and what only they use, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from porter.aten.branches import Facts, decide, resolve_scalar_type, show
from porter.aten.dispatch import DispatchCase, find_dispatch_cases
from porter.aten.metal_functions import Library
from porter.core.checkout import Checkout
from porter.core.dtypes import BOOL, DOUBLE, FLOAT, LONG, DType, Kind
from porter.core.errors import Place, PorterError
from porter.cpu.helpers import Helpers
from porter.cpu.loops import CPU_LOOPS, Loops, ScalarFunction
from porter.cpu.scalar_body import (
    CHECKS,
    is_assigned,
    only_assigns,
    prune_locals,
    quote_statement,
    translate_assignment,
    translate_body,
    translate_declaration,
    write_branch,
)
from porter.cpu.translator import OPMATH, TYPES, VECTOR_MATH, Translator, TypedText
from porter.languages import cpp
from porter.languages.definitions import Definition, find_definitions, find_macros, parse_definition
from porter.languages.identifiers import contains_identifier


@dataclass(frozen=True)
class LoweredKernel:
    """A kernel for one element type: its statements, the elements and scalars they use, and the helpers they call."""

    lines: tuple[str, ...]
    params: tuple[str, ...]
    scalars: tuple[tuple[str, str, str], ...]
    result: str
    helpers: tuple[str, ...]
    checks: tuple[str, ...]
    roundings: int
    place: Place
    chooses: bool = False


_IGNORED = frozenset(("TORCH_INTERNAL_ASSERT", "TORCH_INTERNAL_ASSERT_DEBUG_ONLY"))
_ITERATORS = frozenset(("iter", "iterator", "it"))
_NUMBERS = frozenset(each.cpp for each in (DOUBLE, FLOAT, LONG, BOOL))
_OPTIONAL_METHODS = frozenset(("has_value", "value", "value_or"))
_DEPTH = 4


@dataclass
class _State:
    """The state while a kernel is lowered."""

    loops: Loops
    helpers: Helpers
    found: Definition
    facts: Facts
    translator: Translator
    scalars: dict[str, tuple[str, str]] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    vectors: set[str] = field(default_factory=set)
    params: tuple[str, ...] = ()
    result: str = ""
    chooses: bool = False
    place: Place | None = None
    depth: int = 0
    body: cpp.Stmt = field(default_factory=lambda: cpp.Block(()))


class _Unsupported(Exception):
    """The kernel's dispatch does not cover the element type."""


def lower(
    checkout: Checkout,
    found: Definition,
    dtype: DType,
    output: DType,
    loops: Loops = CPU_LOOPS,
    function: cpp.Function | None = None,
    types: Mapping[str, str] | None = None,
    own: bool = False,
    bound: Mapping[str, str] | None = None,
) -> LoweredKernel | None:
    """Lowers a kernel for a common type and an output type; returns None if its dispatch does not cover them.

    `function` stands for what `found` defines, and `types` are names of types in scope, in Metal. With
    `own`, the functions that it calls are the fork's own rather than those of c10::metal. `bound` are the enumerators
    that parameters have.

    Raises PTR078 (no scalar function passed to a loop), or PTR079 or PTR080 (no Metal equivalent).
    """
    library = Library.read(checkout)
    helpers = Helpers(checkout, found.path, library, own)
    translator = Translator(
        dtype, found.line_of, library, helpers.translate_call, dict(types or {}), find_constant=helpers.find_constant
    )
    known = {name: cpp.Name(value) for name, value in (bound or {}).items()}
    state = _State(loops, helpers, found, Facts(dtype, output, known), translator)
    try:
        lines = _function(state, function or parse_definition(found))
    except _Unsupported:
        return None
    if state.place is None:
        raise _refuse(state, f"it never calls {loops.main}", 0)
    lines = prune_locals(lines, translator.written)
    text = "\n".join(lines)
    scalars = tuple((n, *state.scalars[n]) for n in state.scalars if contains_identifier(text, n))
    return LoweredKernel(
        tuple(lines),
        state.params,
        scalars,
        state.result,
        helpers.used_in(text),
        tuple(translator.checks),
        translator.roundings,
        state.place,
        state.chooses,
    )


def _refuse(state: _State, what: str, start: int) -> PorterError:
    return state.loops.refuse(what, state.found, start)


def _function(state: _State, function: cpp.Function) -> list[str]:
    for parameter in function.parameters:
        if "TensorIterator" not in parameter.type:
            state.parameters[parameter.name] = parameter.type
            # Registers a plain number by its own name. A Scalar is only used through its conversions.
            if parameter.type in _NUMBERS and parameter.name not in state.translator.names:
                kind = TYPES[parameter.type]
                state.scalars[parameter.name] = (kind, parameter.name)
                state.translator.names[parameter.name] = TypedText(parameter.name, kind)
    state.body = function.body
    changed = [name for name in state.scalars if is_assigned(function.body, name)]
    lines = [_copy_parameter(state, name) for name in changed]
    return [*lines, *_block(state, function.body)]


def _copy_parameter(state: _State, name: str) -> str:
    """Declares a local for a scalar parameter that the kernel changes."""
    kind = state.scalars[name][0]
    state.translator.names[name] = TypedText(f"{name}_", kind)
    return f"{kind} {name}_ = {name};"


def _block(state: _State, block: cpp.Stmt) -> list[str]:
    statements = block.statements if isinstance(block, cpp.Block) else (block,)
    lines: list[str] = []
    for statement in statements:
        lines += _statement(state, statement)
        if lines and (lines[-1].startswith("return ") or isinstance(statement, cpp.Return)):
            break
    return lines


def _statement(state: _State, statement: cpp.Stmt) -> list[str]:
    if isinstance(statement, cpp.Block):
        return _block(state, statement)
    if isinstance(statement, cpp.If):
        decided = decide(statement.test, state.facts)
        otherwise = statement.otherwise or cpp.Block(())
        if decided is not None:
            return _block(state, statement.then if decided else otherwise)
        if only_assigns(statement, state.translator.refused):
            return []
        test = state.translator.test(statement.test)
        return write_branch(test, _block(state, statement.then), _block(state, otherwise))
    if isinstance(statement, cpp.Using):
        if "Vectorized" in statement.type:
            state.vectors.add(statement.name)
        else:
            state.translator.aliases[statement.name] = state.translator.type(statement.type, statement.start)
        return []
    if isinstance(statement, cpp.Declaration):
        return _declaration(state, statement)
    value = statement.value if isinstance(statement, cpp.ExpressionStatement | cpp.Return) else None
    if isinstance(value, cpp.Call):
        return _call(state, value)
    if isinstance(value, cpp.Binary):
        return translate_assignment(state.translator, value)
    raise _refuse(state, f"'{quote_statement(statement)}'", statement.start)


def _is_vector(state: _State, statement: cpp.Declaration) -> bool:
    if statement.type.split("<")[0] in state.vectors | {"Vectorized", "vec::Vectorized"}:
        return True
    return statement.value is not None and "Vectorized<" in show(statement.value)


def _declaration(state: _State, statement: cpp.Declaration) -> list[str]:
    value = statement.value
    if value is not None and resolve_scalar_type(value, state.facts) is not None:
        state.facts = state.facts.bind(statement.name, value)
        return []
    if _is_vector(state, statement):
        return []
    if isinstance(value, cpp.LambdaExpr):
        state.facts = state.facts.bind(statement.name, value)
        return []
    if state.loops.is_functor(statement.type):
        made = value if isinstance(value, cpp.Call) else cpp.Call(cpp.Name(statement.type), (value,) if value else ())
        state.facts = state.facts.bind(statement.name, made)
        return []
    source = _read_converted_scalar(state, value)
    if value is not None and not source:
        statement = replace(statement, value=_name_conversions(state, value))
    if source:
        owner, kind = source
        written = state.translator.type(statement.type, statement.start)
        state.scalars[statement.name] = (kind if written == "auto" else written, owner)
        state.translator.names[statement.name] = TypedText(statement.name, state.scalars[statement.name][0])
        return []
    try:
        return translate_declaration(state.translator, statement, constant=not is_assigned(state.body, statement.name))
    except PorterError as error:  # what only the launch may need, such as a grain size
        state.translator.refused[statement.name] = error
        return []


def _name_conversions(state: _State, value: Any) -> Any:
    """Returns an expression with the name of a Scalar parameter for each of its conversions, which becomes a scalar."""
    if isinstance(value, tuple):
        return tuple(_name_conversions(state, each) for each in value)
    if not isinstance(value, cpp.Expr) or isinstance(value, cpp.LambdaExpr):
        return value
    optional = _read_optional(state, value)
    if optional is not None:
        return optional
    source = _read_converted_scalar(state, value)
    if source is None:
        return replace(value, **{f.name: _name_conversions(state, getattr(value, f.name)) for f in fields(value)})
    name, kind = source
    if state.scalars.get(name, (kind, name)) != (kind, name):
        raise _refuse(state, f"{name} in two types", value.start)
    state.scalars[name] = (kind, name)
    state.translator.names[name] = TypedText(name, kind)
    return cpp.Name(name, (), value.start)


def _read_optional(state: _State, value: cpp.Expr) -> cpp.Expr | None:
    """Returns `x.has_value()`, `x.value()` or `x.value_or(y)` of a parameter over two scalars, else None."""
    if not isinstance(value, cpp.Call) or not isinstance(value.function, cpp.Member):
        return None
    owner, method = show(value.function.value), value.function.name
    if "optional<double>" not in state.parameters.get(owner, "") or method not in _OPTIONAL_METHODS:
        return None
    real = state.translator.dtype.real.metal if state.translator.dtype.kind is Kind.COMPLEX else "T"
    found = []
    for name, kind in ((f"has_{owner}", "bool"), (owner, real)):
        state.scalars[name] = (kind, owner)
        state.translator.names[name] = TypedText(name, kind)
        found.append(cpp.Name(name, (), value.start))
    if method == "value_or":
        return cpp.Ternary(found[0], found[1], value.arguments[0], value.start)
    return found[0] if method == "has_value" else found[1]


def _read_converted_scalar(state: _State, value: cpp.Expr | None) -> tuple[str, str] | None:
    """Returns the parameter's name and target type for `eps_scalar.to<scalar_t>()`, else None."""
    if not isinstance(value, cpp.Call) or not isinstance(value.function, cpp.Member) or value.function.name != "to":
        return None
    owner = show(value.function.value)
    if "Scalar" not in state.parameters.get(owner, ""):
        return None
    return owner, state.translator.type(value.function.arguments[0], value.start)


def _call(state: _State, call: cpp.Call) -> list[str]:
    function = call.function
    if isinstance(function, cpp.Member):
        return _iterator_call(state, call, function)
    if not isinstance(function, cpp.Name):
        raise _refuse(state, f"'{show(call)[:60]}'", call.start)
    if function.last in _IGNORED or function.last in CHECKS:
        return []
    if function.last in state.loops.names:
        return _loop(state, call)
    if function.last in state.loops.copies:
        return _result(state, ("a",), "return a;", call.start)
    cases = find_dispatch_cases(call, find_macros(state.helpers.checkout.read(state.found.path)), state.facts)
    if cases is not None:
        return _dispatch(state, call, cases)
    return _other_kernel(state, call, function)


def _iterator_call(state: _State, call: cpp.Call, function: cpp.Member) -> list[str]:
    if show(function.value) not in _ITERATORS:
        raise _refuse(state, f"'{show(call)[:60]}'", call.start)
    if function.name != "for_each":
        return []
    text = state.found.text[call.start : call.end]
    vector = re.search(r"vml::v(\w+)\s*\(", text)
    if vector is None:
        raise _refuse(state, "a for_each over raw memory", call.start)
    name = VECTOR_MATH.get(vector.group(1), f"std::{vector.group(1)}")
    state.translator.names["a"] = TypedText("a", "T")
    value = state.translator.expression(cpp.Call(cpp.Name(name, (), call.start), (cpp.Name("a"),), call.start))
    return _result(state, ("a",), f"return {state.translator.cast('T', value).text};", call.start)


def _dispatch(state: _State, call: cpp.Call, cases: tuple[DispatchCase, ...]) -> list[str]:
    for case in cases:
        name = resolve_scalar_type(case.selector, state.facts)
        if name is None:
            raise _refuse(state, f"the dispatch on '{show(case.selector)}'", call.start)
        if name in case.types:
            on_input = name == state.facts.input.aten
            state.translator.aliases["scalar_t"] = "T" if on_input else state.facts.output.metal
            return _block(state, case.body.body)
    raise _Unsupported


def _other_kernel(state: _State, call: cpp.Call, function: cpp.Name) -> list[str]:
    """Lowers the call of another kernel in the same file."""
    path = state.found.path
    found = find_definitions(path, state.helpers.checkout.read(path), function.last)
    if not found or state.depth >= _DEPTH or not call.arguments or show(call.arguments[0]) not in _ITERATORS:
        raise _refuse(state, f"the call to {function.path}", call.start)
    before, state.found, state.depth = state.found, found[0], state.depth + 1
    _bind_arguments(state, parse_definition(found[0]), call, function)
    place, state.translator.place = state.translator.place, found[0].line_of
    lines = _function(state, parse_definition(found[0]))
    state.found, state.depth, state.translator.place = before, state.depth - 1, place
    return lines


def _bind_arguments(state: _State, callee: cpp.Function, call: cpp.Call, function: cpp.Name) -> None:
    """Makes the names, scalars and types that a call passes on known by the names of the callee."""
    translator = state.translator
    for template, type_ in zip(callee.templates, function.arguments, strict=False):
        translator.aliases[template.split()[-1]] = translator.type(type_, call.start)
    for parameter, argument in zip(callee.parameters[1:], call.arguments[1:], strict=False):
        value, source = state.facts.resolve(argument), _read_converted_scalar(state, argument)
        if source:
            owner, kind = source
            state.scalars[parameter.name] = (kind, owner)
            translator.names[parameter.name] = TypedText(parameter.name, kind)
        elif isinstance(value, cpp.Name) and value.path != parameter.name:
            state.facts = state.facts.bind(parameter.name, value)


def _loop(state: _State, call: cpp.Call) -> list[str]:
    """Lowers the scalar function of a loop, inline."""
    function = state.loops.read(state.found, call, state.facts) or state.helpers.find_scalar_function(call)
    if function is None:
        raise _refuse(state, "a loop body that is not a lambda", call.start)
    translator, helpers = state.translator, state.helpers
    names, aliases, place = dict(translator.names), dict(translator.aliases), translator.place
    library = helpers.checkout, helpers.path
    translator.aliases |= {name: translator.type(type_, call.start) for name, type_ in function.templates.items()}
    translator.place = function.found.line_of if function.found else place
    helpers.checkout, helpers.path = function.library or library
    lines = _scalar_function(state, function)
    helpers.checkout, helpers.path = library
    translator.names, translator.aliases, translator.place = names, aliases, place
    return _result(state, state.params, "\n".join(lines), function.body.start, function.found)


def _scalar_function(state: _State, function: ScalarFunction) -> list[str]:
    """Lowers a scalar function whose types and places are in scope, and notes its parameters and its result."""
    translator, found = state.translator, function.body
    names = state.params or tuple(p.name or f"element_{i}" for i, p in enumerate(found.parameters))
    if len(names) != len(found.parameters):
        raise _refuse(state, "its branches take different numbers of elements", found.start)
    kinds = [translator.type(parameter.type, found.start) for parameter in found.parameters]
    if kinds[1:] and kinds[0] == "bool" and set(kinds[1:]) == {"T"}:  # a condition, which a functor takes as T
        kinds, state.chooses = ["T"] * len(kinds), True
    if len(set(kinds)) > 1:
        raise _refuse(state, f"its elements have different types: {', '.join(kinds)}", found.start)
    if function.wide or OPMATH in kinds:
        translator.roundings += 2
    lines = []
    for parameter, name, kind in zip(found.parameters, names, kinds, strict=True):
        translator.names[parameter.name] = TypedText(name, kind)
        if is_assigned(found.body, parameter.name):
            lines.append(f"{kind} {name}_ = {name};")
            translator.names[parameter.name] = TypedText(f"{name}_", kind)
    returns = translator.type(found.returns, found.start) if found.returns else ""
    inner, result = translate_body(translator, found.body, returns)
    result = "T" if result == OPMATH else result
    if state.result and state.result != result:
        raise _refuse(state, "its branches return different types", found.start)
    state.result, state.params = result, names
    return [*lines, *inner]


def _result(
    state: _State, params: tuple[str, ...], body: str, start: int, found: Definition | None = None
) -> list[str]:
    state.params = params
    state.result = state.result or "T"
    state.place = state.place or (found or state.found).line_of(start)
    return body.split("\n")
