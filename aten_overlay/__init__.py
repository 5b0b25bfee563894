"""Apple's side on Linux: Metal, Apple's frameworks and the mps device over the installed torch wheel."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aten_overlay.device.state import Device

_MACOS = "26.0"


def start(fork: Path | None = None) -> Device:
    """Makes the mps device work in this process: see `aten_overlay.device.load.start`."""
    from aten_overlay.device import load

    return load.start(fork)


def start_frameworks() -> Device:
    """Makes the mps device work as `start` does, with Apple's frameworks and at::mps for compiled extensions."""
    from aten_overlay.device import frameworks

    device = start()
    frameworks.load(device)
    frameworks.load_mps()
    return device


def start_from_environment(environ: Mapping[str, str]) -> Device:
    """Starts the device for the fork at `$PORTER_CHECKOUT`, and loads its own code for `$PORTER_OPERATORS`.

    Reports the newest macOS, puts stand-ins for macOS's own commands first on the path, and makes Python processes that
    this one starts do the same.
    """
    from aten_overlay.apple import commands

    fork = environ.get("PORTER_CHECKOUT")
    device = start(Path(fork) if fork else None)
    os.environ.update(commands.make_environment(os.environ))
    platform.mac_ver = lambda *_: (_MACOS, ("", "", ""), "arm64")
    operators = [name.strip() for name in environ.get("PORTER_OPERATORS", "").split(",") if name.strip()]
    if operators:
        from aten_overlay import hosts

        hosts.load_operators(device.fork, operators)
    else:
        start_frameworks()
    return device
