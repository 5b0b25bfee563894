"""Objective-C++ programs that tests call from Python."""

from __future__ import annotations

from pathlib import Path

from aten_overlay import toolchain
from aten_overlay.apple import build


def build_program(name: str, source: Path, *more: str) -> Path:
    """A library of one Objective-C++ source, compiled with `more` flags and linked with the frameworks."""
    flags = (*build.LANGUAGE, *more, *build.include_flags(), "-I", str(build.HERE), "-I", str(build.HERE.parent))
    link = (*toolchain.link_with(build.build_frameworks()), "-lstdc++")
    return toolchain.build(name, [source], flags, [build.INCLUDE], link=link)
