"""How test calls reach the device: directly, or in a context that redirects an operator to its kernels."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any


@dataclass
class _Execution:
    """`redirect` is entered around every call on the device; None where there is a device."""

    redirect: AbstractContextManager[Any] | None = None


_execution = _Execution()


def redirect(context: AbstractContextManager[Any]) -> None:
    """Runs calls inside a (reusable) context, with tensors on the CPU: there is no mps device in this process."""
    _execution.redirect = context


def device_context() -> AbstractContextManager[Any]:
    """The context for a call on the device."""
    return _execution.redirect or nullcontext()


def is_redirected() -> bool:
    """Whether calls are redirected to kernels, without a device."""
    return _execution.redirect is not None
