"""Which operators a call reaches: every name that the dispatcher is asked for on the way, at any depth."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_NAMESPACE = "aten::"


@contextmanager
def trace_operators(fallbacks: Callable[[], Mapping[str, int]] = dict) -> Iterator[set[str]]:
    """A set that holds, once the block has run to its end, the names without overload of the operators called in it.

    An operator that is made of others is there with them, and so are those that autograd calls. What an operator calls
    that fell back to the CPU is not: `fallbacks` counts them by full name since the start.
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
