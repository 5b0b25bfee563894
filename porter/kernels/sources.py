"""The Metal source that a kernel ran last."""

from __future__ import annotations

from dataclasses import dataclass

from porter.kernels.kernel import Kernel


@dataclass
class LastSource:
    """The source of a kernel's last call; "" before the first, and for types that Metal lacks."""

    text: str = ""


_sources: dict[Kernel, LastSource] = {}


def find_last_source(kernel: Kernel) -> LastSource:
    """The source of a kernel's last call, which later calls change."""
    return _sources.setdefault(kernel, LastSource())
