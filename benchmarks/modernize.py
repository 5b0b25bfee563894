"""Makes an older PyTorch tree modern enough to plan on: newer c10/metal headers and the embedded fork's host side of
the dialect.

    python benchmarks/modernize.py OLD_TREE HEADERS NEW_TREE

HEADERS is the `torch/include` folder of an unpacked macOS wheel. The result is for planning, not a fork to send
upstream.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from porter.checkout import EMBEDDED_FORK, KERNELS, MPS, OPERATIONS

FOLDERS = ("aten", "c10", "test", "torch/testing", "torchgen")
DIALECT = (
    f"{MPS}/MetalShaderLibrary.h",
    f"{MPS}/MetalShaderLibrary.mm",
    f"{KERNELS}/UnaryKernel.metal",
    f"{KERNELS}/BinaryKernel.metal",
    f"{OPERATIONS}/UnaryKernel.mm",
    f"{OPERATIONS}/BinaryKernel.mm",
)


def modernize(old: Path, headers: Path, new: Path) -> None:
    """Copies the tree, then replaces the headers of c10/metal and the six files of the dialect."""
    for folder in FOLDERS:
        if (old / folder).is_dir():
            shutil.copytree(old / folder, new / folder, symlinks=True, dirs_exist_ok=True)
    for name in (".clang-format", "version.txt"):
        if (old / name).is_file():
            shutil.copy(old / name, new / name)
    shutil.copytree(headers / "c10" / "metal", new / "c10" / "metal", dirs_exist_ok=True)
    for path in DIALECT:
        shutil.copy(EMBEDDED_FORK / path, new / path)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    modernize(*map(Path, sys.argv[1:]))
