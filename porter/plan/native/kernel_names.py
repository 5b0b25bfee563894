"""Checks that host code finds the kernel that it names: no other of the library has a name that it can make.

Host code appends types to the name of a kernel. The names of its instances are those that the macros of a file make;
every kernel file of a fork goes into one library.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from porter.core.checkout import Checkout
from porter.core.dtypes import BY_METAL
from porter.core.errors import Place, PorterError
from porter.core.layout import INDEXING, KERNELS
from porter.languages.brackets import find_closing_end
from porter.languages.directives import Macro, read_macros
from porter.languages.lexer import TokenKind, lex
from porter.languages.preprocessor import expand_uses
from porter.plan.native.port import WrittenKernel

_HOST_NAME = re.compile(r"\bhost_name\s*\(([^)]*)\)")
_LITERAL = re.compile(r'"([^"]*)"')
_FORM = re.compile(r'\bhost_name\s*\(\s*"(\w*?)_?"((?:\s*#\s*\w+|\s*"_")*)\s*\)')
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
    forms = {form: kernel.file for kernel in kernels for form in _list_forms(kernel.source)}
    for form, path in forms.items():
        for other in forms:
            if other != form and other.makes(form.example):
                raise _refuse(path, other, form.example)
    own = Counter(name for kernel in kernels for name in list_kernel_names(kernel.source))
    first_words = {form.base.partition("_")[0] for form in forms}
    for name, path in _list_others(fork, first_words, Counter(own.keys())):
        for form in forms:
            if form.makes(name):
                raise _refuse(path, form, name)


def _refuse(path: str, form: _Form, name: str) -> PorterError:
    what = f"host code can make the name of the kernel {name} of {form.base} and types"
    return PorterError("PTR490", what, Place(path), "See docs/errors/PTR490.md.")


def _list_others(fork: Checkout, first_words: Iterable[str], own: Counter[str]) -> Iterator[tuple[str, str]]:
    """Yields the names of the other kernels in files with one of these words, and the file of each."""
    left = own.copy()
    shared = read_macros(fork.read(INDEXING)) if fork.exists(INDEXING) else ()
    for path in fork.list(KERNELS, ".metal"):
        text = fork.read(path)
        for name in list_kernel_names(text, shared) if any(word in text for word in first_words) else ():
            if left[name]:
                left[name] -= 1
            else:
                yield name, path


@lru_cache(maxsize=256)
def list_kernel_names(text: str, shared: tuple[Macro, ...] = ()) -> tuple[str, ...]:
    """The names of the kernels that a Metal source makes, with those that macros make, its own and `shared` ones."""
    macros = {macro.name: macro for macro in (*shared, *read_macros(text)) if macro.params}
    code = _read_code(text)
    uses = (match for match in _USE.finditer(code) if match[1] in macros)
    made = (expand_uses(code[match.start(1) : find_closing_end(code, match.end() - 1)], macros) for match in uses)
    named = ("".join(_LITERAL.findall(pieces)) for pieces in _HOST_NAME.findall("\n".join((code, *made))))
    plain = (match[2] for match in _PLAIN.finditer(code) if not match[1])
    return tuple(name for name in (*named, *plain) if name)


def _list_forms(text: str) -> Iterator[_Form]:
    for match in _FORM.finditer(text):
        yield _Form(match[1], match[2].count("#"))
    yield from (_Form(match[2], 0) for match in _PLAIN.finditer(_read_code(text)) if not match[1])


def _read_code(text: str) -> str:
    """A source without its directives and comments."""
    return "".join(token.text for token in lex(text) if token.kind not in (TokenKind.COMMENT, TokenKind.DIRECTIVE))
