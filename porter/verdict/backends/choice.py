"""The backends, and the choice of one by name."""

from __future__ import annotations

from porter.verdict.backends import cuda, host, kernels, mps
from porter.verdict.backends.protocol import Backend
from porter.verdict.errors import NoVerdict
from porter.verdict.result import AUTO

# The most complete first: `auto` is the first one available.
_BACKENDS: tuple[Backend, ...] = (
    host,
    mps,
    kernels,
    cuda,
)
BACKENDS = {backend.NAME: backend for backend in _BACKENDS}


def choose_backend(name: str) -> Backend:
    """The backend of a name: `auto` is `host` on Linux, `mps` on a Mac with Apple's own GPU, else `kernels`;
    `cuda` is chosen by its name alone.

    Raises PTR171 if it is unknown or does not support this machine.
    """
    if name == AUTO:
        return next(backend for backend in _BACKENDS if backend.available())
    backend = find_backend(name)
    backend.require()
    return backend


def find_backend(name: str) -> Backend:
    """The backend of this name, whether it runs here or not. Raises PTR171 if it is unknown."""
    if name not in BACKENDS:
        raise NoVerdict("PTR171", f"unknown backend {name}", hint=f"Choose one of {', '.join(sorted(BACKENDS))}.")
    return BACKENDS[name]
