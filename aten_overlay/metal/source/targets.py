"""What Metal is compiled for: what the C++ of a kernel has to say there, and how clang reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from aten_overlay.metal.source.declarations import Unit
from aten_overlay.metal.source.table import Row, Value, write_entry, write_prologue, write_table


@dataclass(frozen=True)
class Target:
    """`threadgroup` is the storage of a threadgroup variable, `flags` are those by which clang reads the C++.

    The source of some kernels stands between what `write_prologue` writes of them and what `write_table` does.
    `write_entry` writes the entry of a kernel, by its row, number and signature.
    """

    name: str
    threadgroup: str
    flags: tuple[str, ...]
    write_prologue: Callable[[list[Row]], str]
    write_entry: Callable[[Row, int, str], str]
    write_table: Callable[[Unit, list[Row], Mapping[str, Value | None]], str]


COMMON_FLAGS = ("-nostdinc++", "-Wno-everything", "-fsigned-char", "-fno-exceptions", "-fno-rtti")
HOST_FLAGS = ("-x", "c++", *COMMON_FLAGS, "-fmax-type-align=8")


def host(mode: str) -> Target:
    """The machine's own processor. `mode` is a C++ expression of `pm_compiled` bits."""
    entry = partial(write_entry, flags=mode)
    return Target("host", "static thread_local", HOST_FLAGS, write_prologue, entry, write_table)
