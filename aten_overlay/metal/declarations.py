"""What a Metal source declares: kernels, their instantiations and arguments, function constants, who calls whom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from aten_overlay.errors import OverlayError
from aten_overlay.metal.arguments import (
    MAX_THREADS,
    Argument,
    Attribute,
    attributes,
    integer,
    parameters,
)
from aten_overlay.metal.lexer import LONGEST_ANGLES, Source, is_attribute, skip_angles

_CLASS_KEYS = frozenset(("struct", "class", "union", "enum"))


@dataclass(frozen=True)
class Declaration:
    """Tokens [start, end) of one declaration; `body` is the index of a function's or class's `{`, or -1. `scope` is the
    enclosing namespaces; `in_class` tells whether it is a member."""

    start: int
    end: int
    body: int
    scope: tuple[str, ...]
    in_class: bool


@dataclass(frozen=True)
class Kernel:
    """The definition of a kernel function, template or not."""

    name: str
    scope: tuple[str, ...]
    template: bool
    host_name: str
    arguments: tuple[Argument, ...]
    declaration: Declaration
    max_threads: int


@dataclass(frozen=True)
class Instance:
    """A kernel with a host name: an explicit instantiation, or a plain kernel itself.

    `function` is the function with its template arguments; `parameters` is the token index of the instantiation's `(`,
    or -1 when its type is the function's own.
    """

    host_name: str
    function: str
    short_name: str
    parameters: int
    declaration: Declaration


@dataclass(frozen=True)
class FunctionConstant:
    """`constant T name [[function_constant(index)]];`"""

    name: str
    type: str
    index: int
    declaration: Declaration


@dataclass
class Unit:
    """Everything declared in one source, in order. `references` maps functions and classes to the names in them."""

    source: Source
    declarations: list[Declaration] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)
    constants: list[FunctionConstant] = field(default_factory=list)
    references: dict[str, set[str]] = field(default_factory=dict)


def parse(source: Source) -> Unit:
    """Reads the declarations of `source`. Raises PTR103 for a kernel not understood, PTR109 for an unsupported one."""
    try:
        return _parse(source)
    except (IndexError, RecursionError) as error:  # what is looked for is behind the last token, or too deep inside
        place = source.place(len(source.tokens) - 1)
        raise OverlayError("PTR103", "a declaration of this source is not complete", place, "Complete it.") from error


def _parse(source: Source) -> Unit:
    unit = Unit(source)
    unit.declarations = list(_declarations(source, 0, len(source.tokens), (), False))
    for declaration in unit.declarations:
        if declaration.in_class:
            continue
        _record_references(unit, declaration)
        found = list(attributes(source, declaration.start, _head_end(declaration)))
        if _is_kernel(source, declaration, found):
            _record_kernel(unit, declaration, found)
        constant = next((a for a in found if a.name == "function_constant"), None)
        if (
            constant
            and declaration.body < 0
            and source.tokens[declaration.end - 1] == ";"
            and not _has_call(source, declaration)
        ):
            unit.constants.append(_function_constant(source, declaration, constant))
    return unit


def _declarations(source: Source, i: int, end: int, scope: tuple[str, ...], in_class: bool) -> Iterator[Declaration]:
    while i < end:
        token = source.tokens[i]
        if token == ";" or (in_class and token in ("public", "private", "protected", ":")):
            i += 1
        elif token in ("namespace", "inline", "extern") and (opened := _namespace(source, i)) is not None:
            names, brace = opened
            yield from _declarations(source, brace + 1, source.match[brace], scope + names, False)
            i = source.match[brace] + 1
        else:
            declaration = _one(source, i, end, scope, in_class)
            yield declaration
            if declaration.body >= 0 and _class_key(source, declaration) not in ("", "enum"):
                yield from _declarations(source, declaration.body + 1, source.match[declaration.body], scope, True)
            i = declaration.end


def _namespace(source: Source, i: int) -> tuple[tuple[str, ...], int] | None:
    tokens = source.tokens
    if tokens[i] == "inline" and tokens[i + 1] == "namespace":
        i += 1
    if tokens[i] == "extern" and source.kinds[i + 1] == "string" and tokens[i + 2] == "{":
        return (), i + 2
    if tokens[i] != "namespace":
        return None
    names = []
    i += 1
    while tokens[i] != "{":
        if tokens[i] in ("=", ";"):
            return None
        if source.kinds[i] == "name":
            names.append(tokens[i])
        i += 1
    return tuple(names), i


def _one(source: Source, start: int, end: int, scope: tuple[str, ...], in_class: bool) -> Declaration:
    tokens, i, body, assigned, called = source.tokens, start, -1, False, False
    while i < end:
        token = tokens[i]
        if token == ";":
            return Declaration(start, i + 1, body, scope, in_class)
        if token == "template" and tokens[i + 1] == "<":
            i = skip_angles(source, i + 1, end)
            continue
        if token == "=" and tokens[i - 1] != "operator":
            assigned = True
        if token == "(":
            called = True
        if token == "{":
            is_class = _class_key_in(source, start, i) != ""
            if body < 0 and not assigned:
                body = i
            if not is_class and called and not assigned:
                return Declaration(start, source.match[i] + 1, body, scope, in_class)
        i = source.match[i] + 1 if token in ("(", "[", "{") else i + 1
    return Declaration(start, end, body, scope, in_class)


def _class_key(source: Source, declaration: Declaration) -> str:
    return _class_key_in(source, declaration.start, declaration.body if declaration.body >= 0 else declaration.end)


def _class_key_in(source: Source, start: int, end: int) -> str:
    """`struct`, `class`, `union` or `enum` when that is what is declared before the brace at `end`, else ""."""
    i = start
    while i < end:
        token = source.tokens[i]
        if token == "template" and source.tokens[i + 1] == "<":
            i = skip_angles(source, i + 1, end)
        elif token in ("[", "("):
            i = source.match[i] + 1
        elif token in _CLASS_KEYS:
            return token if "(" not in source.tokens[i:end] or source.tokens[i + 1] == "alignas" else ""
        elif token in ("typedef", "static", "constant", "constexpr", "const", "inline", "alignas"):
            i += 1
        else:
            return ""
    return ""


def _head_end(declaration: Declaration) -> int:
    return declaration.body if declaration.body >= 0 else declaration.end


def _top_level(source: Source, start: int, end: int) -> Iterator[int]:
    """Indices of the tokens outside brackets, template headers and attributes."""
    i = start
    while i < end:
        if source.tokens[i] == "template" and source.tokens[i + 1] == "<":
            yield i
            i = skip_angles(source, i + 1, end)
            continue
        yield i
        i = source.match[i] + 1 if source.tokens[i] in ("(", "[", "{") else i + 1


def _is_kernel(source: Source, declaration: Declaration, found: list[Attribute]) -> bool:
    head = _head_end(declaration)
    return any(a.name == "kernel" for a in found) or any(
        source.tokens[i] == "kernel" for i in _top_level(source, declaration.start, head)
    )


def _has_call(source: Source, declaration: Declaration) -> bool:
    return any(source.tokens[i] == "(" for i in _top_level(source, declaration.start, _head_end(declaration)))


def _record_references(unit: Unit, declaration: Declaration) -> None:
    source = unit.source
    name = _declared_name(source, declaration)
    if not name or _is_explicit(source, declaration):
        return
    names = unit.references.setdefault(name, set())
    i = declaration.start
    while i < declaration.end:
        if is_attribute(source, i):
            i = source.match[i] + 1
            continue
        if source.kinds[i] == "name":
            names.add(source.tokens[i])
        i += 1


def _is_explicit(source: Source, declaration: Declaration) -> bool:
    """Whether this is an explicit instantiation."""
    return source.tokens[declaration.start] == "template" and source.tokens[declaration.start + 1] != "<"


def _declared_name(source: Source, declaration: Declaration) -> str:
    tokens = source.tokens
    previous = ""
    class_key = _class_key(source, declaration)
    for i in _top_level(source, declaration.start, _head_end(declaration)):
        if class_key and source.kinds[i] == "name" and tokens[i - 1] == class_key:
            return tokens[i]
        if tokens[i] in ("(", "=", "<") and previous and not class_key:
            if tokens[i] == "<" and not _is_call(source, skip_angles(source, i, declaration.end)):
                continue
            return previous
        if source.kinds[i] == "name" and tokens[i] not in (
            "template",
            "operator",
            "decltype",
            "static_assert",
            "alignas",
        ):
            previous = tokens[i]
    return ""


def _is_call(source: Source, i: int) -> bool:
    return i < len(source.tokens) and source.tokens[i] == "("


def _record_kernel(unit: Unit, declaration: Declaration, found: list[Attribute]) -> None:
    source = unit.source
    host_name = _host_name(source, found)
    if _is_explicit(source, declaration):
        instance = _instance(source, declaration, host_name)
        if host_name:
            unit.instances.append(instance)
        return
    if declaration.body < 0:
        return
    template = source.tokens[declaration.start] == "template"
    kernel = _kernel(source, declaration, found, host_name, template)
    unit.kernels.append(kernel)
    if not template:
        name = host_name or "::".join((*kernel.scope, kernel.name))
        unit.instances.append(Instance(name, kernel.name, kernel.name, -1, declaration))


def _host_name(source: Source, found: list[Attribute]) -> str:
    for attribute in found:
        if attribute.name == "host_name":
            parts = [source.tokens[i] for i in range(attribute.start, attribute.end) if source.kinds[i] == "string"]
            return "".join(p[1:-1] for p in parts)
    return ""


def _function(source: Source, declaration: Declaration) -> tuple[int, int, int]:
    """Tokens of the function's name with its template arguments, and the index of its `(` (-1: `decltype` form)."""
    end, parameters = declaration.end - 1, -1
    i = declaration.start
    while i < _head_end(declaration):
        token = source.tokens[i]
        if token == "template" and source.tokens[i + 1] == "<":
            i = skip_angles(source, i + 1, declaration.end)
        elif token in ("decltype", "alignas", "__attribute__"):
            i = source.match[i + 1] + 1
        elif token == "(":
            end = parameters = i
            break
        elif token == "<":
            i = max(skip_angles(source, i, declaration.end), i + 1)
        else:
            i = source.match[i] + 1 if token == "[" else i + 1
    start = _name_start(source, end)
    if start == end:
        raise OverlayError(
            "PTR103", "cannot parse this kernel declaration", source.place(declaration.start), "Simplify it."
        )
    return start, end, parameters


def _name_start(source: Source, end: int) -> int:
    """Where the qualified name that ends before token `end` starts."""
    i, tokens = end, source.tokens
    while True:
        if tokens[i - 1] == ">":
            i = _angle_start(source, i - 1)
        if source.kinds[i - 1] != "name" or tokens[i - 1] in ("void", "kernel"):
            return i
        i -= 1
        if tokens[i - 1] != "::":
            return i
        i -= 1


def _angle_start(source: Source, i: int) -> int:
    depth, last = 0, i
    for _ in range(LONGEST_ANGLES):
        token = source.tokens[i]
        if token == ">":
            depth += 1
        elif token == "<":
            depth -= 1
            if depth == 0:
                return i
        i = source.match[i] - 1 if token in (")", "]", "}") else i - 1
        if i < 0:
            break
    raise OverlayError("PTR103", "this `>` closes nothing", source.place(last), "Balance the brackets.")


def _instance(source: Source, declaration: Declaration, host_name: str) -> Instance:
    start, end, parameters = _function(source, declaration)
    names = [i for i in _outside_angles(source, start, end) if source.kinds[i] == "name"]
    return Instance(host_name, source.joined(start, end), source.tokens[names[-1]], parameters, declaration)


def _outside_angles(source: Source, start: int, end: int) -> Iterator[int]:
    i = start
    while i < end:
        if source.tokens[i] == "<":
            i = max(skip_angles(source, i, end), i + 1)
            continue
        yield i
        i += 1


def _kernel(source: Source, declaration: Declaration, found: list[Attribute], host_name: str, template: bool) -> Kernel:
    start, end, opening = _function(source, declaration)
    if opening < 0:
        what = "this kernel has no parameter list"
        raise OverlayError("PTR103", what, source.place(start), "Declare its parameters.")
    limit = MAX_THREADS
    for attribute in found:
        if attribute.name == "max_total_threads_per_threadgroup":
            limit = integer(source, attribute)
    arguments = parameters(source, opening + 1, source.match[opening])
    return Kernel(source.tokens[end - 1], declaration.scope, template, host_name, arguments, declaration, limit)


def _function_constant(source: Source, declaration: Declaration, attribute: Attribute) -> FunctionConstant:
    at = next(i for i in range(declaration.start, declaration.end) if is_attribute(source, i))
    type_text = " ".join(
        t for t in source.tokens[declaration.start : at - 1] if t not in ("constant", "const", "static")
    )
    return FunctionConstant(source.tokens[at - 1], type_text, integer(source, attribute), declaration)
