"""Finds the kernels and stubs of an operator that is already native, so that it can be verified as is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from porter.aten.declarations import MPS_KEY
from porter.aten.implementations import (
    Implementation,
    Language,
    expand_implementation,
    find_called_stubs,
    find_registration,
    launches_kernel,
    read_reachable_text,
)
from porter.aten.native_functions import SHARING_KEYS, NativeFunctions
from porter.aten.operator import ServedFunction, find_served, find_shared_stubs, find_stubs_behind
from porter.aten.stubs import find_stubs
from porter.core import dtypes
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.layout import INDEXING, KERNELS
from porter.languages.source import parse_source
from porter.metal.insertion import find_registrations
from porter.metal.macros import MacroBook
from porter.verdict.errors import NoKernelNamed, NotNative
from porter.verdict.result import ForkFinding, VerifyTarget, finding_of_error

# Kernel names in host code: in an exec_* call, of a pipeline, and in a format string.
_NAMES = (
    re.compile(r'\bexec_\w+\(\s*[^,"]+,\s*"(\w+)"'),
    re.compile(r'\bget(?:PipelineStateForFunc|MTLFunction|KernelFunction)\(\s*"(\w+?)_?"'),
    re.compile(r'\bformat\(\s*"(\w+?)_?\{'),
)
_INLINE = re.compile(r'\bR"(\w*)\((?P<source>.*?)\)\1"', re.S)
_FORWARD, _BACKWARD = "_forward", "_backward"
_LITERAL = re.compile(r'"([a-z]\w{2,}?)_?(?:\{[^"]*)?"')


def runs_kernels(checkout: Checkout, row: ServedFunction | None) -> bool:
    """Returns true if the host code of a row launches a Metal kernel, with or without a graph."""
    found = _implementations(checkout, [row], find_stubs_behind(checkout, row)) if row else ()
    return any(each and launches_kernel(checkout, each) for each in found)


def native_target(checkout: Checkout, op: str, beside_graphs: bool = False) -> VerifyTarget:
    """The target for an operator with Metal kernels; if `beside_graphs`, also for one that builds graphs too.

    Raises PTR012 (no such operator), NoKernelNamed (PTR018) or NotNative (PTR019: no row of it is on Metal).
    """
    family = NativeFunctions.read(checkout).find_overloads(op)
    served = [row for entry in family if (row := find_served(checkout, entry))]
    rows = [row for row in served if row.language is Language.METAL]
    rows = rows or [row for row in served if beside_graphs and runs_kernels(checkout, row)]
    unknown = next((row.error for row in served if row.error), None)
    if not rows and unknown:
        raise unknown
    if not rows:
        raise NotNative(
            "PTR019", f"no row of {op} runs Metal kernels", family[0].place, "Run `porter migrate` to port it."
        )
    shared = [row for row in rows if any(key in row.entry.keys for key in SHARING_KEYS)]
    stubs = dict.fromkeys(stub for row in shared for stub in find_shared_stubs(checkout, row.entry))
    own = (row.implementation for row in rows if row not in shared)
    stubs |= dict.fromkeys(stub for each in own if each for stub in find_called_stubs(checkout, each))
    found = [each for each in _implementations(checkout, rows, tuple(stubs)) if each]
    kernels = dict.fromkeys(name for each in found for name in _kernels(checkout, each))
    if not kernels:
        raise NoKernelNamed(
            "PTR018", f"the host code of {op} names no kernel", found[0].place, "The name may be built elsewhere."
        )
    pairs = tuple(dict.fromkeys(pair for name in kernels for pair in _pairs(checkout, name)))
    target = VerifyTarget(
        base=family[0].base,
        rows=tuple(row.function.name for row in rows),
        kernels=tuple(kernels),
        stubs=tuple(stubs),
        pairs=pairs,
        as_is=not pairs,
        elsewhere=_list_answered(checkout, shared) if rows == shared else (),
        registers=False,
    )
    return add_gradient(target, checkout)


def find_unserved(checkout: Checkout, op: str) -> tuple[ForkFinding, ...]:
    """The rows of an operator that dispatch to MPS and have no code in the fork: their tests can only fail."""
    served = (find_served(checkout, entry) for entry in NativeFunctions.read(checkout).find_overloads(op))
    return tuple(finding_of_error(row.error) for row in served if row and row.error)


def _list_answered(checkout: Checkout, shared: Sequence[ServedFunction]) -> tuple[str, ...]:
    """The types (torch names) for which a function that MPS shares calls no stub: that of round copies integers."""
    answered: dict[str, None] = {}
    for row in shared:
        try:
            calls = find_stubs(checkout, row.entry.kernel)
        except PorterError:
            continue
        called = {dtype for call in calls for dtype in call.dtypes}
        answered |= dict.fromkeys(dtype.torch for dtype in dtypes.ALL if called and dtype not in called)
    return tuple(answered)


def add_gradient(target: VerifyTarget, after: Checkout) -> VerifyTarget:
    """The target with the operator of its gradient: what a forward leaves for it on MPS, the CPU's may not take."""
    name = f"{target.base.removesuffix(_FORWARD)}{_BACKWARD}"
    functions = NativeFunctions.read(after)
    is_pair = target.base.endswith(_FORWARD) and functions.has(name)
    if not is_pair or not any(each.entry_for(MPS_KEY) for each in functions.find_overloads(name)):
        return target
    return replace(target, through=(*target.through, name))


def _implementations(
    checkout: Checkout, rows: Sequence[ServedFunction], stubs: Sequence[str]
) -> Iterator[Implementation | None]:
    yield from (row.implementation for row in rows)
    yield from (find_registration(checkout, stub) for stub in stubs)


def named_kernels(checkout: Checkout, path: str, text: str) -> tuple[str, ...]:
    """The names of the kernels that host code launches, directly or through functions it calls."""
    texts = tuple(read_reachable_text(checkout, path, text))
    named = [name for each in texts for pattern in _NAMES for name in pattern.findall(each)]
    return tuple(dict.fromkeys(named or _find_literals(_shaders(checkout, path), texts)))


def _kernels(checkout: Checkout, implementation: Implementation) -> tuple[str, ...]:
    source = parse_source(implementation.file, checkout.read(implementation.file))
    return named_kernels(checkout, implementation.file, expand_implementation(source, implementation))


def _shaders(checkout: Checkout, file: str) -> str:
    """The fork's kernel files, and the Metal source in strings of a host file."""
    files = (checkout.read(path) for path in checkout.list(KERNELS, ".metal"))
    return "\n".join((*files, *(match["source"] for match in _INLINE.finditer(checkout.read(file)))))


def _find_literals(shaders: str, texts: Sequence[str]) -> Iterator[str]:
    """The strings in host code that are prefixes of a kernel name, for names passed to other functions."""
    for text in texts:
        for name in _LITERAL.findall(text):
            if re.search(rf"(?:\b|_){re.escape(name)}(?:_|\b)", shaders):
                yield name


def _pairs(checkout: Checkout, functor: str) -> Iterator[tuple[str, str]]:
    """The (input, output) Metal types of a functor's REGISTER lines."""
    indexing = parse_source(INDEXING, checkout.read(INDEXING)).macros() if checkout.exists(INDEXING) else ()
    for path in checkout.list(KERNELS, ".metal"):
        text = checkout.read(path)
        if functor in text:
            source = parse_source(path, text)
            book = MacroBook.read((*indexing, *source.macros()))
            for use in find_registrations(source, book, functor):
                for _, instance in book.expand(use.name, use.arguments):
                    yield instance.input, instance.output
