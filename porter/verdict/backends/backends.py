"""Where a verdict meets the machine: which backends it has, what they import once, and how they take an operator."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from porter.core.errors import PorterError
from porter.core.layout import COMMON, NATIVE_FUNCTIONS
from porter.verdict.build import registration, sources
from porter.verdict.build.libraries import build, build_shared
from porter.verdict.build.objects import Recipe
from porter.verdict.build.tree import Tree, cache
from porter.verdict.result import AUTO, BACKENDS, HOST, KERNELS, MPS, VerifyTarget
from porter.verdict.suite.selection import Selection

DEVICE = "porter.verdict.backends.host"


class Device(Protocol):
    """What joins the mps device to a verdict; a module of this name and these functions makes the `host` backend."""

    def start(self) -> None:
        """Brings the device up, before torch is imported by anyone else."""

    def recipe(self, fork: Path) -> Recipe:
        """How host code of the fork at this root is compiled and linked."""

    def load(self, library: Path, fork: Path, prefixes: Sequence[str], arithmetic: str, checked: bool) -> None:
        """Loads host code whose bundled kernels are the fork's; compiles those with these prefixes at once."""

    def kernel_calls(self) -> Mapping[str, int]:
        """Kernel calls by host_name since the start."""

    def fallbacks(self) -> Mapping[str, int]:
        """Operators that fell back to the CPU since the start, by name."""


def chosen(backend: str) -> str:
    """The backend meant: `auto` is `host` on Linux, `mps` on a Mac with Apple's own GPU, else `kernels`.

    Raises PTR171 for an unknown one and for `host` elsewhere than on Linux.
    """
    if backend == AUTO:
        apple = (sys.platform, platform.machine()) == ("darwin", "arm64")
        return HOST if _has_device() else MPS if apple else KERNELS
    if backend not in BACKENDS:
        raise PorterError("PTR171", f"there is no backend {backend}", hint=f"Choose one of {', '.join(BACKENDS)}.")
    if backend == HOST and not _has_device():
        raise PorterError("PTR171", f"the host backend is for Linux, not {sys.platform}", hint="Use kernels or mps.")
    return backend


def start(backend: str) -> None:
    """Brings up what a backend needs before the OpInfos are imported."""
    if backend == HOST:
        _device().start()
    import torch

    torch.set_num_threads(1)  # a fork keeps no thread pool


def selected(backend: str, base: str) -> Selection:
    """The OpInfos that reach an operator without being named for it, where there is a dispatcher to ask."""
    from porter.verdict.suite import selection

    if backend != HOST:
        return Selection()
    _count()
    return selection.selected(base)


def prepare(tree: Tree) -> None:
    """Makes ahead what every verdict of the `host` backend on a fork needs, so that the first one has it.

    Raises what building raises.
    """
    from porter.verdict.suite import selection

    with ThreadPoolExecutor(1) as pool:
        building = pool.submit(lambda: build_shared(tree, _device().recipe(tree.root), cache()))
        _count()
        selection.table()
        building.result()


def take(backend: str, tree: Tree, target: VerifyTarget, arithmetic: str, checked: bool) -> None:
    """Makes an operator of a tree callable in this process, and counts its kernel calls."""
    {HOST: _on_host, KERNELS: _on_kernels, MPS: _on_apple}[backend](tree, target, arithmetic, checked)


def _has_device() -> bool:
    return sys.platform.startswith("linux")


def _device() -> Device:
    return cast("Device", import_module(DEVICE))


def _on_host(tree: Tree, target: VerifyTarget, arithmetic: str, checked: bool) -> None:
    device = _device()
    built = build(tree, [target], device.recipe(tree.root), cache())
    names = [f"{functor}_" for functor in target.kernels]
    device.load(built.library, tree.root, names, arithmetic, checked)
    _count()


def _count() -> None:
    from porter.verdict.suite import counters

    counters.install(_device().kernel_calls, _device().fallbacks)


def _on_kernels(tree: Tree, target: VerifyTarget, arithmetic: str, checked: bool) -> None:
    from aten_overlay.metal.build import Options
    from porter.verdict.backends import kernels
    from porter.verdict.suite import counters, execution

    rows = _rows(tree, target)
    functor = _one_functor(target)
    options = Options(include=(tree.root,), arithmetic=arithmetic, checked=checked)
    found = kernels.shaders([tree.root / path for path in tree.kernel_files()], functor, options, _per_thread(tree))
    execution.redirect(kernels.redirect(rows, functor, found))
    counters.install(lambda: found.calls, dict)


def _on_apple(tree: Tree, target: VerifyTarget, arithmetic: str, checked: bool) -> None:
    import torch

    from porter.verdict.backends import apple as shader
    from porter.verdict.suite import counters

    if not torch.backends.mps.is_available():
        raise PorterError("PTR171", "there is no Apple GPU here", hint="Run this on a Mac, or use another backend.")
    rows = _rows(tree, target)
    functor = _one_functor(target)
    path = next(p for p in tree.kernel_files() if functor in sources.functors_in(tree.read(p)))
    found = shader.Shaders(torch.mps.compile_shader(shader.embedded(tree.root, path)), {}, _per_thread(tree))
    _kept.append(shader.override(rows, functor, found))
    counters.install(lambda: found.calls, dict)


_kept: list[object] = []


def _rows(tree: Tree, target: VerifyTarget) -> tuple[str, ...]:
    """The rows that would reach the port's kernels, by the fork's own yaml and host code, both read as text."""
    made = registration.generate(tree.read(NATIVE_FUNCTIONS), [target.base], cache() / "generated" / tree.root.name)
    sources.operation_files(tree, made.kernels, target.stubs)
    for kernel in made.kernels:
        sources.check_kernel(tree, kernel, target.kernels)
    for stub in target.stubs:
        sources.check_stub(tree, stub, target.kernels)
    return made.served


def _per_thread(tree: Tree) -> int:
    from porter.verdict.backends import apple as shader

    return shader.per_thread(tree.read(COMMON)) if tree.exists(COMMON) else 1


def _one_functor(target: VerifyTarget) -> str:
    if len(target.kernels) != 1:
        named = ", ".join(target.kernels) or "none"
        raise PorterError("PTR172", f"{target.base} has not one functor ({named}): which row calls which is host code")
    return target.kernels[0]
