"""Sets a context variable for a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def setting(variable: ContextVar[T], value: T) -> Iterator[None]:
    """A block in which `variable` is `value`."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
