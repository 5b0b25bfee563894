"""What tests of PTX need to be installed, and ptxas."""

from __future__ import annotations

import subprocess

import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.cuda.libdevice import find_assembler, find_libdevice


def has_libdevice() -> bool:
    """Whether PTX can be made here."""
    try:
        find_libdevice()
    except OverlayError:
        return False
    return True


needs_libdevice = pytest.mark.skipif(
    not has_libdevice(), reason="no libdevice.10.bc: install torch-porter[test], which has nvidia-cuda-nvcc-cu12"
)
needs_assembler = pytest.mark.skipif(
    find_assembler() is None, reason="no ptxas: install torch-porter[test], which has nvidia-cuda-nvcc-cu12"
)


def assemble(text: str) -> str:
    """What ptxas says against some PTX ("": nothing, or there is no ptxas)."""
    if find_assembler() is None:
        return ""
    command = [str(find_assembler()), "-arch=sm_80", "-O1", "-o", "/dev/null", "/dev/stdin"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""
