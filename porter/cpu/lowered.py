"""A CPU kernel for one element type, as statements in Metal."""

from __future__ import annotations

from dataclasses import dataclass

from porter.core.errors import Place


@dataclass(frozen=True)
class LoweredKernel:
    """A kernel for one element type: its statements, the elements and scalars they use, and the helpers they call."""

    lines: tuple[str, ...]
    params: tuple[str, ...]
    scalars: tuple[tuple[str, str, str], ...]
    result: str
    helpers: tuple[str, ...]
    checks: tuple[str, ...]
    roundings: int
    place: Place
    chooses: bool = False
