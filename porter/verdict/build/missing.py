"""What a link misses, and functions that stand in for it, so that old code runs up to the call that needs one.

A fork between two versions may call functions that are gone. No library of its files links then, though most of its
operators never get to such a call.
"""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from porter.aten.native_functions import NativeFunctions
from porter.core.cache import digest, put_if_changed
from porter.core.errors import Place, PorterError
from porter.core.files import read_regular
from porter.core.layout import ATEN_ROOT, NATIVE_FUNCTIONS
from porter.languages.source import parse_source
from porter.verdict.build.objects import Recipe
from porter.verdict.build.registration import MetaClass, find_meta_class
from porter.verdict.build.tree import Tree
from porter.verdict.result import ForkFinding

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


# Structured kernels that a host file defines and no row names.
#
# A tree whose rows are newer than some of its host files has them: the row joined the shared kernel, and the old one is
# still there (`softplus_out_mps` under the rows of 2.15). torchgen declares the class of a structured kernel for a row
# alone, so that the whole file would not compile, with all that other operators need of it.


WRAPPER = "TORCH_IMPL_FUNC"
_WRAPPED = re.compile(rf"^{WRAPPER}\(\s*(\w+)\s*\)", re.M)


@dataclass(frozen=True)
class UnnamedKernel:
    """A structured kernel without a row: its parameters as written, and the class of the row that it served once."""

    name: str
    parameters: str
    meta: MetaClass
    place: Place


def list_unnamed(tree: Tree, path: str) -> tuple[UnnamedKernel, ...]:
    """The structured kernels of a host file that no row names, of which a row's class is known.

    One that a row named before the plan is not among them: a plan that moves the row has to remove it.
    """
    text = tree.read(path)
    names = set(_WRAPPED.findall(text))
    if not names:
        return ()
    rows = tree.read(NATIVE_FUNCTIONS)
    # Of any backend: a new operator's own file has its kernel for the CPU too.
    named = (NativeFunctions.parse(each).kernels for each in (rows, tree.before(NATIVE_FUNCTIONS)))
    return tuple(_read_unnamed(path, text, rows, names.difference(*named)))


def _read_unnamed(path: str, text: str, rows: str, names: Iterable[str]) -> Iterator[UnnamedKernel]:
    source = parse_source(path, text)
    for function in source.functions():
        if function.wrapper == WRAPPER and function.name in names:
            meta = find_meta_class(rows, function.name)
            if meta is not None:
                yield UnnamedKernel(function.name, function.params, meta, source.place(function.start))


def write_header(tree: Tree, path: str, include: Path) -> None:
    """Writes the header that declares a host file's unnamed kernels, which `find_header` finds; none if it has none."""
    kernels = list_unnamed(tree, path)
    if kernels:
        put_if_changed(_place_header(path, include), write_declarations(kernels))


def find_header(path: str, include: Path) -> Path | None:
    """The header to compile a host file with, if one was written for it."""
    header = _place_header(path, include)
    return header if header.is_file() else None


def _place_header(path: str, include: Path) -> Path:
    return include / "unnamed" / f"{digest(path)}.h"


def write_declarations(kernels: Iterable[UnnamedKernel]) -> str:
    """C++ that declares kernels as torchgen does in `<op>_native.h` for those that a row names."""
    kernels = tuple(kernels)
    includes = "".join(f"#include <ATen/ops/{base}_meta.h>\n" for base in sorted({each.meta.base for each in kernels}))
    classes = "".join(
        f"struct structured_{kernel.name} : public at::meta::{kernel.meta.name} {{\n"
        f"  void impl({kernel.parameters});\n"
        "};\n"
        for kernel in kernels
    )
    return f"#pragma once\n{includes}namespace at::native {{\n{classes}}} // namespace at::native\n"


def find_dead_kernels(tree: Tree, files: Iterable[str]) -> tuple[ForkFinding, ...]:
    """A finding for each host file with kernels that no row names."""
    by_file = ((path, list_unnamed(tree, path)) for path in files)
    return tuple(_describe(kernels) for _, kernels in by_file if kernels)


def _describe(kernels: tuple[UnnamedKernel, ...]) -> ForkFinding:
    names = ", ".join(kernel.name for kernel in kernels)
    return ForkFinding(f"no row dispatches MPS to {names}", str(kernels[0].place))
