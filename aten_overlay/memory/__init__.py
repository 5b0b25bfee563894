"""Device memory of the stand-in, which Apple's frameworks and the device share."""

from __future__ import annotations

from pathlib import Path

from aten_overlay import toolchain

_SOURCE = Path(__file__).resolve().parent / "memory.cpp"


@toolchain.once
def build_library() -> Path:
    """`libporter_memory.so`: the C interface of memory.h, without torch. Raises as `toolchain.build` does."""
    return toolchain.build("porter_memory", [_SOURCE], ["-std=c++20"], link=["-lstdc++"])
