"""Finds the package that builds a fork's own host code: this one provides the device and no operator.

A host is a function `load_operators(fork: Path, operators: Sequence[str]) -> None`, declared as an entry point of the
group `aten_overlay.hosts`. It builds the operators' host code for the running device, loads it into this process, and
raises OverlayError for what it refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import cast

from aten_overlay.errors import OverlayError

GROUP = "aten_overlay.hosts"
LoadOperators = Callable[[Path, Sequence[str]], None]


def load_operators(fork: Path, operators: Sequence[str]) -> None:
    """Has the installed host load a fork's own code for these operators.

    Raises PTR147 unless exactly one host is installed, and what the host raises.
    """
    load = cast("LoadOperators", _find_host().load())
    load(fork, operators)


def _find_host() -> EntryPoint:
    found = {entry.value: entry for entry in entry_points(group=GROUP)}
    if len(found) == 1:
        return next(iter(found.values()))
    named = f"several packages provide it: {', '.join(sorted(found))}" if found else "no installed package provides it"
    raise OverlayError(
        "PTR147",
        f"$PORTER_OPERATORS needs a fork's own code, but {named}",
        hint=f"Reinstall porter with `pip install -e .`; it declares the entry point {GROUP}.",
    )
