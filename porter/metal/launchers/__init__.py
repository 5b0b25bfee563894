"""What launches a family's kernels: a function of the fork's MetalShaderLibrary, or one that the host file defines.

A fork may have the kernels of c10/metal/indexing.h without a function for them, or without one for their scalars.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.layout import INDEXING, KERNEL_LIBRARY, MPS
from porter.metal.host import RESULT_TYPE, Dialect, Exec, declare_exec, name_exec
from porter.metal.launchers.library import find_lacking
from porter.metal.macros import MacroFamily
from porter.metal.params import ParamsStruct

FOLDER = Path(__file__).parent
_TERNARY = Exec("exec_ternary", ("dtype",), owner="")
CASTOUT = Exec("exec_binary_castout", ("result",), owner="")
_DEFINITIONS = {_TERNARY.name: "ternary.mm", CASTOUT.name: "castout.mm"}
_CONVERTED = "launch_converted"
LAUNCHER_HEADERS = ("ATen/native/mps/OperationUtils.h", "c10/util/irange.h", "fmt/format.h")
SPLIT = "split_results"
SPLIT_HEADERS = ("ATen/MemoryOverlap.h", "c10/util/irange.h")
_CASTOUT_LAYOUT = "strided_castout"
# The type of an output, where it becomes a part of a kernel's name.
_TYPE_OF_OUTPUT = re.compile(r"\b(?:value_or|scalarToMetalTypeString)\(\s*(?:iter\.)?out(?:put(?:Tensor)?)?\b")
_LAYOUTS = ("strided", "strided_cast", "dense", "dense_cast")
_TERNARIES = (MacroFamily.TERNARY, MacroFamily.TERNARY_ALPHA)


def find_launcher(
    checkout: Checkout, family: MacroFamily, scalars: Sequence[str], struct: ParamsStruct | None, chooses: bool
) -> Exec:
    """Returns the fork's function that launches a family, or the one to define.

    A scalar that the function does not take comes as a struct would. An iterator that only `chooses` elements promotes
    none: its common type is the condition's, and the fork's ternary function would launch a kernel of that. Raises
    PTR091 if there is no such function, or no kernel for the one to define.
    """
    if chooses and family in _TERNARIES:
        if lacking_kernels := _list_lacking_kernels(checkout, family):
            what = f"a choice by a condition takes kernels that this fork lacks: {', '.join(lacking_kernels)}"
            raise PorterError("PTR091", what, Place(INDEXING), "Add them from PyTorch's header first.")
        return _TERNARY
    dialect, name = Dialect.read(checkout), name_exec(family, struct is not None)
    found = dialect.find_exec(name)
    if scalars and not struct and found and "alpha" not in found.params:
        name = name_exec(family, with_params=True)
        found = dialect.find_exec(name)
    if found:
        return found
    if family in _TERNARIES and not _list_lacking_kernels(checkout, family):
        return _TERNARY
    lacking = {each.name for each in find_lacking(checkout)}
    hint = "Run again with --with-helpers, which adds it." if name in lacking else "Add it to the fork first."
    raise PorterError("PTR091", f"this fork declares no {name}, `{declare_exec(name)};`", Place(KERNEL_LIBRARY), hint)


def find_result_launcher(checkout: Checkout, found: Exec) -> Exec:
    """Returns what launches binary kernels whose results have a type of their own: the fork's function if that takes
    the type, or the one to define.

    Raises PTR092 if the fork's header has no kernel for such a function.
    """
    kernels = f"void binary_{_CASTOUT_LAYOUT}("
    if RESULT_TYPE in found.params or kernels not in checkout.read(INDEXING):
        found.require(RESULT_TYPE)
        return found
    return CASTOUT


def converts_results(checkout: Checkout, launcher: Exec) -> bool:
    """Whether results of another type than the operands' are the launcher's business, and not of what calls it.

    PyTorch 2.15's `exec_binary_kernel` asks for kernels that write the type of the output, such as
    `add_dense_float_half_float`; a functor of halves has none. Those that take a struct are templates of a header.
    """
    start = f"void MetalShaderLibrary::{launcher.name}("
    texts = (checkout.read(path) for suffix in (".mm", ".h") for path in checkout.list(MPS, suffix))
    definitions = (part.partition("\n}")[0] for text in texts for part in text.split(start)[1:])
    return not any(map(_TYPE_OF_OUTPUT.search, definitions))


def write_converted(launch: str, iterator: str) -> str:
    """Returns the statements that launch a kernel of `same`, and convert its results for an output of another type."""
    return f"{_CONVERTED}({iterator}, [&](TensorIteratorBase& same) {{ {launch} }});"


def define_converted(host: str) -> str:
    """Returns the definition of what converts results, or "" if a host file has it."""
    return "" if f" {_CONVERTED}(" in host else (FOLDER / "converted.mm").read_text()


def define_launcher(launcher: Exec, host: str) -> str:
    """Returns the definition of a launcher that a host file lacks, or "" if it has it or needs none."""
    if launcher.owner or f" {launcher.name}(" in host:
        return ""
    return (FOLDER / _DEFINITIONS[launcher.name]).read_text()


def define_split(host: str) -> str:
    """Returns the definition of what makes an iterator for each result, or "" if a host file has it."""
    return "" if f" {SPLIT}(" in host else (FOLDER / "results.mm").read_text()


def _list_lacking_kernels(checkout: Checkout, family: MacroFamily) -> list[str]:
    """Returns which of the ternary kernels that the definition launches the fork's header lacks."""
    text = checkout.read(INDEXING)
    return [name for layout in _LAYOUTS if f"void {(name := f'{family.value}_{layout}')}(" not in text]
