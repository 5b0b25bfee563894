"""An operator that is native already: its kernels and stubs, read from the fork, so that it can be verified as is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from porter.aten.native_functions import SHARING_KEYS, NativeFunctions
from porter.aten.stubs import stubs_of
from porter.checkout import KERNELS, Checkout
from porter.errors import PorterError
from porter.metal.macros import MacroBook
from porter.metal.placing import registered
from porter.objcpp.implementations import Implementation, Written, find_registration, parsed, reached_text
from porter.overlay.verdict import VerifyTarget
from porter.rows import Row, mps_row

INDEXING = "c10/metal/indexing.h"
# The names of kernels in host code: an exec_* call's, a pipeline's, and one put together by a format.
_NAMES = (
    re.compile(r'\bexec_\w+\(\s*[^,"]+,\s*"(\w+)"'),
    re.compile(r'\bget(?:PipelineStateForFunc|MTLFunction|KernelFunction)\(\s*"(\w+?)_?"'),
    re.compile(r'\bformat\(\s*"(\w+?)_?\{'),
)
_LITERAL = re.compile(r'"([a-z]\w{2,}?)_?(?:\{[^"]*)?"')


def native_target(checkout: Checkout, op: str) -> VerifyTarget:
    """What verify has to know of an operator with Metal kernels.

    Raises PTR012 (no such operator), PTR018 (its host code names no kernel), PTR019 (no row of it is on Metal) or what
    reading its stubs raises.
    """
    family = NativeFunctions.read(checkout).family(op)
    rows = [row for entry in family if (row := mps_row(checkout, entry)) and row.written is Written.METAL]
    if not rows:
        raise PorterError(
            "PTR019", f"no row of {op} runs Metal kernels", family[0].place, "Plan its port: porter migrate."
        )
    shared = [row for row in rows if any(key in row.line.keys for key in SHARING_KEYS)]
    stubs = dict.fromkeys(call.stub.name for row in shared for call in stubs_of(checkout, row.line.kernel))
    found = [each for each in _implementations(checkout, rows, tuple(stubs)) if each]
    kernels = dict.fromkeys(name for each in found for name in _kernels(checkout, each))
    if not kernels:
        raise PorterError(
            "PTR018", f"the host code of {op} names no kernel", found[0].place, "Its name is put together elsewhere."
        )
    return VerifyTarget(
        base=family[0].base,
        rows=tuple(row.entry.name for row in rows),
        kernels=tuple(kernels),
        stubs=tuple(stubs),
        pairs=tuple(dict.fromkeys(pair for name in kernels for pair in _pairs(checkout, name))),
    )


def _implementations(checkout: Checkout, rows: Sequence[Row], stubs: Sequence[str]) -> Iterator[Implementation | None]:
    yield from (row.implementation for row in rows)
    yield from (find_registration(checkout, stub) for stub in stubs)


def _kernels(checkout: Checkout, implementation: Implementation) -> Iterator[str]:
    source = parsed(implementation.file, checkout.read(implementation.file))
    texts = tuple(reached_text(source, implementation))
    named = [name for text in texts for pattern in _NAMES for name in pattern.findall(text)]
    yield from named or _written(checkout, texts)


def _written(checkout: Checkout, texts: Sequence[str]) -> Iterator[str]:
    """The strings of host code that begin a name in a kernel file, for names that are handed on."""
    kernels = "\n".join(checkout.read(path) for path in checkout.list(KERNELS, ".metal"))
    for text in texts:
        for name in _LITERAL.findall(text):
            if re.search(rf"(?:\b|_){re.escape(name)}(?:_|\b)", kernels):
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
