"""`porter verify`: a verdict on operators as they stand, or on their ports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from porter.core.checkout import Checkout
from porter.core.progress import Steps, ignore, of_several

if TYPE_CHECKING:
    from porter.verdict.result import Verdict


@dataclass(frozen=True)
class Proof:
    """How operators are verified: the tests of an expression as of pytest's -k, on a backend, under an arithmetic."""

    expr: str | None = None
    backend: str = "auto"
    arithmetic: str = "default"


def verify(checkout: Checkout, ops: Sequence[str], proof: Proof, progress: Steps = ignore) -> Iterator[Verdict]:
    """The verdict on each operator. Raises what planning and proving raise."""
    from porter.verdict.prove import verified

    for at, op in enumerate(ops):
        tell = of_several(progress, op, at, len(ops))
        yield verified(checkout, op, proof.expr, proof.backend, proof.arithmetic, tell)
