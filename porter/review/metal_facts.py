"""What kernel files say: functors, registrations, kernels with their arguments; and what host code launches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from porter.aten.declarations import MPS_KEY
from porter.aten.native_functions import NativeFunctions
from porter.core.layout import INDEXING
from porter.languages.identifiers import find_words
from porter.languages.lexer import Token, TokenKind
from porter.languages.source import Function, MacroUse, parse_source
from porter.metal.lint_checks import Parameter, is_kernel, is_written, parameters
from porter.metal.macros import MacroBook
from porter.review.change import Change, ChangedFile

_FUNCTOR = "_functor"


@dataclass(frozen=True)
class Functor:
    """A struct whose operator() is what kernels of a macro call, by the name that it is registered under."""

    name: str
    start: int
    end: int
    calls: tuple[Function, ...]


@dataclass(frozen=True)
class Registration:
    """One kernel of a functor: its types (Metal's names), the macro, and the use that registers it."""

    functor: str
    input: str
    output: str
    family: str
    opmath: bool
    use: MacroUse


def find_functors(file: ChangedFile) -> Iterator[Functor]:
    """The functors of a Metal file."""
    if not file.is_readable:
        return
    source, code = file.source, file.source.code
    for at, token in enumerate(code[:-2]):
        name = code[at + 1].text
        if token.text != "struct" or not name.endswith(_FUNCTOR) or code[at + 2].text != "{":
            continue
        start, end = token.start, code[source.partners[at + 2]].end
        calls = tuple(f for f in file.unit.functions if start <= f.start < end and "operator" in f.signature)
        yield Functor(name.removesuffix(_FUNCTOR), start, end, calls)


def list_instances(change: Change, path: str) -> tuple[Registration, ...]:
    """The kernels that the REGISTER lines of a kernel file make now."""
    indexing = change.after.read(INDEXING) if change.after.exists(INDEXING) else ""
    return _list_instances(indexing, path, change.kernel_texts.get(path, ""))


def list_registered(change: Change) -> Iterator[Registration]:
    """The kernels that the REGISTER lines of all kernel files make now."""
    for path, text in change.kernel_texts.items():
        if "REGISTER_" in text and path.endswith(".metal"):
            yield from list_instances(change, path)


def list_functors(change: Change) -> frozenset[str]:
    """The names that kernel files register functors by, with macros of which porter knows the types or not."""
    texts = (text for path, text in change.kernel_texts.items() if path.endswith(".metal"))
    return frozenset().union(*map(_list_functors, texts))


@lru_cache(maxsize=256)
def _list_functors(text: str) -> frozenset[str]:
    source = parse_source("", text)
    uses = source.macro_uses() if source.is_readable else ()
    return frozenset(use.arguments[0] for use in uses if use.arguments)


@lru_cache(maxsize=128)
def _list_instances(indexing: str, path: str, text: str) -> tuple[Registration, ...]:
    source = parse_source(path, text)
    if not source.is_readable:
        return ()
    book = MacroBook.read((*parse_source(INDEXING, indexing).macros(), *source.macros()))
    return tuple(
        Registration(use.arguments[0], instance.input, instance.output, base.family.value, base.opmath, use)
        for use in source.macro_uses()
        if use.arguments
        for base, instance in book.expand(use.name, use.arguments)
    )


@dataclass(frozen=True)
class Kernel:
    """A kernel function of a file, its parameters, and its code."""

    file: ChangedFile
    function: Function
    parameters: tuple[Parameter, ...]
    body: tuple[Token, ...]

    def subscript(self, bracket: int) -> tuple[Token, ...]:
        """The tokens between the bracket at a place of the body and the one that closes it."""
        depth = 0
        for end in range(bracket, len(self.body)):
            depth += (self.body[end].text == "[") - (self.body[end].text == "]")
            if depth == 0:
                return self.body[bracket + 1 : end]
        return self.body[bracket + 1 :]

    @property
    def name(self) -> str:
        return self.function.name

    def attribute(self, parameter: Parameter) -> str:
        """What a parameter is: `buffer`, `thread_position_in_grid`, or "" where it does not say."""
        texts = [token.text for token in parameter.tokens]
        return texts[texts.index("[") + 2] if "[" in texts and texts[texts.index("[") + 1] == "[" else ""

    def positions(self, *attributes: str) -> set[str]:
        """The names of parameters with one of these attributes."""
        return {p.name for p in self.parameters if self.attribute(p) in attributes and p.name}

    @property
    def buffers(self) -> tuple[Parameter, ...]:
        """The parameters that the host binds, in order: pointers and references to device or constant memory."""
        return tuple(p for p in self.parameters if p.indirections and p.space in ("device", "constant"))

    def writes(self, name: str) -> bool:
        """Whether the body writes what a name points to, or lets something else do so."""
        for at, token in enumerate(self.body):
            if token.text != name:
                continue
            before = self.body[at - 1].text if at else ""
            after = self.body[at + 1].text if at + 1 < len(self.body) else ""
            if is_written(self.body, at) or after in _ASSIGNING or before in ("++", "--"):
                return True
            passed = before in ("(", ",", "&", "=", "return") and after in (",", ")", ";", "+")
            if passed or (before == "&" and after == "[") or after in ("+", ".", "->"):
                return True
        return False


_ASSIGNING = frozenset(("=", "+=", "-=", "*=", "/=", "|=", "&=", "^=", "++", "--"))


def find_kernels(file: ChangedFile) -> Iterator[Kernel]:
    """The kernel functions of a Metal file."""
    if not file.is_readable:
        return
    for function in filter(is_kernel, file.unit.functions):
        yield _read_kernel(file, function)


def _read_kernel(file: ChangedFile, function: Function) -> Kernel:
    body = file.unit.within(function.body_start, function.body_end)
    return Kernel(file, function, tuple(parameters(file.unit, function)), body)


def find_changed_functions(change: Change) -> Iterator[Kernel]:
    """The functions of Metal, kernels or not, in which a line is new or different."""
    for file in change.metal:
        for function in file.functions():
            yield _read_kernel(file, function)


def find_changed_kernels(change: Change) -> Iterator[Kernel]:
    """The kernels in which a line is new or different."""
    for file in change.metal:
        for kernel in find_kernels(file):
            if file.touches(kernel.function.start, kernel.function.end):
                yield kernel


@lru_cache(maxsize=256)
def list_words(text: str) -> frozenset[str]:
    """The identifiers of a kernel file, those within its strings, and those that its macros are made of."""
    return frozenset(find_words(text))


_GRAPH = frozenset({"mpsGraph", "MPSGraphTensor", "LookUpOrCreateCachedGraph", "runMPSGraph", "MPSGraph"})
_LAUNCHING = frozenset({"getPipelineStateForFunc", "mtl_dispatch1DJob", "getMTLFunction", "setComputePipelineState"})
_NAMING = frozenset({"getPipelineStateForFunc", "getMTLFunction", "hasFunction"})
_EXEC = re.compile(r"exec_(unary|binary|ternary)_kernel(_with_params)?")
_FORMATTED = re.compile(r"\{[^}]*\}")


@dataclass(frozen=True)
class NamedKernel:
    """A literal that host code names a kernel by: `prefix` up to the first `{}`, and the `token` that it is.

    `family` is unary, binary or ternary for a functor that an `exec_` function runs, and empty for a kernel.
    """

    prefix: str
    family: str
    is_whole: bool
    token: Token


def find_named_kernels(file: ChangedFile, start: int = 0, end: int | None = None) -> Iterator[NamedKernel]:
    """The kernels that a part of a host file names by literals, in calls that take a kernel's name."""
    code = file.source.code
    stop = len(file.after) if end is None else end
    for at, token in enumerate(code[:-2]):
        if not start <= token.start < stop or code[at + 1].text != "(":
            continue
        runs = _EXEC.fullmatch(token.text)
        if not runs and token.text not in _NAMING:
            continue
        close = file.source.partners[at + 1] if file.is_readable else at + 1
        place = at + 2
        if close == place + 1 and code[place].kind is TokenKind.IDENTIFIER:  # a string that was assigned before
            assigned = [k for k in range(at) if code[k].text == code[place].text and code[k + 1].text == "="]
            place, close = (assigned[-1], at) if assigned and code[assigned[-1]].start >= start else (place, close)
            close = next((k for k in range(place, close) if code[k].text == ";"), close)
        literal = next((t for t in code[place:close] if t.kind is TokenKind.STRING), None)
        if literal is None:
            continue
        whole = literal.text.strip('@"')
        prefix = _FORMATTED.split(whole)[0]
        joined = any(t.text == "+" for t in code[place:close])
        yield NamedKernel(prefix, runs[1] if runs else "", prefix == whole and not joined, literal)


@lru_cache(maxsize=4096)
def builds_graph(text: str) -> bool:
    """Whether code builds an MPSGraph."""
    return not _GRAPH.isdisjoint(find_words(text))


@lru_cache(maxsize=4096)
def launches_kernel(text: str) -> bool:
    """Whether code launches a Metal kernel."""
    words = find_words(text)
    return not _LAUNCHING.isdisjoint(words) or any(_EXEC.fullmatch(word) for word in words)


def find_metal_functions(change: Change) -> Iterator[tuple[ChangedFile, Function]]:
    """The changed host functions that launch kernels and build no graph."""
    for file in change.host:
        for function in file.functions():
            text = file.text_of(function)
            if launches_kernel(text) and not builds_graph(text):
                yield file, function


def list_dispatched(rows: NativeFunctions) -> frozenset[str]:
    """The functions that rows dispatch to on MPS, without namespaces."""
    entries = (row.entry_for(MPS_KEY) for row in rows.all)
    return frozenset(entry.kernel.rsplit("::", 1)[-1] for entry in entries if entry)


def find_words_in(file: ChangedFile, start: int, end: int) -> tuple[Token, ...]:
    """The code tokens of a span of a host file."""
    return tuple(token for token in file.source.code if start <= token.start < end)
