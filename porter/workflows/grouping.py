"""Divides the ports of a run into pull requests that a person can review."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

MOST_LINES = 600

Port = TypeVar("Port")


@dataclass(frozen=True)
class Measured:
    """The family of a port, and the lines that its diff adds and removes."""

    family: str
    lines: int


def group_ports(ports: Sequence[Port], measure: Callable[[Port], Measured]) -> Iterator[tuple[Measured, list[Port]]]:
    """Yields the ports of each family together, in order, as many as have at most `MOST_LINES` lines.

    A single port that has more stands alone.
    """
    measured = [(measure(port), port) for port in ports]
    for family in dict.fromkeys(found.family for found, _ in measured):
        lines, group = 0, list[Port]()
        for found, port in measured:
            if found.family != family:
                continue
            if group and lines + found.lines > MOST_LINES:
                yield Measured(family, lines), group
                lines, group = 0, []
            lines, group = lines + found.lines, [*group, port]
        yield Measured(family, lines), group
