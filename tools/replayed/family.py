"""What a family of kernels is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import torch

from replayed.cases import Case

Match = re.Match[str]


@dataclass(frozen=True)
class Family:
    """Kernels of one file, by what their names look like; `torch` computes the same of a case's inputs.

    `tables` are the references among the arguments that get structures of addresses.
    """

    name: str
    file: str
    prefix: str
    pattern: re.Pattern[str]
    make: Callable[[Match], Case]
    torch: Callable[..., torch.Tensor] | None = None
    tables: tuple[int, ...] = ()


def named(name: str, file: str, pattern: str, make: Callable[[Match], Case], tables: tuple[int, ...] = ()) -> Family:
    """A family whose kernels' names begin with its own."""
    return Family(name, file, name, re.compile(pattern), make, tables=tables)
