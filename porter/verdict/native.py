"""An operator that is native already: its kernels and stubs, read from the fork, so that it can be verified as is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from porter.aten.implementations import Implementation, Language, find_registration, launches, own_text
from porter.aten.native_functions import SHARING_KEYS, NativeFunctions
from porter.aten.operator import ServedFunction, find_served, shared_stubs, stubs_behind
from porter.aten.reach import parsed, reached_text
from porter.core.checkout import Checkout
from porter.core.layout import INDEXING, KERNELS
from porter.metal.macros import MacroBook
from porter.metal.placing import registered
from porter.verdict.errors import NoKernelNamed, NotNative
from porter.verdict.result import VerifyTarget

# The names of kernels in host code: an exec_* call's, a pipeline's, and one put together by a format.
_NAMES = (
    re.compile(r'\bexec_\w+\(\s*[^,"]+,\s*"(\w+)"'),
    re.compile(r'\bget(?:PipelineStateForFunc|MTLFunction|KernelFunction)\(\s*"(\w+?)_?"'),
    re.compile(r'\bformat\(\s*"(\w+?)_?\{'),
)
_INLINE = re.compile(r'\bR"(\w*)\((?P<source>.*?)\)\1"', re.S)
_LITERAL = re.compile(r'"([a-z]\w{2,}?)_?(?:\{[^"]*)?"')


def launching(checkout: Checkout) -> tuple[str, ...]:
    """The base names of the operators whose host code launches a Metal kernel, beside a graph or not."""
    entries = NativeFunctions.read(checkout).entries
    return tuple(dict.fromkeys(entry.base for entry in entries if _launching(checkout, find_served(checkout, entry))))


def _launching(checkout: Checkout, row: ServedFunction | None) -> bool:
    found = _implementations(checkout, [row], stubs_behind(checkout, row)) if row else ()
    return any(each and launches(checkout, each) for each in found)


def native_target(checkout: Checkout, op: str, beside_graphs: bool = False) -> VerifyTarget:
    """What verify has to know of an operator with Metal kernels; of one that builds graphs too if `beside_graphs`.

    Raises PTR012 (no such operator), NoKernelNamed (PTR018) or NotNative (PTR019: no row of it is on Metal).
    """
    family = NativeFunctions.read(checkout).family(op)
    served = [row for entry in family if (row := find_served(checkout, entry))]
    rows = [row for row in served if row.language is Language.METAL]
    rows = rows or [row for row in served if beside_graphs and _launching(checkout, row)]
    unknown = next((row.error for row in served if row.error), None)
    if not rows and unknown:
        raise unknown
    if not rows:
        raise NotNative(
            "PTR019", f"no row of {op} runs Metal kernels", family[0].place, "Run `porter migrate` to port it."
        )
    shared = [row for row in rows if any(key in row.entry.keys for key in SHARING_KEYS)]
    stubs = dict.fromkeys(stub for row in shared for stub in shared_stubs(checkout, row.entry))
    found = [each for each in _implementations(checkout, rows, tuple(stubs)) if each]
    kernels = dict.fromkeys(name for each in found for name in _kernels(checkout, each))
    if not kernels:
        raise NoKernelNamed(
            "PTR018", f"the host code of {op} names no kernel", found[0].place, "The name may be built elsewhere."
        )
    pairs = tuple(dict.fromkeys(pair for name in kernels for pair in _pairs(checkout, name)))
    return VerifyTarget(
        base=family[0].base,
        rows=tuple(row.function.name for row in rows),
        kernels=tuple(kernels),
        stubs=tuple(stubs),
        pairs=pairs,
        as_is=not pairs,
    )


def _implementations(
    checkout: Checkout, rows: Sequence[ServedFunction], stubs: Sequence[str]
) -> Iterator[Implementation | None]:
    yield from (row.implementation for row in rows)
    yield from (find_registration(checkout, stub) for stub in stubs)


def named_kernels(checkout: Checkout, path: str, text: str) -> tuple[str, ...]:
    """The names of kernels that a text of a host file launches, itself or through what it calls."""
    texts = tuple(reached_text(checkout, path, text))
    named = [name for each in texts for pattern in _NAMES for name in pattern.findall(each)]
    return tuple(dict.fromkeys(named or _written(_shaders(checkout, path), texts)))


def _kernels(checkout: Checkout, implementation: Implementation) -> tuple[str, ...]:
    source = parsed(implementation.file, checkout.read(implementation.file))
    return named_kernels(checkout, implementation.file, own_text(source, implementation))


def _shaders(checkout: Checkout, file: str) -> str:
    """The fork's kernel files, and the Metal that a host file holds in strings."""
    files = (checkout.read(path) for path in checkout.list(KERNELS, ".metal"))
    return "\n".join((*files, *(match["source"] for match in _INLINE.finditer(checkout.read(file)))))


def _written(shaders: str, texts: Sequence[str]) -> Iterator[str]:
    """The strings of host code that begin a name in a kernel's source, for names that are handed on."""
    for text in texts:
        for name in _LITERAL.findall(text):
            if re.search(rf"(?:\b|_){re.escape(name)}(?:_|\b)", shaders):
                yield name


def _pairs(checkout: Checkout, functor: str) -> Iterator[tuple[str, str]]:
    """The (input, output) Metal types that REGISTER lines give a functor."""
    indexing = parsed(INDEXING, checkout.read(INDEXING)).macros() if checkout.exists(INDEXING) else ()
    for path in checkout.list(KERNELS, ".metal"):
        text = checkout.read(path)
        if functor in text:
            source = parsed(path, text)
            book = MacroBook.read((*indexing, *source.macros()))
            for use in registered(source, book, functor):
                for _, instance in book.expand(use.name, use.arguments):
                    yield instance.input, instance.output
