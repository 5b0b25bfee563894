"""The launcher in C (launcher.c), compiled when a GPU is first used: a launch without ctypes takes half as long.

Without a C compiler, or Python's headers, launches go through ctypes. They do the same.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import sysconfig
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from aten_overlay import cache
from aten_overlay.errors import OverlayError
from aten_overlay.metal.compiler import find_clang

_SOURCE = Path(__file__).with_name("launcher.c")
_NAME = "launcher"


@dataclass(frozen=True)
class Launcher:
    """The compiled module, and the address of the driver's `cuLaunchKernel`."""

    module: Any
    address: int


def find_launcher(library: ctypes.CDLL) -> Launcher | None:
    """The launcher for the driver in a library; None where it cannot be compiled."""
    module = load_module()
    if module is None:
        return None
    address = ctypes.cast(library.cuLaunchKernel, ctypes.c_void_p).value
    return Launcher(module, address) if address else None


@lru_cache(maxsize=1)
def load_module() -> Any:
    """launcher.c as a module of this Python, from the cache or compiled; None where it cannot be."""
    python = str(sysconfig.get_config_var("SOABI"))
    path = cache.root() / "launcher" / f"{cache.digest(_SOURCE.read_bytes(), python, platform.machine())}.so"
    if not cache.is_intact(path) and not _compile(path):
        return None
    spec = spec_from_file_location(_NAME, path, loader=ExtensionFileLoader(_NAME, str(path)))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _compile(path: Path) -> bool:
    command = _find_compiler()
    if command is None or not Path(sysconfig.get_path("include"), "Python.h").is_file():
        return False
    cache.make_folder(path.parent)
    handle, part = tempfile.mkstemp(dir=path.parent, suffix=".so")
    os.close(handle)
    flags = ["-x", "c", "-O2", "-shared", "-fPIC", "-I", sysconfig.get_path("include"), str(_SOURCE), "-o", part]
    try:
        if subprocess.run([command, *flags], capture_output=True, check=False).returncode:
            return False
        Path(part).replace(path)
    finally:
        Path(part).unlink(missing_ok=True)
    cache.seal(path)
    return True


def _find_compiler() -> str | None:
    if found := shutil.which("cc"):
        return found
    try:
        return find_clang()
    except OverlayError:
        return None
