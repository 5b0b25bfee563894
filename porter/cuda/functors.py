"""Functor structs of CUDA kernels: the `operator()` of one, with the values that its constructor is called with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from porter.aten.branches import Facts
from porter.core.edits import line_of
from porter.core.errors import Place
from porter.cpu.loops import ScalarFunction
from porter.cuda.specialize import specialize
from porter.languages import cpp
from porter.languages.brackets import ANGLES, find_closing_end
from porter.languages.cpp_parser import parse_expression, parse_function
from porter.languages.definitions import Definition, split_parameters

_CALL = re.compile(r"operator\s*\(\s*\)(?=\s*\()")
_FIELD = re.compile(
    r"^[ \t]*(?:const\s+)?[A-Za-z_][\w:<>]*(?:\s*<[^;()]*>)?\s+(\w+)\s*(?:=\s*([^;]+?)|\{([^;{}]*)\})?;", re.M
)
_INITIALIZER = re.compile(r"(\w+)\s*[({]\s*([^(){}]*?)\s*[)}]")


@dataclass(frozen=True)
class Struct:
    """A struct: its template parameters, the type it is specialized for (or none), and where its body is in `text`."""

    path: str
    text: str
    name: str
    templates: tuple[str, ...]
    special: str
    start: int
    end: int


def find_structs(path: str, text: str, name: str) -> Iterator[Struct]:
    """Yields the definition of a struct, and its specializations."""
    head = re.compile(rf"(template\s*<[^;{{}}]*>\s*)?\bstruct\s+{re.escape(name)}\b\s*(?:<([^;{{}}]*)>)?[^;{{}}()]*\{{")
    for match in head.finditer(text):
        opener = match.end() - 1
        templates: tuple[str, ...] = ()
        if match[1]:
            begin = match[1].index("<")
            inside = match[1][begin + 1 : find_closing_end(match[1], begin, ANGLES) - 1]
            templates = tuple(part.split("=")[0].split()[-1] for part in split_parameters(inside) if part)
        yield Struct(path, text, name, templates, match[2] or "", match.start(), find_closing_end(text, opener))


def read_functor(files: Sequence[tuple[str, str]], made: cpp.Call, facts: Facts) -> ScalarFunction | None:
    """Returns the function of a functor made as `F<T>(a, b)`, or None if no file defines its `operator()`."""
    if not isinstance(made.function, cpp.Name):
        return None
    type_ = cpp_type(made.function)
    found = [each for path, text in files for each in find_structs(path, text, type_.last)]
    general = [each for each in found if not each.special]
    special = [each for each in found if each.special == facts.input.cpp]
    for struct in (*special, *general):
        method = _parse_method(struct)
        if method is None:
            continue
        values = {name: facts.resolve(value) for name, value in _read_fields(struct, made.arguments).items()}
        body = specialize(method.body, values, facts)
        returns = method.returns.replace("inline", "").replace("constexpr", "").strip()
        function = cpp.LambdaExpr(method.parameters, "" if returns == "auto" else returns, body, method.start)
        given = dict(zip(struct.templates, type_.arguments, strict=False))
        return ScalarFunction(function, _place_method(struct), given)
    return None


def cpp_type(name: cpp.Name) -> cpp.Name:
    """Returns the name of a type, also one written as a single text: `F<T>`."""
    spelled = re.fullmatch(r"([\w:]+)\s*<(.*)>", name.path)
    if spelled is None:
        return name
    return cpp.Name(spelled[1], tuple(split_parameters(spelled[2])), name.start)


def _place_method(struct: Struct) -> Definition:
    at = _find_method(struct)
    return Definition(struct.path, struct.text[at : struct.end], Place(struct.path, line_of(struct.text, at)))


def _find_method(struct: Struct) -> int:
    match = _CALL.search(struct.text, struct.start, struct.end)
    if match is None:
        return -1
    ends = (struct.text.rfind(mark, struct.start, match.start()) for mark in (";", "}", "{", ":\n"))
    begin = max(ends) + 1
    templated = re.match(r"\s*template\s*<", struct.text[begin : match.start()])
    if templated:
        begin = find_closing_end(struct.text, begin + templated.end() - 1, ANGLES)
    return begin + len(struct.text[begin : match.start()]) - len(struct.text[begin : match.start()].lstrip())


def _parse_method(struct: Struct) -> cpp.Function | None:
    start = _find_method(struct)
    if start < 0:
        return None
    text = _CALL.sub(lambda found: "operator_".ljust(len(found[0]), "_"), struct.text[start : struct.end], count=1)
    opener = text.find("{")
    try:
        return parse_function(struct.path, text[: find_closing_end(text, opener)])
    except (cpp.ParseError, IndexError):
        return None


def _read_fields(struct: Struct, given: Sequence[cpp.Expr]) -> dict[str, cpp.Expr]:
    """Returns the values of the fields: by the constructor's list, else in order, else their defaults."""
    inside = struct.text[struct.text.index("{", struct.start) + 1 : struct.end - 1]
    shallow = _without_blocks(inside)
    fields = [(m[1], m[2] or m[3]) for m in _FIELD.finditer(shallow)]
    defaults = {name: parse_expression(struct.path, value) for name, value in fields if value}
    constructor = re.search(rf"\b{struct.name}\s*\(([^()]*)\)\s*:([^;]*?)\{{", inside)
    if constructor:
        names = [part.split()[-1].lstrip("&*") for part in split_parameters(constructor[1]) if part]
        values = dict(zip(names, given, strict=False))
        listed = _INITIALIZER.findall(constructor[2])
        made = {field: values[value] for field, value in listed if value in values}
        return {**defaults, **made}
    return {**defaults, **{name: value for (name, _), value in zip(fields, given, strict=False)}}


def _without_blocks(text: str) -> str:
    """Returns the text with the inside of each block left out, so that only members remain."""
    out, at = "", 0
    while (opener := text.find("{", at)) >= 0:
        end = find_closing_end(text, opener)
        initializes = text[end : end + 1] == ";" and re.search(r"\w\s*$", text[:opener])
        out += text[at:end] if initializes else text[at:opener] + "{}"
        at = end
    return out + text[at:]
