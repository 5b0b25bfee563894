"""What a backend is: a module of this package with these names, and a line in `choice`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from porter.verdict.build.tree import Tree
from porter.verdict.result import VerifyTarget
from porter.verdict.suite.selection import Selection


class Backend(Protocol):
    """Where tests run. Importing a backend imports neither torch nor what needs it: the client chooses one.

    One that runs `ON_HARDWARE` has one arithmetic, the GPU's, no bounds checks, and a process that cannot be forked.
    One that `RUNS_HOST_CODE` runs the fork's own, so that it can run the implementation that a port takes out too.
    """

    @property
    def NAME(self) -> str: ...

    @property
    def ON_HARDWARE(self) -> bool: ...

    @property
    def RUNS_HOST_CODE(self) -> bool: ...

    def available(self) -> bool:
        """Whether `auto` may choose it on this machine."""

    def require(self) -> None:
        """Raises PTR171 where it is asked for by name on a machine that it is not made for."""

    def start(self) -> None:
        """Brings up what it needs, before the OpInfos are imported."""

    def prepare(self, tree: Tree) -> None:
        """Builds ahead what every verdict on a fork needs. Raises what building raises."""

    def select_opinfos(self, base: str) -> Selection:
        """The OpInfos that reach an operator without being named for it, where there is a dispatcher to ask."""

    def load_operator(self, tree: Tree, target: VerifyTarget, arithmetic: str, checked: bool) -> None:
        """Makes an operator of a tree callable in this process, and installs the counters of its kernel calls."""

    def kernel_calls(self) -> Mapping[str, int]:
        """Kernel calls by host_name since the start."""

    def fallbacks(self) -> Mapping[str, int]:
        """Operators that fell back to the CPU since the start, by name."""
