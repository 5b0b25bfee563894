"""What `porter setup` found and built."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Compiler:
    """The clang that compiles for the host, and the first line that it says of itself."""

    path: str
    version: str


@dataclass(frozen=True)
class Overlay:
    """Whether something was built ahead, for the backend that verdicts take and for which torch: None without one."""

    torch: str | None = None
    backend: str | None = None
    built: bool = False


def compiler_text(compiler: Compiler) -> str:
    """The compiler in one line."""
    return f"compiler: {compiler.path} ({compiler.version})"


def overlay_text(overlay: Overlay) -> str:
    """What was built in one line."""
    if overlay.torch is None:
        return "overlay: none without torch (pip install 'porter[verify]')"
    if not overlay.built:
        return f"overlay: nothing to build for the {overlay.backend} backend"
    return f"overlay: built for torch {overlay.torch}"
