"""The output of `porter setup`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Compiler:
    """The clang that compiles for the host, and the first line of its version."""

    path: str
    version: str


@dataclass(frozen=True)
class Overlay:
    """The installed torch (None if missing), the backend of verdicts, and whether it needed a build."""

    torch: str | None = None
    backend: str | None = None
    built: bool = False


def compiler_text(compiler: Compiler) -> str:
    """One line about the compiler."""
    return f"compiler: {compiler.path} ({compiler.version})"


def overlay_text(overlay: Overlay) -> str:
    """One line about what was built."""
    if overlay.torch is None:
        return "overlay: not built, torch is not installed (pip install 'porter[verify]')"
    if not overlay.built:
        return f"overlay: nothing to build for the {overlay.backend} backend"
    return f"overlay: built for torch {overlay.torch}"
