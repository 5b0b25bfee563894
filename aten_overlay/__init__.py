"""Apple's side on Linux: Metal, Apple's frameworks and the mps device over the installed torch wheel."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aten_overlay.device.load import Device


def start(fork: Path | None = None) -> Device:
    """Makes the mps device work in this process: see `aten_overlay.device.load.start`."""
    from aten_overlay.device import load

    return load.start(fork)


def start_as_told(environ: Mapping[str, str]) -> Device:
    """Starts the device for the fork at `$PORTER_CHECKOUT`, and loads its own code for `$PORTER_OPERATORS`."""
    fork = environ.get("PORTER_CHECKOUT")
    device = start(Path(fork) if fork else None)
    operators = [name.strip() for name in environ.get("PORTER_OPERATORS", "").split(",") if name.strip()]
    if operators:
        from porter.checkout import EMBEDDED_FORK
        from porter.overlay.host import load_operators

        load_operators(Path(fork) if fork else EMBEDDED_FORK, operators)
    return device
