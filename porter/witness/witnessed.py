"""Whether Apple hardware has run porter's kernels: the logs of `docs/witness/`."""

from __future__ import annotations

# The machines of the logs in docs/witness, as `porter.witness.log.Machine` prints them: a test compares both.
WITNESSED: tuple[str, ...] = ()
NOT_YET = "not yet run on Apple hardware"


def name_with_limits(backend: str) -> str:
    """The name of Apple's backend, and that no such machine ran it, until one did."""
    return backend if WITNESSED else f"{backend} ({NOT_YET})"
