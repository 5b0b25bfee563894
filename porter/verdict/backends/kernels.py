"""The `kernels` backend: a port's kernels on this machine's processor, without a device.

The tests' calls of the operator are intercepted under autograd and sent to the kernels, compiled for the host, as the
fork's `exec_*_kernel` functions would send them. The fork's host code and its registrations are read, not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from porter.verdict.backends.reading import elements_per_thread, find_functor, read_rows
from porter.verdict.build.tree import Tree, metal_include
from porter.verdict.result import KERNELS, ForkFinding, VerifyTarget
from porter.verdict.suite import counters, execution
from porter.verdict.suite.selection import Selection

if TYPE_CHECKING:
    from porter.verdict.backends.shaders import Shaders

NAME = KERNELS
ON_HARDWARE = False
RUNS_HOST_CODE = False
FLUSHES = False

_loaded: list[Shaders] = []


def available() -> bool:
    """Everywhere."""
    return True


def require() -> None:
    """Supports every machine."""


def start() -> None:
    """Nothing to start: there is no device."""


def prepare(tree: Tree) -> None:
    """Nothing to build ahead."""


def select_opinfos(base: str) -> Selection:
    """None: dispatched operators are not counted."""
    return Selection()


def load_operator(tree: Tree, target: VerifyTarget, arithmetic: str, checked: bool) -> tuple[ForkFinding, ...]:
    """Compiles the operator's kernels, and sends its rows' calls there. Raises PTR172 to PTR174."""
    from aten_overlay.metal.build import Options
    from aten_overlay.metal.sanitizer.checks import IN_VERDICTS, select
    from porter.verdict.backends import host_shaders

    rows, functor = read_rows(tree, target), find_functor(target)
    sanitize = select(IN_VERDICTS) if checked else ()
    include = metal_include(tree.root)
    options = Options(include=include, arithmetic=arithmetic, checked=checked, sanitize=sanitize)
    files = [tree.root / path for path in tree.kernel_files()]
    shaders = host_shaders.compile_functor(files, functor, options, elements_per_thread(tree))
    execution.redirect(host_shaders.redirect(rows, functor, shaders))
    _loaded.append(shaders)
    counters.install(kernel_calls, fallbacks)
    return ()


def kernel_calls() -> Mapping[str, int]:
    """Kernel calls by host_name."""
    return _loaded[-1].calls if _loaded else {}


def fallbacks() -> Mapping[str, int]:
    """None: without a device nothing falls back."""
    return {}
