"""How often Python looks for garbage while modules are imported, which stay: usually it takes a fifth of that time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

SELDOM = (50_000, 10, 10)


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Has Python look less often, and as often as before afterwards: the garbage of a program holds tensors."""
    usual = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
