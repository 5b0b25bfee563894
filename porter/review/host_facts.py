"""What host code says: functions that launch kernels or build graphs, the kernels that they name, and their rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from porter.aten.declarations import MPS_KEY
from porter.aten.native_functions import NativeFunctions
from porter.languages.identifiers import find_words
from porter.languages.lexer import Token, TokenKind
from porter.languages.source import Function
from porter.review.change import Change, ChangedFile

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
        literal = next((t for t in code[at + 2 : close] if t.kind is TokenKind.STRING), None)
        if literal is None:
            continue
        whole = literal.text.strip('@"')
        prefix = _FORMATTED.split(whole)[0]
        joined = any(t.text == "+" for t in code[at + 2 : close])
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
