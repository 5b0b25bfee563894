"""The backends, and the choice of one by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from porter.verdict.backends import host
from porter.verdict.backends.kernels import APPLE_GPU, HOST_KERNELS, NVIDIA_GPU
from porter.verdict.build.tree import Tree
from porter.verdict.errors import NoVerdict
from porter.verdict.result import AUTO, ForkFinding, VerifyTarget
from porter.verdict.suite.selection import Selection


class Backend(Protocol):
    """Where tests run. Importing a backend imports neither torch nor what needs it: the client chooses one.

    One that runs `ON_HARDWARE` has one arithmetic, the GPU's, no bounds checks, and a process that cannot be forked.
    One that `FLUSHES` may flush denormals whatever the arithmetic.
    One that `RUNS_HOST_CODE` runs the fork's own, so it can also run the implementation that a port removes.
    """

    @property
    def NAME(self) -> str: ...

    @property
    def ON_HARDWARE(self) -> bool: ...

    @property
    def RUNS_HOST_CODE(self) -> bool: ...

    @property
    def FLUSHES(self) -> bool: ...

    def available(self) -> bool:
        """Whether it is available on this machine."""

    def require(self) -> None:
        """Raises PTR171 if it does not support this machine."""

    def start(self) -> None:
        """Starts the backend, before the OpInfos are imported."""

    def prepare(self, tree: Tree) -> None:
        """Builds ahead what every verdict on a fork needs. Raises build errors."""

    def select_opinfos(self, base: str) -> Selection:
        """The OpInfos that reach an operator without being named for it, where there is a dispatcher to ask."""

    def load_operator(
        self, tree: Tree, target: VerifyTarget, arithmetic: str, checked: bool
    ) -> tuple[ForkFinding, ...]:
        """Makes an operator of a tree callable in this process, and installs the counters of its kernel calls.

        Returns what is wrong with files of the fork that the operator does without.
        """

    def kernel_calls(self) -> Mapping[str, int]:
        """Kernel calls by host_name since the start."""

    def fallbacks(self) -> Mapping[str, int]:
        """Operators that fell back to the CPU since the start, by name."""


# The most complete first: `auto` is the first one available.
_BACKENDS: tuple[Backend, ...] = (host, APPLE_GPU, HOST_KERNELS, NVIDIA_GPU)
BACKENDS = {backend.NAME: backend for backend in _BACKENDS}


def choose_backend(name: str) -> Backend:
    """The backend of a name: `auto` is `host` on Linux, `mps` on a Mac with Apple's own GPU, else `kernels`;
    `cuda` is chosen by its name alone.

    Raises PTR171 if it is unknown or does not support this machine.
    """
    if name == AUTO:
        return next(backend for backend in _BACKENDS if backend.available())
    backend = find_backend(name)
    backend.require()
    return backend


def find_backend(name: str) -> Backend:
    """The backend of this name, whether it runs here or not. Raises PTR171 if it is unknown."""
    if name not in BACKENDS:
        raise NoVerdict("PTR171", f"unknown backend {name}", hint=f"Choose one of {', '.join(sorted(BACKENDS))}.")
    return BACKENDS[name]
