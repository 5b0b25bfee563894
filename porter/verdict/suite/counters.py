"""Counts what ran on the device: kernel calls by host_name, and CPU fallbacks by operator name.

The code that starts the device installs the readers. Until then nothing is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Reader = Callable[[], Mapping[str, int]]


@dataclass
class Counts:
    """What happened between two readings."""

    kernels: Counter[str] = field(default_factory=Counter)
    fallbacks: Counter[str] = field(default_factory=Counter)


@dataclass
class _Readers:
    kernels: Reader = dict
    fallbacks: Reader = dict


_readers = _Readers()


def install(kernels: Reader, fallbacks: Reader) -> None:
    """Sets where the running totals are read."""
    _readers.kernels, _readers.fallbacks = kernels, fallbacks


def read() -> Counts:
    """The running totals since the device started."""
    return Counts(Counter(_readers.kernels()), Counter(_readers.fallbacks()))


def read_kernels() -> Counter[str]:
    """The running total of kernel calls alone."""
    return Counter(_readers.kernels())


def since(before: Counts) -> Counts:
    """What happened since an earlier reading."""
    now = read()
    return Counts(now.kernels - before.kernels, now.fallbacks - before.fallbacks)
