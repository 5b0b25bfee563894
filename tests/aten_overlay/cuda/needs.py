"""What tests of PTX need to be installed."""

from __future__ import annotations

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
    not has_libdevice(), reason="no libdevice.10.bc: install porter[test], which has nvidia-cuda-nvcc-cu12"
)
needs_assembler = pytest.mark.skipif(
    find_assembler() is None, reason="no ptxas: install porter[test], which has nvidia-cuda-nvcc-cu12"
)
