"""Which sources of a functor's body a person asks for."""

from __future__ import annotations

from enum import Enum


class Source(Enum):
    """ANY: all of them, CUDA's last and only where the CPU's cannot be translated. CUDA: the CUDA kernel first."""

    ANY = "any"
    CUDA = "cuda"
