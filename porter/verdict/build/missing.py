"""What a link misses, and functions that stand in for it, so that old code runs up to the call that needs one.

A fork between two versions may call functions that are gone. No library of its files links then, though most of its
operators never get to such a call.
"""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from porter.core.errors import Place, PorterError
from porter.core.files import read_regular
from porter.core.layout import ATEN_ROOT
from porter.verdict.build.objects import Recipe
from porter.verdict.build.tree import Tree

_UNDEFINED = re.compile(r"undefined (?:reference to|symbol:) [`']?(?P<symbol>[^'\n]+)")
_DATA = re.compile(r"_Z(?:T[VTISC]|G[VR])")
_SOURCE = """
extern "C" void porter_missing_{number}() __asm__("{mangled}");
extern "C" void porter_missing_{number}() {{ throw std::runtime_error({what}); }}
"""


@dataclass(frozen=True)
class MissingSymbol:
    """A symbol that nothing defines, as the linker knows it and as C++ spells it."""

    mangled: str
    name: str

    @property
    def is_function(self) -> bool:
        """Whether it is a function of C++ that stays one whatever its type."""
        mangled = self.mangled.startswith("_Z") and not _DATA.match(self.mangled)
        return mangled and self.name.endswith((")", ") const"))


def find_missing(message: str) -> tuple[MissingSymbol, ...]:
    """The symbols that a linker's message with mangled names calls undefined."""
    found = dict.fromkeys(match["symbol"].strip() for match in _UNDEFINED.finditer(message))
    return tuple(MissingSymbol(mangled, _demangle(mangled)) for mangled in found)


def write_missing(symbols: Sequence[MissingSymbol]) -> str:
    """C++ source of functions that throw PTR167 with their names."""
    made = [
        _SOURCE.format(number=number, mangled=symbol.mangled, what=json.dumps(f"PTR167 nothing defines {symbol.name}"))
        for number, symbol in enumerate(symbols)
    ]
    return "".join(["#include <stdexcept>\n", *made])


def _demangle(mangled: str) -> str:
    status = ctypes.c_int()
    plain = _demangler()(mangled.encode(), None, None, ctypes.byref(status))
    return ctypes.string_at(plain).decode() if status.value == 0 else mangled


@lru_cache(maxsize=1)
def _demangler() -> ctypes._NamedFuncPointer:
    found = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    found.restype = ctypes.c_void_p
    return found


_FOLDERS = ("ATen/mps", "ATen/native/mps")
_NAMED = 5  # functions, by their headers


def find_new_runtime(tree: Tree, symbols: Sequence[MissingSymbol], recipe: Recipe) -> PorterError | None:
    """PTR168 where the runtime's headers declare all that nothing defines; None where they do not.

    The headers are the fork's, and for what it has none the installed torch's.
    """
    places = {symbol: _find_declaration(tree, symbol, recipe) for symbol in symbols}
    if not places or None in places.values():
        return None
    named = "; ".join(f"{symbol.name} ({place})" for symbol, place in list(places.items())[:_NAMED])
    more = f"; and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
    what = f"the MPS headers declare what neither the fork nor porter's device defines: {named}{more}"
    hint = "The headers are newer than this porter: update it, install the torch that they are of, or define these."
    return PorterError("PTR168", what, next(iter(places.values())), hint)


def _find_declaration(tree: Tree, symbol: MissingSymbol, recipe: Recipe) -> Place | None:
    """Where a header declares a function of a symbol's name."""
    name = symbol.name.partition("(")[0].rsplit("::", 1)[-1]
    if not symbol.is_function or not name.isidentifier():
        return None
    declared = re.compile(rf"\b{name}\s*\(")
    for place, text in _list_headers(tree, recipe):
        if found := declared.search(text):
            return Place(place, text.count("\n", 0, found.start()) + 1)
    return None


def _list_headers(tree: Tree, recipe: Recipe) -> Iterator[tuple[str, str]]:
    """The headers of the runtime, by their paths in the fork or in torch, and their texts."""
    own = [path for folder in _FOLDERS for path in tree.files(f"{ATEN_ROOT}/{folder}", ".h")]
    yield from ((path, tree.read(path)) for path in own)
    known = {path.removeprefix(f"{ATEN_ROOT}/") for path in own}
    roots = (Path(flag) for flag in recipe.flags if flag.startswith("/"))
    for path in (path for root in roots for folder in _FOLDERS for path in sorted(root.glob(f"{folder}/*.h"))):
        name = path.as_posix().rpartition("/ATen/")[2]
        if f"ATen/{name}" not in known:
            yield f"ATen/{name}", read_regular(path).decode(errors="replace")
