"""Builds and loads a library with every MPS operator of a fork."""

from __future__ import annotations

from dataclasses import dataclass

from porter.aten.declarations import MPS_KEY
from porter.aten.native_functions import NativeFunctions
from porter.core import cache
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.verdict.backends import host
from porter.verdict.build import registration, sources
from porter.verdict.build.libraries import Built, build
from porter.verdict.build.tree import Tree, materialise
from porter.verdict.errors import raising_porter_errors
from porter.verdict.result import VerifyTarget


@dataclass(frozen=True)
class Coverage:
    """The operators of a fork that its library can hold, in file order, and by base name why it cannot hold others."""

    bases: tuple[str, ...]
    absent: dict[str, str]


@dataclass(frozen=True)
class WholeFork:
    """The library and the tree it was built from."""

    built: Built
    tree: Tree


def find_coverage(checkout: Checkout, tree: Tree) -> Coverage:
    """Finds which operators can be built. Call it after the host has started and before anything is loaded.

    Leaves out what the device itself implements, such as empty tensors and views.
    """
    functions = NativeFunctions.read(checkout)
    host_code = "\n".join(tree.read(path) for path in tree.files(OPERATIONS, ".mm", ".cpp"))
    absent: dict[str, str] = {}
    every = tuple(dict.fromkeys(entry.base for entry in functions.all if entry.entry_for(MPS_KEY)))
    for base in every:
        try:
            with raising_porter_errors():
                generated = registration.generate(
                    tree.read(NATIVE_FUNCTIONS), [base], cache.root() / "generated" / "rows"
                )
                unseen = [
                    kernel for kernel in generated.kernels if kernel.symbol.removeprefix("structured_") not in host_code
                ]
                sources.operation_files(tree, unseen, ())
        except PorterError as error:
            absent[base] = f"{error.code} {error.what}"
        else:
            if _is_provided_by_device(functions, base):
                absent[base] = "the stand-in's device implements it"
    return Coverage(tuple(base for base in every if base not in absent), absent)


def build_whole(checkout: Checkout) -> WholeFork:
    """Builds the library, which takes minutes the first time. Raises what `build` raises."""
    tree = materialise(checkout.root, {}, cache.root())
    bases = find_coverage(checkout, tree).bases
    parts = [bases[i : i + host.PART_SIZE] for i in range(0, len(bases), host.PART_SIZE)]
    targets = [VerifyTarget(base) for base in bases]
    return WholeFork(build(tree, targets, host.recipe(tree.root), cache.root(), parts), tree)


def _is_provided_by_device(functions: NativeFunctions, base: str) -> bool:
    """Whether the device itself has a kernel for a row of the operator."""
    import torch

    rows = (entry.name for entry in functions.find_overloads(base) if entry.entry_for(MPS_KEY))
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{row}", "MPS") for row in rows)


def load_whole(whole: WholeFork) -> None:
    """Loads the library into this process. The host must have started."""
    host.load(whole.built.library, whole.tree.root, (), "default", checked=False)


def find_unserved_rows(checkout: Checkout, coverage: Coverage) -> tuple[str, ...]:
    """The MPS rows that the loaded library does not implement: their calls fall back to the CPU."""
    import torch

    rows = [entry for entry in NativeFunctions.read(checkout).all if entry.entry_for(MPS_KEY)]
    mine = [entry.name for entry in rows if entry.base in coverage.bases]
    return tuple(n for n in mine if not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{n}", "MPS"))
