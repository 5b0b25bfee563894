"""Which operators a call reaches: every name that the dispatcher is asked for on the way, at any depth."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_NAMESPACE = "aten::"


@contextmanager
def reached() -> Iterator[set[str]]:
    """A set that holds, once the block has run to its end, the names without overload of the operators called in it.

    An operator that is made of others is there with them, and so are those that autograd calls.
    """
    from torch.autograd import profiler_legacy  # the other profiler prints

    found: set[str] = set()
    with profiler_legacy.profile() as profile:
        yield found
    found.update(e.name.removeprefix(_NAMESPACE) for e in profile.function_events if e.name.startswith(_NAMESPACE))
