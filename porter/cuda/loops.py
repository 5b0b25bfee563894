"""The loops of CUDA kernels, and the scalar function of a call of one: a lambda, a functor, or a jiterator string.

Source: aten/src/ATen/native/cuda/Loops.cuh, JitLoops.cuh, CUDAJitLoops.cuh.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

from porter.aten.branches import Facts, decide
from porter.core.checkout import Checkout
from porter.core.dtypes import BOOL, DType
from porter.core.edits import line_of
from porter.core.errors import Place, PorterError
from porter.core.layout import CUDA_KERNELS
from porter.cpu.helpers import find_headers
from porter.cpu.kernels import CpuKernel, collect_lambdas, find_registered_name, same_type
from porter.cpu.loops import Loops, ScalarFunction
from porter.cpu.lowering import LoweredKernel, lower
from porter.languages import cpp
from porter.languages.brackets import ANGLES, find_closing_end
from porter.languages.cpp_parser import parse_expression, parse_function
from porter.languages.definitions import Definition, find_definitions, parse_definition, split_parameters
from porter.languages.directives import parse_condition
from porter.languages.identifiers import find_words
from porter.languages.lexer import Token, directives
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
            if isinstance(made, cpp.Ternary):
                return made.yes if decided else made.no
            return made.then if decided else made.otherwise or cpp.Block(())
    if isinstance(made, cpp.Block):
        return replace(made, statements=tuple(_flatten(made.statements)))
    return made


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
    # The inside of each block is left out, so that only members remain
    out, at = "", 0
    while (opener := inside.find("{", at)) >= 0:
        end = find_closing_end(inside, opener)
        initializes = inside[end : end + 1] == ";" and re.search(r"\w\s*$", inside[:opener])
        out += inside[at:end] if initializes else inside[at:opener] + "{}"
        at = end
    shallow = out + inside[at:]
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


# A CUDA file as one compilation for the device sees it, with every line and offset where it was. Conditional parts
# that are not compiled, words that only say where a function runs, and jiterator strings become spaces; the strings,
# which are code too, are kept by name. Source: ATen/jit_macros.h, c10/macros/Macros.h.


JITERATOR = "AT_USE_JITERATOR"
# What a build with CUDA defines; any other name is 0 in a condition. `AT_USE_JITERATOR()` is the caller's choice.
_DEFINED = {"__CUDACC__": 1, "CUDA_VERSION": 12080, "CUDART_VERSION": 12080, "__CUDA_ARCH__": 800}
_QUALIFIERS = re.compile(
    r"\b(?:GPU_LAMBDA|C10_LAMBDA|__device__|__host__|__forceinline__|__noinline__|__inline__|__restrict__|__restrict"
    r"|C10_HOST_DEVICE|C10_DEVICE|C10_HOST|C10_NOINLINE|C10_ALWAYS_INLINE|__launch_bounds__\([^()]*\))(?!\w)"
)
_STRING = re.compile(
    r"(?:static\s+)?const(?:expr)?\s+auto\s+(\w+)\s*=\s*((?:\w+\s*\+\s*)*)jiterator_stringify\s*(?=\()"
)
_ALSO = re.compile(r"jiterator_also_stringify_as\s*\(\s*jiterator_code\s*(?=\()")
_ALSO_END = re.compile(r"\s*,\s*(\w+)\s*\)\s*;?")
_NAME = re.compile(r"\bchar\s+(\w+)\s*\[\s*\]\s*=\s*\"(\w+)\"")


@dataclass(frozen=True)
class DeviceSource:
    """The code of a file that one compilation sees, its jiterator strings, and the names in its character arrays.

    A string has the text of the file with nothing but its own functions; `before` are the strings put in front of it.
    """

    text: str
    strings: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)


@lru_cache(maxsize=256)
def read_device_source(text: str, jiterator: bool) -> DeviceSource:
    """Returns the file as compiled with or without the jiterator."""
    # The text with directives of conditions, and the parts they leave out, as spaces
    out, at, opened = list[str](), 0, list[_Branch]()
    for token in directives(text):
        out.append(_keep(text[at : token.start], opened))
        conditional = _follow(token, opened, {**_DEFINED, JITERATOR: int(jiterator)})
        out.append(_blank(token.text) if conditional else _keep(token.text, opened))
        at = token.end
    chosen = "".join([*out, _keep(text[at:], opened)])
    plain = _QUALIFIERS.sub(lambda word: _blank(word[0]), chosen)
    strings, before, spans = dict[str, str](), dict[str, tuple[str, ...]](), list[tuple[int, int]]()
    for match in _STRING.finditer(plain):
        end = find_closing_end(plain, match.end())
        strings[match[1]] = _only(plain, match.end() + 1, end - 1)
        before[match[1]] = tuple(find_words(match[2]))
        spans.append((match.start(), end + (plain[end : end + 1] == ";")))
    for match in _ALSO.finditer(plain):
        end = find_closing_end(plain, match.end())
        after = _ALSO_END.match(plain, end)
        if after:
            strings[after[1]] = _only(plain, match.end() + 1, end - 1)
            spans += [(match.start(), match.end() + 1), (end - 1, after.end())]
    for start, end in spans:
        plain = plain[:start] + _blank(plain[start:end]) + plain[end:]
    return DeviceSource(plain, strings, before, dict(_NAME.findall(plain)))


def _blank(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))


def _only(text: str, start: int, end: int) -> str:
    return _blank(text[:start]) + text[start:end] + _blank(text[end:])


@dataclass
class _Branch:
    """An open `#if`: whether one of its parts was compiled, and whether this one is."""

    taken: bool
    now: bool


def _keep(text: str, opened: list[_Branch]) -> str:
    return text if all(each.now for each in opened) else _blank(text)


def _follow(token: Token, opened: list[_Branch], defined: Mapping[str, int]) -> bool:
    """Follows a directive; whether it is one of a condition."""
    condition = parse_condition(token)
    if condition is None:
        return False
    word, rest = condition[0], re.sub(r"//.*|/\*.*?\*/|\\\n", " ", condition[1]).strip()
    if word in ("if", "ifdef", "ifndef"):
        holds = evaluate(rest, defined) if word == "if" else (rest in defined) == (word == "ifdef")
        opened.append(_Branch(holds, holds))
    elif opened and word == "endif":
        opened.pop()
    elif opened:
        holds = not opened[-1].taken and (word == "else" or evaluate(rest, defined))
        opened[-1] = _Branch(opened[-1].taken or holds, holds)
    return True


def evaluate(condition: str, defined: Mapping[str, int]) -> bool:
    """Whether a condition of `#if` holds. A name that is not defined is 0, and so is what cannot be read."""
    spelled = re.sub(r"\bdefined\s*\(?\s*(\w+)\s*\)?", lambda name: str(int(name[1] in defined)), condition)
    try:
        return bool(_value(parse_expression("#if", spelled), defined))
    except (cpp.ParseError, IndexError, ValueError):
        return False


def _value(value: cpp.Expr, defined: Mapping[str, int]) -> int:
    match value:
        case cpp.Literal(text=text):
            return int(text.rstrip("uUlL"), 0)
        case cpp.Name(path=path):
            return defined.get(path, 0)
        case cpp.Call(function=cpp.Name(path=path)):
            return defined.get(path, 0)
        case cpp.Paren(value=inner):
            return _value(inner, defined)
        case cpp.Unary(op="!", value=inner):
            return int(not _value(inner, defined))
        case cpp.Binary(op=op, left=left, right=right):
            return _combine(op, _value(left, defined), _value(right, defined))
    raise ValueError


def _combine(op: str, left: int, right: int) -> int:
    found = {
        "&&": left and right,
        "||": left or right,
        "==": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }
    if op not in found:
        raise ValueError
    return int(found[op])


# The jiterator's strings are what a build with CUDA runs; where they cannot be read, the lambdas beside them can.
_COMPILATIONS = (True, False)


def read_cuda_kernel(checkout: Checkout, stub: str, output: Callable[[DType], DType] = same_type) -> CpuKernel:
    """Returns the kernel that `native/cuda` registers for a stub. `output` maps common types to result types.

    Raises PTR335 if none is registered. Functions that cannot be translated are not errors but in `untranslated`.
    Source: aten/src/ATen/native/cuda/*.cu, `REGISTER_DISPATCH` of ATen/native/DispatchStub.h.
    """
    path, name = find_registered_kernel(checkout, stub)
    compiled = tuple(_compile(checkout, path, name))
    if not compiled:
        what = f"the CUDA kernel {name} is not defined here"
        raise PorterError("PTR335", what, Place(path), "Write the functor by hand.")

    def lower_for(dtype: DType) -> LoweredKernel | None:
        error: PorterError | None = None
        for files, definition in compiled:
            try:
                return lower(files.checkout, definition, dtype, output(dtype), files.loops)
            except PorterError as refused:
                error = error or refused
        assert error is not None
        raise error

    return collect_lambdas(stub, compiled[0][1], name, lower_for, compiled[0][0].loops.device)


def find_registered_kernel(checkout: Checkout, stub: str) -> tuple[str, str]:
    """Returns the file and name of the function registered for a stub. Raises PTR335 if there is none."""
    word = re.escape(stub)
    for path in checkout.folder(CUDA_KERNELS, ".cu").files_containing(stub, rf"DISPATCH\(\s*{word}\b", whole=True):
        if name := find_registered_name(checkout.read(path), stub):
            return path, name.rpartition("::")[2]
    raise PorterError(
        "PTR335",
        f"no CUDA kernel is registered for {stub}",
        Place(CUDA_KERNELS),
        "Leave out --from cuda: other sources may define it.",
    )


def _compile(checkout: Checkout, path: str, name: str) -> Iterator[tuple[DeviceFiles, Definition]]:
    """Yields the compilations of a file, and the definition of a function in each."""
    for jiterator in _COMPILATIONS:
        files = DeviceFiles.read(checkout, path, jiterator)
        definitions = find_definitions(path, files.checkout.read(path), name)
        if definitions:
            yield files, definitions[0]
