"""The protocol of a backend: a module of this package with these names, listed in `choice`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from porter.verdict.build.tree import Tree
from porter.verdict.result import ForkFinding, VerifyTarget
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
