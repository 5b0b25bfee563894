"""What a link misses, and functions that stand in for it, so that old code runs up to the call that needs one.

A fork between two versions may call functions that are gone. No library of its files links then, though most of its
operators never get to such a call.
"""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

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
