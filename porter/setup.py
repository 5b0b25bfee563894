"""`porter setup`: the compiler that the overlay needs, found, installed where that is allowed, or named."""

from __future__ import annotations

import os
import shutil
import subprocess

from porter.errors import PorterError

PACKAGES = ("clang-19", "clang-18", "clang-17")


def set_up() -> str:
    """Makes sure that a clang of 17 or newer is there; says which. Raises PTR100 where it can be neither found nor
    installed.
    """
    from aten_overlay.metal.compiler import find_clang

    try:
        return f"compiler: {' '.join(find_clang())}"
    except PorterError:
        if shutil.which("apt-get") is None or os.geteuid() != 0:
            raise
    subprocess.run(["apt-get", "update", "-qq"], check=False)
    for package in PACKAGES:
        if subprocess.run(["apt-get", "install", "-y", "-qq", package], check=False).returncode == 0:
            break
    return f"compiler: {' '.join(find_clang())}"
