"""How a port is to be verified."""

from __future__ import annotations

from dataclasses import dataclass, replace

from porter.verdict.result import AUTO, DEFAULT


@dataclass(frozen=True)
class Proof:
    """How to verify: a pytest -k expression that selects tests, a backend and an arithmetic; on `large` tensors too.

    A `thorough` verdict has the variations of samples that cost more than others, too; None leaves that to what asks. A
    `strict` one fails for faults of the fork that the port does not touch.
    """

    expr: str | None = None
    backend: str = AUTO
    arithmetic: str = DEFAULT
    large: bool = False
    thorough: bool | None = None
    strict: bool = False

    @property
    def selects(self) -> bool:
        """Whether a person chose some of the tests: such a verdict decides nothing about a port."""
        return bool(self.expr)

    @property
    def whole(self) -> Proof:
        """The same with all tests."""
        return replace(self, expr=None)
