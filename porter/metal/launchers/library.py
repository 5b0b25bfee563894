"""Functions that operators need of MetalShaderLibrary and a fork's lacks, as edits that add them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.core.formatting import format_block
from porter.core.layout import INDEXING, KERNEL_LIBRARY, MPS
from porter.metal.host import Dialect, declare_exec, name_exec
from porter.metal.insertion import insert_includes
from porter.metal.macros import MacroFamily

_DEFINITION = Path(__file__).with_name("with_params.mm")
_HEADERS = ("ATen/TensorIterator.h", "ATen/native/mps/OperationUtils.h", "c10/util/irange.h", "fmt/format.h")
# What both launch with, and the declared function that they follow.
_SHARED = "exec_kernel_with_params"
_LAST_DECLARED = re.compile(r"\bvoid\s+exec_binary_kernel\s*\([^;{}]*\)\s*;[^\n]*\n")
_LAST_DEFINED = "void MetalShaderLibrary::exec_binary_kernel("
_SHARED_DECLARATION = f"""
  // Launches a kernel whose alpha is these bytes, of the type with this name.
  void {_SHARED}(TensorIteratorBase& iter, const std::string& name, const void* params, size_t size,
      const std::string& params_type_name);
"""


@dataclass(frozen=True)
class Helper:
    """A function of MetalShaderLibrary that launches the kernels of a family, in these layouts, with a struct."""

    family: MacroFamily
    layouts: tuple[str, ...]

    @property
    def name(self) -> str:
        return name_exec(self.family, with_params=True)

    def define(self) -> str:
        """Returns its definition in the class."""
        macro = f"REGISTER_{self.family.value.upper()}_OP"
        comment = f"// Runs a kernel of {macro} that is registered with a struct of this name."
        call = f"{_SHARED}(iter, name, &params, sizeof(T), params_type_name);"
        return f"\n  {comment}\n  {declare_exec(self.name)} {{\n    {call}\n  }}\n"


HELPERS = (
    Helper(MacroFamily.UNARY_ALPHA, ("dense", "strided")),
    Helper(MacroFamily.BINARY_ALPHA, ("dense", "strided_cast")),
)


def find_lacking(checkout: Checkout) -> tuple[Helper, ...]:
    """The functions that the fork's library lacks, and that its kernels and its other functions allow to add."""
    if not (checkout.exists(INDEXING) and _find_library(checkout)):
        return ()
    there, kernels = {each.name for each in Dialect.read(checkout).execs}, checkout.read(INDEXING)
    return tuple(
        each
        for each in HELPERS
        if each.name not in there and all(f"void {each.family.value}_{layout}(" in kernels for layout in each.layouts)
    )


def add_to_library(checkout: Checkout, helpers: Sequence[Helper]) -> Iterator[Edit]:
    """Declares functions in the header of MetalShaderLibrary, and defines what they call in its code."""
    header, code = checkout.read(KERNEL_LIBRARY), _find_library(checkout)
    declared = _LAST_DECLARED.search(header)
    assert declared and code
    is_there = f" {_SHARED}(" in header
    text = "".join(each.define() for each in helpers) + ("" if is_there else _SHARED_DECLARATION)
    yield Edit(KERNEL_LIBRARY, declared.end(), declared.end(), _format_members(checkout, text))
    if is_there:
        return
    library = checkout.read(code)
    at = library.index("\n}\n", library.index(_LAST_DEFINED)) + len("\n}\n")
    yield Edit(code, at, at, "\n" + format_block(checkout, code, _DEFINITION.read_text()))
    yield from insert_includes(code, library, _HEADERS)


def _find_library(checkout: Checkout) -> str | None:
    """The file that defines the library's functions, if its header has a place for another."""
    if not checkout.exists(KERNEL_LIBRARY) or not _LAST_DECLARED.search(checkout.read(KERNEL_LIBRARY)):
        return None
    return next((path for path in checkout.list(MPS, ".mm") if _LAST_DEFINED in checkout.read(path)), None)


def _format_members(checkout: Checkout, text: str) -> str:
    """The text of members, formatted as in a class."""
    written = format_block(checkout, KERNEL_LIBRARY, f"class C {{\n public:\n{text}}};\n")
    return "\n" + written.partition("public:\n")[2].rpartition("};")[0].lstrip("\n")
