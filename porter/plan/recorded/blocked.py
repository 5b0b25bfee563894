"""Ports the rows of an operator that no stub can serve, and leaves no code behind that is there twice or unused."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from porter.aten.operator import Blocked, Operator
from porter.core.checkout import Checkout
from porter.core.dtypes import BY_METAL
from porter.core.errors import Place, PorterError, explained
from porter.core.layout import INDEXING, KERNELS
from porter.languages.brackets import find_closing_end
from porter.languages.directives import Macro, expand_uses, read_macros
from porter.languages.identifiers import contains_identifier
from porter.languages.inlining import read_parameters
from porter.languages.lexer import TokenKind, lex
from porter.languages.source import parse_source
from porter.plan.plan import Draft
from porter.plan.recorded.planner import port_rows
from porter.plan.recorded.port import NativePort, ReadPrograms, WrittenKernel
from porter.plan.recorded.sharing import LAUNCHES, list_launching, share_bodies
from porter.plan.recorded.target import read_body
from porter.plan.removal import find_orphans


def port_blocked(
    draft: Draft, operator: Operator, blocked: Sequence[Blocked], programs: ReadPrograms, scaffold: bool = False
) -> NativePort:
    """Ports rows that no stub can serve by their recorded programs, and removes what is then unused.

    A helper becomes the port of the last rows that call it, unless ports of others have their bodies without it, or it
    would be passed a block for a graph. With `scaffold`, writes the frame of those that cannot be ported. Raises
    PTR490 as `check_names` does.
    """
    read = cache(programs)
    port = _port_own(draft, operator, blocked, read, scaffold)
    helped = any(_is_in_helper(draft.fork, port.draft.fork, file) for file in _list_files(port))
    if helped or _has_idle_block(draft.fork, port):
        with suppress(PorterError):
            apart = _port_own(draft, operator, blocked, read, scaffold, apart=True)
            is_whole = set(apart.ported) == set(port.ported)
            if is_whole and (_count_launches(apart) < _count_launches(port) or _has_idle_block(draft.fork, port)):
                return apart
    return port


def _port_own(
    draft: Draft,
    operator: Operator,
    blocked: Sequence[Blocked],
    programs: ReadPrograms,
    scaffold: bool,
    apart: bool = False,
) -> NativePort:
    port = port_rows(draft, operator, blocked, programs, scaffold, apart)
    if port.kernels:
        check_names(port.draft.fork, port.kernels)
    for file in _list_files(port):
        removed = tuple(find_orphans(port.draft.fork, file, draft.fork.read(file)))
        cleaned = port.draft.apply(each.edit for each in removed)
        shared = cleaned.apply(share_bodies(cleaned.fork, file, draft.fork.read(file)))
        port = replace(port, draft=shared, removed=(*port.removed, *removed))
    return port


def _list_files(port: NativePort) -> list[str]:
    return list(dict.fromkeys(row.implementation.file for row in port.ported if row.implementation))


def _is_in_helper(before: Checkout, after: Checkout, file: str) -> bool:
    """Whether a helper of a file launches kernels that did not, and other functions there did before."""
    known, launched = parse_source(file, before.read(file)), {each.name for each in list_launching(before, file)}
    helpers = (each.name for each in list_launching(after, file) if each.static)
    return bool(launched) and any(name in known.functions_by_name and name not in launched for name in helpers)


def _has_idle_block(before: Checkout, port: NativePort) -> bool:
    """Whether a helper has become native, and callers pass it a block that only builds its graph."""
    after = port.draft.fork
    return any(_list_idle_blocks(after, file) - _list_idle_blocks(before, file) for file in _list_files(port))


def _list_idle_blocks(fork: Checkout, file: str) -> set[tuple[str, str]]:
    """The blocks that static functions which launch kernels are passed and do not name, each with its function."""
    source = parse_source(file, fork.read(file))
    spaceless = "".join(source.text.split())
    return {
        (each.name, parameter.name)
        for each in list_launching(fork, file)
        for parameter in (read_parameters(each) if each.static else ())
        if f"(^{parameter.type})" in spaceless and not contains_identifier(read_body(source, each), parameter.name)
    }


def _count_launches(port: NativePort) -> int:
    return sum(port.draft.fork.read(file).count(LAUNCHES) for file in _list_files(port))


_HOST_NAME = re.compile(r"\bhost_name\s*\(([^)]*)\)")
_LITERAL = re.compile(r'"([^"]*)"')
_USE = re.compile(r"^[ \t]*(\w+)\(", re.M)
_PLAIN = re.compile(r"(>\s*)?\bkernel\s+void\s+(\w+)\s*\(")


@dataclass(frozen=True)
class _Form:
    """The names that host code makes of a kernel's: with this number of types behind it."""

    base: str
    types: int

    def makes(self, name: str) -> bool:
        """Whether the form makes a name."""
        words = name[len(self.base) + 1 :].split("_") if name.startswith(f"{self.base}_") else []
        return name == self.base if not self.types else len(words) == self.types and all(w in BY_METAL for w in words)

    @property
    def example(self) -> str:
        return "_".join((self.base, *["float"] * self.types))


def check_names(fork: Checkout, kernels: Sequence[WrittenKernel]) -> None:
    """Raises PTR490 if host code that launches one of these kernels can make the name of another, by its types."""
    forms = {_Form(*entry): kernel.file for kernel in kernels for entry in kernel.entries}
    for form, path in forms.items():
        for other in forms:
            if other != form and other.makes(form.example):
                raise _refuse(path, other, form.example)
    for name, path in _list_others(fork, {form.base.partition("_")[0] for form in forms}, kernels):
        for form in forms:
            if form.makes(name):
                raise _refuse(path, form, name)


def _refuse(path: str, form: _Form, name: str) -> PorterError:
    what = f"host code can make the name of the kernel {name} of {form.base} and types"
    return explained("PTR490", what, Place(path))


def _list_others(
    fork: Checkout, first_words: Iterable[str], kernels: Sequence[WrittenKernel]
) -> Iterator[tuple[str, str]]:
    """Yields the names of the other kernels in files with one of these words, and the file of each."""
    shared = read_macros(fork.read(INDEXING)) if fork.exists(INDEXING) else ()
    for path in fork.list(KERNELS, ".metal"):
        text = fork.read(path)
        if any(word in text for word in first_words):
            macros = (*shared, *read_macros(text))
            ported = (list_kernel_names(each.source, macros) for each in kernels if each.file == path)
            others = Counter(list_kernel_names(text, shared)) - Counter(name for names in ported for name in names)
            yield from ((name, path) for name in others.elements())


@lru_cache(maxsize=256)
def list_kernel_names(text: str, shared: tuple[Macro, ...] = ()) -> tuple[str, ...]:
    """The names of the kernels that a Metal source makes, with those that macros make, its own and `shared` ones."""
    macros = {macro.name: macro for macro in (*shared, *read_macros(text)) if macro.params}
    kept = (token.text for token in lex(text) if token.kind not in (TokenKind.COMMENT, TokenKind.DIRECTIVE))
    code = "".join(kept)
    uses = (match for match in _USE.finditer(code) if match[1] in macros)
    expanded = (expand_uses(code[match.start(1) : find_closing_end(code, match.end() - 1)], macros) for match in uses)
    named = ("".join(_LITERAL.findall(pieces)) for pieces in _HOST_NAME.findall("\n".join((code, *expanded))))
    plain = (match[2] for match in _PLAIN.finditer(code) if not match[1])
    return tuple(name for name in (*named, *plain) if name)
