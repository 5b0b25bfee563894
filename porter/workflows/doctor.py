"""`porter doctor`: what of porter is on this machine, and which versions were tried."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from porter.core.files import read_regular
from porter.report.doctor import Part

TABLE = Path(__file__).with_name("parts.yaml")
_NUMBER = re.compile(r"\d+(?:\.\d+)+")


def examine() -> tuple[Part, ...]:
    """The parts of porter with the versions that are installed. Imports none of them."""
    return tuple(
        Part(row["name"], row["for"], row["needed"], row["command"], tuple(row.get("tried", ())), _find_version(row))
        for row in yaml.safe_load(read_regular(TABLE))
    )


def _find_version(row: Mapping[str, Any]) -> str:
    """The version of a part; empty where it is missing."""
    if "package" in row:
        try:
            return metadata.version(row["package"])
        except metadata.PackageNotFoundError:
            return _ask(row["package"])
    return _ask(row["program"]) if "program" in row else _FOUND_BY_CODE[row["name"]]()


def _ask(program: str) -> str:
    """The version that a program on the path says of itself."""
    path = shutil.which(program)
    if path is None:
        return ""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    number = _NUMBER.search(done.stdout)
    return number[0] if number else "unknown"


def _find_clang() -> str:
    from aten_overlay.errors import OverlayError
    from aten_overlay.metal.compiler import find_clang, version

    try:
        number = _NUMBER.search(version(find_clang()))
    except OverlayError:
        return ""
    return number[0] if number else "unknown"


_FOUND_BY_CODE: Mapping[str, Callable[[], str]] = {"Python": platform.python_version, "clang": _find_clang}
