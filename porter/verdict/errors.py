"""Errors that callers tell apart by their class."""

from __future__ import annotations

from porter.core.errors import PorterError


class NoVerdict(PorterError):
    """Says nothing about a port: the machine, its processes or the backend are at fault (PTR100, PTR170 to PTR172)."""


class NotNative(PorterError):
    """An operator has no row that runs Metal kernels (PTR019)."""


class NoKernelNamed(PorterError):
    """The host code of an operator names no kernel (PTR018)."""
