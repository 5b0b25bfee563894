"""What a long step says while it runs, for whoever waits for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Step:
    """What is being done. Where there are several things of a kind, `done` of `total` are behind it."""

    what: str
    done: int = 0
    total: int = 0


Steps = Callable[[Step], None]


def number_progress(steps: Steps, name: str, at: int, total: int) -> Progress:
    """Progress for one of `total` things, at this index; counts them if there are several."""
    return lambda what: steps(Step(f"{name}: {what}", at, total) if total > 1 else Step(f"{name}: {what}"))


def ignore(_step: object) -> None:
    """Nobody waits."""
