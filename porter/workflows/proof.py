"""How a port is to be verified."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Proof:
    """How to verify: a pytest -k expression that selects tests, a backend and an arithmetic; on `large` tensors too.

    A `thorough` verdict has the variations of samples that cost more than others, too.
    """

    expr: str | None = None
    backend: str = "auto"
    arithmetic: str = "default"
    large: bool = False
    thorough: bool = False
