"""Where the old code of a kernel stands, and what it is written in: MPSGraph, Metal or neither."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from porter.aten.reach import parsed, reached_text
from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.layout import OPERATIONS
from porter.languages.identifiers import mentions
from porter.languages.preprocessor import expand
from porter.languages.source import Function, Macro, MacroUse, Source


class Written(Enum):
    """What an implementation is written in."""

    MPSGRAPH = "MPSGraph"
    METAL = "Metal"
    OTHER = "other"


@dataclass(frozen=True)
class Implementation:
    """A kernel of `operations/*.mm`: a function, or a macro line (`use` of `macro`) that makes one."""

    file: str
    symbol: str
    start: int
    end: int
    place: Place
    function: Function | None = None
    use: MacroUse | None = None
    macro: Macro | None = None

    @property
    def shape(self) -> str:
        """How it is made, for `explain`."""
        if self.use:
            return f"one line of the macro {self.use.name}"
        return f"a {self.function.wrapper}" if self.function and self.function.wrapper else "a function"


def host_sources(checkout: Checkout) -> list[str]:
    """The Objective-C++ files that implement MPS operators."""
    return checkout.list(OPERATIONS, ".mm", ".cpp")


def find_implementation(checkout: Checkout, kernel: str) -> Implementation:
    """The code of an `MPS:` kernel of native_functions.yaml. Raises PTR032 when no operator file defines it."""
    name = kernel.rsplit("::", 1)[-1]
    for path in _mentioning(checkout, name):
        found = _defined(parsed(path, checkout.read(path)), name)
        if found:
            return found
    raise PorterError(
        "PTR032",
        f"no file of {OPERATIONS} defines {kernel}",
        Place(OPERATIONS),
        "It may be defined outside the MPS folder, or pasted together by a macro of a header.",
    )


def find_registration(checkout: Checkout, stub: str) -> Implementation | None:
    """What is registered for a stub on MPS: the registered function, or the macro line that makes and registers one."""
    for path in host_sources(checkout):
        text = checkout.read(path)
        if not any(name in text for name in _REGISTERING):
            continue
        source = parsed(path, text)
        for use, macro, written in _registrations(source):
            if written[0] != stub:
                continue
            if macro:
                return Implementation(path, stub, use.start, use.end, source.place(use.start), None, use, macro)
            function = _function(source, written[1])
            if function:
                return _of_function(source, function)
    return None


def written_in(checkout: Checkout, implementation: Implementation) -> Written:
    """What the implementation, with the helpers that it calls, is written in; MPSGraph wins."""
    if any(map(_BUILDS_GRAPH.search, reached(checkout, implementation))):
        return Written.MPSGRAPH
    return Written.METAL if launches(checkout, implementation) else Written.OTHER


def launches(checkout: Checkout, implementation: Implementation) -> bool:
    """Whether the implementation launches a Metal kernel, beside a graph or not."""
    return any(map(_METAL.search, reached(checkout, implementation)))


_BUILDS_GRAPH = re.compile(r"\bmpsGraph\b|\bMPSGraphTensor\b|LookUpOrCreateCachedGraph|runMPSGraph")
_METAL = re.compile(
    r"getPipelineStateForFunc|exec_\w+_kernel|MTLComputePipelineState|getKernelFunction|mtl_dispatch1DJob|getMTLFunction"
    r"|setComputePipelineState"
)
_REGISTERING = ("REGISTER_DISPATCH", "REGISTER_MPS_DISPATCH")
_DISPATCH = re.compile(r"REGISTER_(?:MPS_)?DISPATCH\s*\(\s*(\w+)\s*,\s*&?\s*([\w:]+)\s*\)")


def own_text(source: Source, implementation: Implementation) -> str:
    """The text of an implementation, with its macro expanded."""
    if implementation.use and implementation.macro:
        return expand(implementation.macro, implementation.use.arguments)
    return source.text[implementation.start : implementation.end]


def reached(checkout: Checkout, implementation: Implementation) -> Iterator[str]:
    """The text of an implementation and of every function that it calls: see `reach.reached_text`."""
    source = parsed(implementation.file, checkout.read(implementation.file))
    return reached_text(checkout, implementation.file, own_text(source, implementation))


def _mentioning(checkout: Checkout, name: str) -> Iterator[str]:
    """Files that contain the name, then files whose macros may paste it together."""
    paths = host_sources(checkout)
    yield from (path for path in paths if mentions(checkout.read(path), name))
    yield from (path for path in paths if "##" in checkout.read(path))


def _defined(source: Source, name: str) -> Implementation | None:
    function = _function(source, name)
    if function:
        return _of_function(source, function)
    for use, macro, made in expansions(source.path, source.text):
        if mentions(made, name):
            return Implementation(source.path, name, use.start, use.end, source.place(use.start), None, use, macro)
    return None


def _of_function(source: Source, function: Function) -> Implementation:
    place = source.place(function.start)
    return Implementation(source.path, function.name, function.start, function.end, place, function)


def _function(source: Source, name: str) -> Function | None:
    return next(iter(source.functions_by_name.get(name.rsplit("::", 1)[-1], ())), None)


@lru_cache(maxsize=256)
def expansions(path: str, text: str) -> tuple[tuple[MacroUse, Macro, str], ...]:
    """The uses of macros that the file itself defines, where the number of arguments fits, and what each makes."""
    source = parsed(path, text)
    macros = {macro.name: macro for macro in source.macros() if macro.params is not None}
    return tuple(
        (use, macros[use.name], expand(macros[use.name], use.arguments))
        for use in source.macro_uses()
        if use.name in macros and len(use.arguments) == len(macros[use.name].params or ())
    )


def _registrations(source: Source) -> Iterator[tuple[MacroUse, Macro | None, tuple[str, str]]]:
    """Each registration of a stub: written out, or made by a macro line."""
    for use in source.macro_uses():
        if use.name in _REGISTERING and len(use.arguments) == 2:
            yield use, None, (use.arguments[0], use.arguments[1].lstrip("& "))
    for use, macro, made in expansions(source.path, source.text):
        for match in _DISPATCH.finditer(made):
            yield use, macro, (match[1], match[2])
