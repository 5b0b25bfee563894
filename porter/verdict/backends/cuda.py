"""The `cuda` backend: a port's kernels on an NVIDIA GPU, from the same Metal source, without a device of Apple's.

The tests' calls of the operator are intercepted as the `kernels` backend does, and sent to the kernels with copies of
their tensors on the GPU. Torch's own CUDA kernel computes each call too, and the same kernels on the host where there
is a compiler: what differs is in the verdict, beside. A kernel that faults ends its process's CUDA context: every
verdict has a process of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from porter.verdict.backends.reading import elements_per_thread, find_functor, read_rows
from porter.verdict.build.tree import Tree, metal_include
from porter.verdict.errors import NoVerdict
from porter.verdict.result import CUDA, Beside, ForkFinding, VerifyTarget
from porter.verdict.suite import counters, execution
from porter.verdict.suite.selection import Selection

if TYPE_CHECKING:
    from porter.verdict.backends.beside import Comparisons
    from porter.verdict.backends.shaders import Shaders

NAME = CUDA
ON_HARDWARE = True
RUNS_HOST_CODE = False
FLUSHES = False

_loaded: list[tuple[Shaders, Comparisons]] = []


def available() -> bool:
    """Never by itself: it is asked for by its name."""
    return False


def require() -> None:
    """Raises PTR171 without an NVIDIA GPU that can run kernels."""
    from aten_overlay.cuda.driver import find_driver
    from aten_overlay.errors import OverlayError

    try:
        find_driver().require_device(0)
    except OverlayError as error:
        raise NoVerdict("PTR171", f"the cuda backend has no GPU: {error.code} {error.what}", hint=error.hint) from error


def start() -> None:
    """Nothing to start: torch has the device."""


def prepare(tree: Tree) -> None:
    """Nothing to build ahead."""


def select_opinfos(base: str) -> Selection:
    """None: dispatched operators are not counted."""
    return Selection()


def load_operator(tree: Tree, target: VerifyTarget, arithmetic: str, checked: bool) -> tuple[ForkFinding, ...]:
    """Finds or compiles the operator's PTX, and sends its rows' calls there. Raises PTR172-PTR174, PTR380-PTR393."""
    from porter.verdict.backends import cuda_shaders
    from porter.verdict.backends.beside import Comparisons
    from porter.verdict.errors import raising_porter_errors

    rows, functor = read_rows(tree, target), find_functor(target)
    files = [tree.root / path for path in tree.kernel_files()]
    comparisons = Comparisons()
    with raising_porter_errors():
        shaders = cuda_shaders.load_functor(
            files, functor, metal_include(tree.root), comparisons, elements_per_thread(tree)
        )
    execution.redirect(cuda_shaders.redirect(rows, functor, shaders, comparisons))
    _loaded.append((shaders, comparisons))
    counters.install(kernel_calls, fallbacks)
    return ()


def kernel_calls() -> Mapping[str, int]:
    """Kernel calls by host_name."""
    return _loaded[-1][0].calls if _loaded else {}


def fallbacks() -> Mapping[str, int]:
    """None: without a device of Apple's nothing falls back."""
    return {}


def list_comparisons() -> tuple[Beside, ...]:
    """What stands beside the results of the GPU since the start."""
    return _loaded[-1][1].list() if _loaded else ()
