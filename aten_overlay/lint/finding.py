"""What the lint finds: a value, and when it holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from aten_overlay.errors import Place

SIMDGROUP = 32  # threads


class Across(Enum):
    """Which threads of a threadgroup have to be more than one simdgroup for a finding to hold."""

    ANY = "any"
    ROW = "row"
    ALL = "all"


@dataclass(frozen=True)
class Finding:
    """`what` is wrong with `kernel` ("" for a function that several may call) at `place`, and what to do.

    `across` says in which threadgroups it holds, and `declared` how many threads one may have as the source says it, 0
    where it does not.
    """

    code: str
    kernel: str
    what: str
    place: Place
    hint: str
    across: Across = Across.ANY
    declared: int = 0

    @property
    def is_certain(self) -> bool:
        """Whether the source alone decides it."""
        return self.across is Across.ANY or self.declared > SIMDGROUP

    def holds_in(self, group: Sequence[int]) -> bool:
        """Whether it holds for threadgroups of this size."""
        return self.across is Across.ANY or ((group[0] if self.across is Across.ROW else math.prod(group)) > SIMDGROUP)

    def __str__(self) -> str:
        kernel = f"kernel `{self.kernel}`: " if self.kernel else ""
        return f"{self.place}: {self.code} {kernel}{self.what}\n  {self.hint}"
