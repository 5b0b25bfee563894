"""One of several shares of a run, such as each machine of a CI job takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from porter.core.errors import PorterError

T = TypeVar("T")
_WRITTEN = re.compile(r"([1-9]\d{0,5})/([1-9]\d{0,5})", re.ASCII)


@dataclass(frozen=True)
class Shard:
    """The share `number`, from 1, of `count`."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def select(self, every: Sequence[T]) -> tuple[T, ...]:
        """Every `count`-th of them, so that neighbors, which take about as long, go to different shares."""
        return tuple(every[self.number - 1 :: self.count])


def parse_shard(text: str) -> Shard:
    """Reads `2/8`. Raises PTR326."""
    match = _WRITTEN.fullmatch(text)
    if match is None or int(match[1]) > int(match[2]):
        raise PorterError("PTR326", f"{text} is no share of a run", hint="Write 2/8 for the second of eight.")
    return Shard(int(match[1]), int(match[2]))
