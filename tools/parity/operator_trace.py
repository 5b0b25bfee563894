"""Traces which operators a call reaches through the dispatcher, at any depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_NAMESPACE = "aten::"


@contextmanager
def trace_operators(fallbacks: Callable[[], Mapping[str, int]] = dict) -> Iterator[set[str]]:
    """Yields a set that, after the block, holds the base names of the operators called in it.

    Includes composite operators and those that autograd calls, but not what an operator called after it fell back to
    the CPU; `fallbacks` returns the fallbacks since the start by full name.
    """
    from torch.autograd import profiler_legacy  # the other profiler prints

    found: set[str] = set()
    before = set(fallbacks().items())
    with profiler_legacy.profile() as profile:
        yield found
    fallen = {name.split(".")[0] for name, _ in set(fallbacks().items()) - before}
    events = [event for event in profile.function_events if event.name.startswith(_NAMESPACE)]
    found.update(event.name.removeprefix(_NAMESPACE) for event in events if fallen.isdisjoint(_callers(event)))


def _callers(event: Any) -> Iterator[str]:
    while event := event.cpu_parent:
        yield event.name
