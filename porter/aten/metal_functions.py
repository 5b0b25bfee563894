"""The functions that a fork's `c10/metal/*.h` headers declare: the first source of a functor's math.

Only their signatures are matched: these headers are 300 KB in a full fork, too much to lex for one operator.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from porter.core.checkout import Checkout
from porter.core.dtypes import ALL, Kind
from porter.core.layout import METAL_HEADERS

_FUNCTION = re.compile(
    # Every length is bounded, and none passes the next head: a file of nothing but heads would be searched to its end
    # from each of them.
    r"(?:template\s{0,40}<(?P<template>(?:(?!\btemplate\b)[^;{}]){0,1000}?)>\s{0,200}(?:inline\s{1,40})?|inline\s{1,40})"
    r"(?P<result>(?:(?!\btemplate\b)[\w:<>,!&|\s]){1,600}?)\s{1,40}(?P<name>\w{1,100})\s{0,40}"
    r"\((?P<params>[^(){};]{0,2000})\)\s{0,200}\{"
)
_TRAIT = re.compile(r"(?P<not>!)?\s*(?:::)?(?:c10::)?(?:metal::)?is_(?P<trait>\w+?)_v\b")
_TRAIT_KINDS: Mapping[str, frozenset[Kind]] = {
    "floating_point": frozenset({Kind.FLOATING}),
    "scalar_floating_point": frozenset({Kind.FLOATING}),
    "integral": frozenset({Kind.INTEGRAL, Kind.BOOL}),
    "scalar_integral": frozenset({Kind.INTEGRAL, Kind.BOOL}),
    "complex": frozenset({Kind.COMPLEX}),
}
_NAMESPACE = re.compile(
    r"^[ \t]*(?:inline\s+)?namespace(?P<name>[\w:\s]*)\{|^\}\s*//\s*(?:end\s+)?namespace\b[ \t]*(?P<closed>[\w:]*)",
    re.M,
)
_SCALARS = frozenset({Kind.FLOATING, Kind.INTEGRAL, Kind.BOOL})
_FLOAT_TYPES = frozenset(dtype.metal for dtype in ALL if dtype.kind is Kind.FLOATING)
_COMPLEX_TYPES = frozenset(dtype.metal for dtype in ALL if dtype.kind is Kind.COMPLEX)


LIBRARY = "c10::metal::"


@dataclass(frozen=True)
class MetalFunction:
    """One overload: its number of arguments, the kinds of element it accepts, and whether it only computes in float."""

    name: str
    header: str
    arity: int
    kinds: frozenset[Kind]
    float_only: bool

    @property
    def origin(self) -> str:
        """Its name in reports."""
        return f"{LIBRARY}{self.name} of {self.header}"


@dataclass(frozen=True)
class Library:
    """The inline functions and templates of the fork's c10/metal headers."""

    functions: tuple[MetalFunction, ...]

    @staticmethod
    def read(checkout: Checkout) -> Library:
        """Reads the headers. Unrelated overloads (indexing, atomics) are harmless: functions are looked up by name."""
        headers = checkout.list(METAL_HEADERS, ".h")
        return _library(tuple((path, checkout.read(path)) for path in headers))

    @cached_property
    def _by_name(self) -> dict[str, list[MetalFunction]]:
        found: dict[str, list[MetalFunction]] = {}
        for function in self.functions:
            found.setdefault(function.name, []).append(function)
        return found

    def find(self, name: str, arity: int, kind: Kind) -> MetalFunction | None:
        """Returns the overload for a kind of element, or None."""
        return next((f for f in self._by_name.get(name, ()) if f.arity == arity and kind in f.kinds), None)

    def has(self, name: str, of_complex: bool) -> bool:
        """Whether a function has this name and, if `of_complex`, an overload for complex numbers."""
        found = self._by_name.get(name, ())
        return any(Kind.COMPLEX in each.kinds for each in found) if of_complex else bool(found)


@lru_cache(maxsize=8)
def _library(headers: tuple[tuple[str, str], ...]) -> Library:
    return Library(tuple(function for path, text in headers for function in _functions(path, text)))


@lru_cache(maxsize=256)
def _functions(path: str, text: str) -> tuple[MetalFunction, ...]:
    return tuple(_read(path, text))


def _read(path: str, text: str) -> Iterator[MetalFunction]:
    public = _public_from(text)
    offsets = [offset for offset, _ in public]
    for match in _FUNCTION.finditer(text):
        if not public[bisect_right(offsets, match.start()) - 1][1]:
            continue
        params = [p.strip() for p in match["params"].split(",") if p.strip()]
        types = [_read_type(param) for param in params]
        constraint = f"{match['template'] or ''} {match['result']}"
        kinds = _kinds(constraint, types, templated=match["template"] is not None)
        if kinds:
            float_only = match["result"].split()[-1] == "float" and "enable_if" not in match["result"]
            yield MetalFunction(match["name"], path, len(params), kinds, float_only)


def _public_from(text: str) -> list[tuple[int, bool]]:
    """From which offsets on the innermost open namespace is c10::metal, or is not, as far as the text before tells."""
    opened, found = list[str](), [(0, True)]
    for match in _NAMESPACE.finditer(text):
        if match["name"] is not None:
            opened += (match["name"].strip() or "(anonymous)").split("::")
        elif opened:
            del opened[-len(match["closed"].split("::")) :]
        found.append((match.end(), not opened or opened[-1] == "metal"))
    return found


def _read_type(param: str) -> str:
    words = [w for w in param.split() if w not in ("const", "thread")]
    return words[0] if words else ""


def _kinds(constraint: str, types: list[str], *, templated: bool) -> frozenset[Kind]:
    traits = [m for m in _TRAIT.finditer(constraint) if m["trait"] in _TRAIT_KINDS]
    if traits:
        wanted = frozenset[Kind]().union(*(_TRAIT_KINDS[m["trait"]] for m in traits if not m["not"]))
        unwanted = frozenset[Kind]().union(*(_TRAIT_KINDS[m["trait"]] for m in traits if m["not"]))
        return (wanted or _SCALARS) - unwanted
    if any(t in _COMPLEX_TYPES for t in types):
        return frozenset({Kind.COMPLEX})
    if any(t in _FLOAT_TYPES for t in types):
        return frozenset({Kind.FLOATING})
    return _SCALARS if templated else frozenset()
