"""Apple's side on Linux: Metal, Apple's frameworks and the mps device over the installed torch wheel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aten_overlay.device.load import Device


def start(fork: Path | None = None) -> Device:
    """Makes the mps device work in this process: see `aten_overlay.device.load.start`."""
    from aten_overlay.device import load

    return load.start(fork)
