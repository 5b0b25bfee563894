"""Which OpInfos test an operator that none is named for: those that the running dispatcher saw call it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path

from porter.overlay import kept
from porter.overlay.objects import digest
from porter.overlay.tree import cache

Table = Mapping[str, tuple[list[str], list[str]]]


@dataclass(frozen=True)
class Selection:
    """Full names of OpInfos: whose call, and only whose backward, dispatches an operator."""

    forward: tuple[str, ...] = ()
    backward: tuple[str, ...] = ()


def selected(base: str) -> Selection:
    """The OpInfos that dispatch an operator; none where some are named for it.

    Asked before the fork's own code is loaded: the table, made once for each torch, is of what falls back to the CPU.
    """
    from torch.testing._internal.common_methods_invocations import op_db

    from aten_overlay.test.context import aten_names

    if any(base in aten_names(op) for op in op_db):
        return Selection()
    forward = tuple(name for name, (names, _) in table().items() if base in names)
    return Selection(forward, tuple(name for name, (_, names) in table().items() if base in names))


@once
def table() -> Table:
    """The ATen base names that each OpInfo dispatches, forward and besides that backward.

    Made once for each torch, in some ten seconds, while nothing of a fork is loaded.
    """
    from torch.testing._internal.common_methods_invocations import op_db

    from aten_overlay.test import dispatched

    file = cache() / "dispatched" / f"{_name(dispatched.__file__)}.json"
    made: Table | None = kept.find(file)
    if made is None:
        found = {op.full_name: dispatched.dispatched(op) for op in op_db}
        made = {name: (sorted(one.forward), sorted(one.backward)) for name, one in found.items()}
        assert any(forward for forward, _ in made.values()), "nothing counts what the device does"
        kept.keep(file, made)
    return made


def _name(source: str) -> str:
    from aten_overlay.device import libraries
    from aten_overlay.toolchain import torch_version

    return digest(torch_version(), libraries.device().parent.name, Path(source).read_text())
