"""The backends of a port's kernels alone: the fork's host code and its registrations are read, not run.

The rows' calls are sent to the kernels as the fork's `exec_*_kernel` functions would send them.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from porter.core import cache
from porter.core.layout import COMMON, NATIVE_FUNCTIONS
from porter.verdict.build import registration, sources
from porter.verdict.build.tree import Tree, metal_include
from porter.verdict.errors import NoVerdict, raising_porter_errors
from porter.verdict.result import CUDA, KERNELS, MPS, Beside, ForkFinding, VerifyTarget
from porter.verdict.suite import counters, execution
from porter.verdict.suite.selection import Selection

if TYPE_CHECKING:
    import torch

    from porter.verdict.backends.beside import Comparisons
    from porter.verdict.backends.shaders import Shaders


class HostKernels:
    """The `kernels` backend: kernels on this machine's processor, to which calls are sent under autograd."""

    NAME = KERNELS
    ON_HARDWARE = False
    RUNS_HOST_CODE = False
    FLUSHES = False
    _loaded: Shaders | None = None

    def available(self) -> bool:
        """Everywhere."""
        return True

    def require(self) -> None:
        """Supports every machine, as far as can be told before an operator is loaded."""

    def start(self) -> None:
        """Nothing to start: there is no device, or torch has it."""

    def prepare(self, tree: Tree) -> None:
        """Nothing to build ahead."""

    def select_opinfos(self, base: str) -> Selection:
        """None: dispatched operators are not counted."""
        return Selection()

    def load_operator(
        self, tree: Tree, target: VerifyTarget, arithmetic: str, checked: bool
    ) -> tuple[ForkFinding, ...]:
        """Compiles the operator's kernels, and sends its rows' calls there. Raises PTR172 to PTR174, and of the GPUs
        PTR171 and PTR380 to PTR393.
        """
        self._loaded = self._send(tree, target, arithmetic, checked)
        counters.install(self.kernel_calls, self.fallbacks)
        return ()

    def _send(self, tree: Tree, target: VerifyTarget, arithmetic: str, checked: bool) -> Shaders:
        from aten_overlay.metal.build import Options
        from aten_overlay.metal.sanitizer.checks import IN_VERDICTS, select
        from porter.verdict.backends import host_shaders

        rows, functor = read_rows(tree, target), find_functor(target)
        sanitize = select(IN_VERDICTS) if checked else ()
        options = Options(include=metal_include(tree.root), arithmetic=arithmetic, checked=checked, sanitize=sanitize)
        files = [tree.root / path for path in tree.kernel_files()]
        shaders = host_shaders.compile_functor(files, functor, options, elements_per_thread(tree))
        execution.redirect(host_shaders.redirect(rows, functor, shaders))
        return shaders

    def kernel_calls(self) -> Mapping[str, int]:
        """Calls of the loaded operator's kernels by host_name."""
        return self._loaded.calls if self._loaded else {}

    def fallbacks(self) -> Mapping[str, int]:
        """None: without a device of the overlay's nothing is seen to fall back."""
        return {}


class AppleGpu(HostKernels):
    """The `mps` backend: the same tests on a Mac's own GPU, with kernels that `torch.mps.compile_shader` compiles.

    An official wheel has its own host code, so the rows of the operator are overridden on the MPS key. The Metal
    compiler and the GPU are Apple's. Not yet run on Apple hardware.
    """

    NAME = MPS
    ON_HARDWARE = True
    FLUSHES = True

    def __init__(self) -> None:
        self._libraries: list[torch.library.Library] = []  # an override lasts as long as its library

    def available(self) -> bool:
        """On a Mac with Apple's own GPU."""
        return (sys.platform, platform.machine()) == ("darwin", "arm64")

    def _send(self, tree: Tree, target: VerifyTarget, arithmetic: str, checked: bool) -> Shaders:
        import torch

        from porter.verdict.backends import shaders

        if not torch.backends.mps.is_available():
            raise NoVerdict("PTR171", "no Apple GPU is available", hint="Run this on a Mac, or use another backend.")
        rows, functor = read_rows(tree, target), find_functor(target)
        path = next(p for p in tree.kernel_files() if functor in sources.functors_in(tree.read(p)))
        library = torch.mps.compile_shader(shaders.embed_headers(tree.root, path))
        compiled = shaders.Shaders(library, {}, elements_per_thread(tree))
        self._libraries.append(shaders.override(rows, functor, compiled))
        return compiled


class NvidiaGpu(HostKernels):
    """The `cuda` backend: kernels on an NVIDIA GPU, from the same Metal source, with copies of a call's tensors.

    Torch's own CUDA kernel computes each call too, and the same kernels on the host where there is a compiler: what
    differs is in the verdict, beside. A kernel that faults ends its process's CUDA context: every verdict has a process
    of its own.
    """

    NAME = CUDA
    ON_HARDWARE = True
    _comparisons: Comparisons | None = None

    def available(self) -> bool:
        """Never by itself: it is asked for by its name."""
        return False

    def require(self) -> None:
        """Raises PTR171 without an NVIDIA GPU that can run kernels."""
        from aten_overlay.cuda.driver import find_driver
        from aten_overlay.errors import OverlayError

        try:
            find_driver().require_device(0)
        except OverlayError as error:
            what = f"the cuda backend has no GPU: {error.code} {error.what}"
            raise NoVerdict("PTR171", what, hint=error.hint) from error

    def _send(self, tree: Tree, target: VerifyTarget, arithmetic: str, checked: bool) -> Shaders:
        from porter.verdict.backends import cuda_shaders
        from porter.verdict.backends.beside import Comparisons

        rows, functor = read_rows(tree, target), find_functor(target)
        files = [tree.root / path for path in tree.kernel_files()]
        self._comparisons = Comparisons()
        with raising_porter_errors():
            shaders = cuda_shaders.load_functor(
                files, functor, metal_include(tree.root), self._comparisons, elements_per_thread(tree)
            )
        execution.redirect(cuda_shaders.redirect(rows, functor, shaders, self._comparisons))
        return shaders

    def list_comparisons(self) -> tuple[Beside, ...]:
        """What stands beside the results of the GPU since the start."""
        return self._comparisons.list() if self._comparisons else ()


HOST_KERNELS, APPLE_GPU, NVIDIA_GPU = HostKernels(), AppleGpu(), NvidiaGpu()


# For backends that run no host code: reads from its text which rows reach the port's kernels


_PER_THREAD = re.compile(r"\bILP_PER_THREAD *= *(\d+)")


def read_rows(tree: Tree, target: VerifyTarget) -> tuple[str, ...]:
    """The rows that would reach the port's kernels, by the fork's own yaml and host code, both read as text.

    Raises PTR174 where one would not, and what `registration.generate` and `sources.operation_files` raise.
    """
    into = cache.root() / "generated" / tree.root.name
    made = registration.generate(tree.read(NATIVE_FUNCTIONS), [target.base], into)
    sources.operation_files(tree, made.kernels, target.stubs)
    for kernel in made.kernels:
        sources.check_kernel(tree, kernel, target.kernels)
    for stub in target.stubs:
        sources.check_stub(tree, stub, target.kernels)
    return made.served


def find_functor(target: VerifyTarget) -> str:
    """The one functor of an operator. Raises PTR172 where it has several or none."""
    if len(target.kernels) != 1:
        named = ", ".join(target.kernels) or "none"
        raise NoVerdict("PTR172", f"{target.base} does not have one functor: {named}", hint="Use the host backend.")
    return target.kernels[0]


def elements_per_thread(tree: Tree) -> int:
    """How many elements a thread of a dense unary kernel computes."""
    match = _PER_THREAD.search(tree.read(COMMON)) if tree.exists(COMMON) else None
    return int(match[1]) if match else 1
