"""Apple's side on Linux: Metal, Apple's frameworks and the mps device over the installed torch wheel."""

# Nothing is imported, not even `__future__`: `python -m aten_overlay` searches the current folder until `__main__`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from aten_overlay.device.state import Device

LARGE = "PORTER_LARGE"  # the variable that makes large allocations of a program addresses alone


def start(fork: "Path | None" = None) -> "Device":
    """Makes the mps device work in this process: see `aten_overlay.device.load.start`."""
    from aten_overlay.device import load

    return load.start(fork)


def start_frameworks() -> "Device":
    """Makes the mps device work as `start` does, with Apple's frameworks and at::mps for compiled extensions."""
    from aten_overlay.device import frameworks

    device = start()
    frameworks.load(device)
    frameworks.load_mps()
    frameworks.load_native()
    return device


def start_as_mac(fork: "Path | None" = None) -> "Device":
    """Makes the mps device work as `start` does, in a process that looks like one on a Mac.

    It reports the newest macOS, has stand-ins for macOS's own commands first on its path, and so have Python processes
    that it starts. No frameworks are loaded: host code of a fork brings at::mps as the fork declares it.
    """
    import os
    import platform

    from aten_overlay import as_mac
    from aten_overlay.apple import commands

    device = start(fork)
    os.environ.update(commands.make_environment(os.environ))
    platform.mac_ver = as_mac.mac_ver
    as_mac.show_mac(os.environ)
    return device


def prepare_for_large(device: "Device", environ: "Mapping[str, str]") -> None:
    """Makes large tensors addresses alone where `$PORTER_LARGE` says so. Raises PTR271."""
    if environ.get(LARGE, "") not in ("", "0"):
        from aten_overlay.device.large import start_large

        start_large(device)


def start_from_environment(environ: "Mapping[str, str]") -> "Device":
    """Starts the device as `start_as_mac` does for the fork at `$PORTER_CHECKOUT`, and loads its own code for
    `$PORTER_OPERATORS`; without any, what compiled extensions need.

    `$PORTER_SHUFFLE` is the seed of the order of lanes. `$PORTER_LARGE` makes large tensors addresses alone. What the
    program does is written to the folder `$PORTER_RUN`. Files below the folders `$PORTER_AS_MAC` see a Mac; with
    any, there are pyobjc's modules.
    """
    from pathlib import Path

    from aten_overlay import as_mac
    from aten_overlay.cuda.seed import read_seed
    from aten_overlay.device import pyobjc
    from aten_overlay.runs.journal import find_journal

    fork = environ.get("PORTER_CHECKOUT")
    seed, journal = read_seed(environ), find_journal(environ)
    device = start_as_mac(Path(fork) if fork else None)
    if environ.get(as_mac.VARIABLE):
        pyobjc.install()
    prepare_for_large(device, environ)
    operators = [name.strip() for name in environ.get("PORTER_OPERATORS", "").split(",") if name.strip()]
    if operators:
        from aten_overlay import hosts

        hosts.load_operators(device.fork, operators)
    else:
        start_frameworks()
    if journal or seed is not None:
        from aten_overlay.device import frameworks, recording

        loaded = frameworks.load(device)
        if journal:
            recording.start(device, journal, loaded.library)
        if seed is not None:
            loaded.shuffle_lanes(seed)
    return device
