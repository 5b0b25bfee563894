"""The `mps` backend: the same tests on a Mac's own GPU, with the port's kernels compiled by `torch.mps.compile_shader`.

An official wheel has its own host code, so the rows of the operator are overridden on the MPS key by functions that
call the kernels as the fork's `exec_unary_kernel` and `exec_binary_kernel` would. The Metal compiler and the GPU are
Apple's; the fork's host code and its registrations are not exercised. Not yet run on Apple hardware.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from porter.verdict.backends.reading import elements_per_thread, find_functor, read_rows
from porter.verdict.build import sources
from porter.verdict.build.tree import Tree
from porter.verdict.errors import NoVerdict
from porter.verdict.result import MPS, ForkFinding, VerifyTarget
from porter.verdict.suite import counters
from porter.verdict.suite.selection import Selection

if TYPE_CHECKING:
    import torch

    from porter.verdict.backends.shaders import Shaders

NAME = MPS
ON_HARDWARE = True
RUNS_HOST_CODE = False
FLUSHES = True

_loaded: list[tuple[Shaders, torch.library.Library]] = []  # an override lasts as long as its library


def available() -> bool:
    """On a Mac with Apple's own GPU."""
    return (sys.platform, platform.machine()) == ("darwin", "arm64")


def require() -> None:
    """Checks nothing yet: `load_operator` checks for a GPU."""


def start() -> None:
    """Nothing to start: the wheel has the device."""


def prepare(tree: Tree) -> None:
    """Nothing to build ahead."""


def select_opinfos(base: str) -> Selection:
    """None: dispatched operators are not counted."""
    return Selection()


def load_operator(tree: Tree, target: VerifyTarget, arithmetic: str, checked: bool) -> tuple[ForkFinding, ...]:
    """Compiles the operator's kernel file, and overrides its rows. Raises PTR171, PTR172 and PTR174."""
    import torch

    from porter.verdict.backends import shaders

    if not torch.backends.mps.is_available():
        raise NoVerdict("PTR171", "no Apple GPU is available", hint="Run this on a Mac, or use another backend.")
    rows, functor = read_rows(tree, target), find_functor(target)
    path = next(p for p in tree.kernel_files() if functor in sources.functors_in(tree.read(p)))
    library = torch.mps.compile_shader(shaders.embed_headers(tree.root, path))
    found = shaders.Shaders(library, {}, elements_per_thread(tree))
    _loaded.append((found, shaders.override(rows, functor, found)))
    counters.install(kernel_calls, fallbacks)
    return ()


def kernel_calls() -> Mapping[str, int]:
    """Calls of the loaded operator's kernels by host_name."""
    return _loaded[-1][0].calls if _loaded else {}


def fallbacks() -> Mapping[str, int]:
    """Fallbacks are not counted."""
    return {}
