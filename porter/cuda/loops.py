"""The loops of CUDA kernels, and the scalar function of a call of one: a lambda, a functor, or a jiterator string.

Source: aten/src/ATen/native/cuda/Loops.cuh, JitLoops.cuh, CUDAJitLoops.cuh.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from porter.aten.branches import Facts, decide
from porter.core.checkout import Checkout
from porter.core.dtypes import BOOL
from porter.core.edits import line_of
from porter.core.errors import Place
from porter.core.layout import CUDA_KERNELS
from porter.cpu.helpers import find_headers
from porter.cpu.loops import Loops, ScalarFunction
from porter.cuda.source import DeviceSource, read_device_source
from porter.languages import cpp
from porter.languages.brackets import ANGLES, find_closing_end
from porter.languages.cpp_parser import parse_expression, parse_function
from porter.languages.definitions import Definition, find_definitions, parse_definition, split_parameters
from porter.languages.patterns import has_code

Code = TypeVar("Code")


def specialize(code: Code, names: Mapping[str, cpp.Expr], facts: Facts) -> Code:
    """Returns the code with names replaced, and with each decided `if` and `?:` replaced by the branch it takes."""
    changed: Any = _replace(code, names, facts)
    return changed  # type: ignore[no-any-return]


def _replace(value: Any, names: Mapping[str, cpp.Expr], facts: Facts) -> Any:
    if isinstance(value, tuple):
        return tuple(_replace(each, names, facts) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    if isinstance(value, cpp.Name):
        return names.get(value.path, value)
    made: Any = replace(value, **{f.name: _replace(getattr(value, f.name), names, facts) for f in fields(value)})
    if isinstance(made, cpp.If | cpp.Ternary):
        decided = decide(made.test, facts)
        if decided is not None:
            return _choose(made, decided)
    if isinstance(made, cpp.Block):
        return replace(made, statements=tuple(_flatten(made.statements)))
    return made


def _choose(made: cpp.If | cpp.Ternary, holds: bool) -> Any:
    if isinstance(made, cpp.Ternary):
        return made.yes if holds else made.no
    return made.then if holds else made.otherwise or cpp.Block(())


def _flatten(statements: tuple[cpp.Stmt, ...]) -> list[cpp.Stmt]:
    """Returns the statements with a chosen branch in place of its block, up to the first that returns."""
    found: list[cpp.Stmt] = []
    for statement in statements:
        found += statement.statements if isinstance(statement, cpp.Block) else (statement,)
        if found and isinstance(found[-1], cpp.Return):
            break
    return found


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
    head, bracket, arguments = name.path.partition("<")
    if not bracket or not arguments.endswith(">"):
        return name
    return cpp.Name(head.rstrip(), tuple(split_parameters(arguments[:-1])), name.start)


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


_JITTED = frozenset(("jitted_gpu_kernel", "jitted_gpu_kernel_with_scalars", "opmath_jitted_gpu_kernel_with_scalars"))
_OPMATH = frozenset(("opmath_gpu_kernel_with_scalars", "opmath_symmetric_gpu_kernel_with_scalars"))
NAMES = frozenset(("gpu_kernel", "gpu_kernel_with_scalars", "gpu_kernel_nocast")) | _JITTED | _OPMATH
_COPIES = frozenset(("direct_copy_kernel_cuda",))


@dataclass(frozen=True)
class DeviceFiles:
    """A kernel file and the headers it includes, as one compilation for the device sees them."""

    path: str
    checkout: Checkout
    sources: dict[str, DeviceSource]

    @staticmethod
    def read(checkout: Checkout, path: str, jiterator: bool) -> DeviceFiles:
        """Reads a kernel file. Its checkout has the compiled text of each file."""
        paths = (path, *(each for each in find_headers(checkout, path) if each.startswith(CUDA_KERNELS)))
        sources = {each: read_device_source(checkout.read(each), jiterator) for each in paths}
        return DeviceFiles(path, checkout.layer({each: source.text for each, source in sources.items()}), sources)

    @property
    def loops(self) -> Loops:
        """The loops of CUDA, which find functors and strings in these files."""
        return Loops("CUDA", NAMES, _COPIES, self.read_loop, self.is_functor)

    def is_functor(self, type_: str) -> bool:
        """Whether one of the files defines a struct of this name."""
        name = type_.partition("<")[0].rpartition("::")[2]
        return any(has_code(source.text, f"struct {name}") for source in self.sources.values())

    def read_loop(self, _found: Definition, call: cpp.Call, facts: Facts) -> ScalarFunction | None:
        """Returns the scalar function of a loop."""
        assert isinstance(call.function, cpp.Name)
        if call.function.last in _JITTED:
            return self._read_string(call, call.function)
        files = [(path, source.text) for path, source in self.sources.items()]
        for value in map(facts.resolve, call.arguments[1:]):
            wide = call.function.last in _OPMATH
            if isinstance(value, cpp.LambdaExpr):
                return ScalarFunction(specialize(value, {}, facts), wide=wide)
            if isinstance(value, cpp.Call):
                return read_functor(files, value, facts)
        return None

    def _read_string(self, call: cpp.Call, loop: cpp.Name) -> ScalarFunction | None:
        """Returns the function of a jiterator string that a loop names, which is computed in opmath type."""
        names = {name: value for source in self.sources.values() for name, value in source.names.items()}
        strings = [value.path for value in call.arguments if isinstance(value, cpp.Name) and self._holder(value.path)]
        if len(loop.arguments) < 3 or not strings or loop.arguments[0] not in names:
            return None
        found = self._define(strings[0], names[loop.arguments[0]])
        if found is None:
            return None
        path, text, definition = found
        function, extra = parse_definition(definition), _read_extra(call.arguments)
        elements = function.parameters[: len(function.parameters) - len(extra)]
        values = (*(cpp.Name(each.name) for each in elements), *extra)
        value = cpp.Call(cpp.Name(function.name), values)
        parameters = tuple(cpp.Parameter(loop.arguments[2], each.name) for each in elements)
        returns = BOOL.cpp if function.returns == BOOL.cpp else loop.arguments[1]
        body = cpp.LambdaExpr(parameters, returns, cpp.Block((cpp.Return(value),)))
        return ScalarFunction(body, definition, {}, (self.checkout.layer({path: text}), path), wide=True)

    def _holder(self, string: str) -> str | None:
        return next((path for path, source in self.sources.items() if string in source.strings), None)

    def _define(self, string: str, name: str) -> tuple[str, str, Definition] | None:
        """Returns the file of a string, the text of all that the string holds, and the function of this name in it."""
        path = self._holder(string)
        if path is None:
            return None
        source = self.sources[path]
        text = source.strings[string]
        for before in source.before.get(string, ()):
            text = _overlay(text, source.strings.get(before, ""))
        found = find_definitions(path, text, name)
        return (path, text, found[0]) if found else None


def _overlay(text: str, other: str) -> str:
    """Returns both texts in one, which have nothing in the same place."""
    return "".join(a if a != " " else b for a, b in zip(text, other, strict=True)) if other else text


def _read_extra(arguments: tuple[cpp.Expr, ...]) -> tuple[cpp.Expr, ...]:
    """Returns the values in the `std::make_tuple(...)` that a loop passes on to its function."""
    tuples = (value for value in arguments if isinstance(value, cpp.Call) and isinstance(value.function, cpp.Name))
    return next((each.arguments for each in tuples if _last(each) == "make_tuple"), ())


def _last(call: cpp.Call) -> str:
    return call.function.last if isinstance(call.function, cpp.Name) else ""
