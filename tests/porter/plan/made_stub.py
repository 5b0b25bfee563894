"""A copy of the embedded fork with a stub more: its declaration, its rows, and the code that calls and registers it."""

from __future__ import annotations

import shutil
from pathlib import Path

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.layout import CPU_KERNELS, NATIVE, NATIVE_FUNCTIONS


def copy_fork(folder: Path, rows: str, declared: str, shared: str, kernel: str) -> Checkout:
    """The copy; `shared` calls the stub from NATIVE/Made.cpp, `kernel` registers it in CPU_KERNELS/MadeKernel.cpp."""
    root = folder / "fork"
    shutil.copytree(EMBEDDED_FORK, root)
    (root / NATIVE / "Made.cpp").write_text(shared)
    (root / CPU_KERNELS / "MadeKernel.cpp").write_text(kernel)
    header, functions = root / NATIVE / "UnaryOps.h", root / NATIVE_FUNCTIONS
    header.write_text(header.read_text().replace("DECLARE_DISPATCH", f"{declared}DECLARE_DISPATCH", 1))
    functions.write_text(functions.read_text() + rows)
    return Checkout(root, "test")
