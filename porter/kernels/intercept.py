"""Calls of kernels given to somebody else, instead of being run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import torch

from porter.kernels.kernel import Kernel

# Gets a kernel and the arguments of its call by name, as `MetalKernel` takes them; gives its outputs in their order.
Interceptor: TypeAlias = Callable[[Kernel, Mapping[str, Any]], list[Any]]
_interceptor: ContextVar[Interceptor | None] = ContextVar("interceptor", default=None)


@contextmanager
def intercepting(interceptor: Interceptor) -> Iterator[None]:
    """Calls `interceptor` for every call of a kernel in a block."""
    token = _interceptor.set(interceptor)
    try:
        yield
    finally:
        _interceptor.reset(token)


def find_interceptor() -> Interceptor | None:
    """Who takes the calls of kernels; None where they run, as in code that torch.compile traces."""
    return None if torch.compiler.is_compiling() else _interceptor.get()


def is_intercepted() -> bool:
    """Whether somebody takes the calls of kernels, in code that nothing traces."""
    return _interceptor.get() is not None
