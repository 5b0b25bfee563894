"""What launches a family's kernels: a function of the fork's MetalShaderLibrary, or one that the host file defines.

A fork may have the kernels of c10/metal/indexing.h without a function for them, or without one for their scalars.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.layout import INDEXING
from porter.metal.host import Dialect, Exec
from porter.metal.macros import MacroFamily
from porter.metal.params import ParamsStruct

FOLDER = Path(__file__).parent
_TERNARY = Exec("exec_ternary", ("dtype",), owner="")
TERNARY_HEADERS = ("ATen/native/mps/OperationUtils.h", "c10/util/irange.h", "fmt/format.h")
SPLIT = "split_results"
SPLIT_HEADERS = ("ATen/MemoryOverlap.h", "c10/util/irange.h")
_LAYOUTS = ("strided", "strided_cast", "dense", "dense_cast")


def find_launcher(checkout: Checkout, family: MacroFamily, scalars: Sequence[str], struct: ParamsStruct | None) -> Exec:
    """Returns the fork's function that launches a family, or the one to define. Raises PTR091 if there is neither."""
    try:
        found = Dialect.read(checkout).find_exec(family, struct is not None)
    except PorterError:
        if not _has_ternary_kernels(checkout, family):
            raise
        return _TERNARY
    if scalars and not struct and "alpha" not in found.params and _has_ternary_kernels(checkout, family):
        return _TERNARY
    return found


def define_launcher(launcher: Exec, host: str) -> str:
    """Returns the definition of a launcher that a host file lacks, or "" if it has it or needs none."""
    if launcher.owner or f" {launcher.name}(" in host:
        return ""
    return (FOLDER / "ternary.mm").read_text()


def define_split(host: str) -> str:
    """Returns the definition of what makes an iterator for each result, or "" if a host file has it."""
    return "" if f" {SPLIT}(" in host else (FOLDER / "results.mm").read_text()


def _has_ternary_kernels(checkout: Checkout, family: MacroFamily) -> bool:
    """Whether the fork's header has every kernel that the definition launches."""
    if family not in (MacroFamily.TERNARY, MacroFamily.TERNARY_ALPHA):
        return False
    text = checkout.read(INDEXING)
    return all(f"void {family.value}_{layout}(" in text for layout in _LAYOUTS)
