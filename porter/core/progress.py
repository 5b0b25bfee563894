"""Progress callbacks of long-running steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Step:
    """What is being done. If there are several operators, `done` of `total` are finished."""

    what: str
    done: int = 0
    total: int = 0


Steps = Callable[[Step], None]


def number_progress(steps: Steps, name: str, at: int, total: int) -> Progress:
    """Returns a callback that reports steps of item `at`, from 0, of `total`. A single item has no count."""
    return lambda what: steps(Step(f"{name}: {what}", at, total) if total > 1 else Step(f"{name}: {what}"))


def ignore(_step: object) -> None:
    """A callback that reports nothing."""
