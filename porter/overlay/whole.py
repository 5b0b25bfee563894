"""A library with every operator of a fork that MPS serves."""

from __future__ import annotations

from dataclasses import dataclass

from porter.aten.native_functions import MPS_KEY, SHARING_KEYS, NativeFunctions
from porter.aten.stubs import stubs_of
from porter.checkout import NATIVE_FUNCTIONS, OPERATIONS, Checkout
from porter.errors import PorterError
from porter.overlay import host, registration, sources
from porter.overlay.build import Built, build
from porter.overlay.tree import Tree, cache, materialise
from porter.overlay.verdict import VerifyTarget

AT_ONCE = 16


@dataclass(frozen=True)
class Whole:
    """The library, the tree that it was built from, the operators in it, and why others are not, by base name."""

    built: Built
    tree: Tree
    bases: tuple[str, ...]
    refused: dict[str, PorterError]


def build_whole(checkout: Checkout) -> Whole:
    """Builds the library, once the host has started; the first time takes minutes.

    What the device itself makes, such as empty tensors and views, stays its own. Raises what `build` raises.
    """
    tree = materialise(checkout.root, {}, cache())
    functions = NativeFunctions.read(checkout)
    host_code = "\n".join(tree.read(path) for path in tree.files(OPERATIONS, ".mm", ".cpp"))
    refused: dict[str, PorterError] = {}
    for base in dict.fromkeys(entry.base for entry in functions.entries if entry.line_for(MPS_KEY)):
        try:
            _try_rows(tree, base, host_code)
        except PorterError as error:
            refused[base] = error
    bases = tuple(dict.fromkeys(e.base for e in functions.entries if e.line_for(MPS_KEY) and e.base not in refused))
    slices = (bases[i : i + AT_ONCE] for i in range(0, len(bases), AT_ONCE))
    parts = [kept for part in slices if (kept := [b for b in part if not _provided(functions, b)])]
    targets = [VerifyTarget(b, stubs=shared_stubs(checkout, functions, b)) for part in parts for b in part]
    built = build(tree, targets, host.recipe(tree.root), cache(), parts)
    return Whole(built, tree, tuple(target.base for target in targets), refused)


def _provided(functions: NativeFunctions, base: str) -> bool:
    """Whether the device has a kernel of its own for a row of the operator."""
    import torch

    rows = (entry.name for entry in functions.family(base) if entry.line_for(MPS_KEY))
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{row}", "MPS") for row in rows)


def load_whole(whole: Whole) -> None:
    """Loads it into this process, once the host has started."""
    host.load(whole.built.library, whole.tree.root, (), "default", checked=False)


def _try_rows(tree: Tree, base: str, host_code: str) -> None:
    """Raises what keeps an operator's rows from being registered or built."""
    found = registration.generate(tree.read(NATIVE_FUNCTIONS), [base], cache() / "generated" / "rows")
    unseen = [kernel for kernel in found.kernels if kernel.symbol.removeprefix("structured_") not in host_code]
    sources.operation_files(tree, unseen, ())


def shared_stubs(checkout: Checkout, functions: NativeFunctions, base: str) -> tuple[str, ...]:
    """The stubs that the lines call which an operator's rows share with other devices."""
    shared = [
        line.kernel
        for entry in functions.family(base)
        if (line := entry.line_for(MPS_KEY)) and set(SHARING_KEYS) & set(line.keys)
    ]
    return tuple(dict.fromkeys(name for kernel in shared for name in _stubs(checkout, kernel)))


def _stubs(checkout: Checkout, kernel: str) -> tuple[str, ...]:
    """None for a kernel that calls none."""
    try:
        return tuple(call.stub.name for call in stubs_of(checkout, kernel))
    except PorterError:
        return ()
