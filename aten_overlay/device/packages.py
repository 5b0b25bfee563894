"""Packages that AOTInductor compiled for mps: what they call is built, and loaded, when the first one is."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING

from aten_overlay.device import libraries
from aten_overlay.errors import OverlayError

if TYPE_CHECKING:
    from aten_overlay.device.state import Device

_Prepare = ctypes.CFUNCTYPE(ctypes.c_void_p)
_kept: list[object] = []  # C calls the function, and reads the message, for as long as the process lives


def serve(device: Device) -> None:
    """Lets `torch._inductor.aoti_load_package` load packages for mps."""

    def prepare() -> int | None:
        try:
            _load(device)
        except OverlayError as error:
            message = ctypes.create_string_buffer(str(error).encode(errors="replace"))
            _kept.append(message)
            return ctypes.addressof(message)
        return None

    function = _Prepare(prepare)
    _kept.append(function)
    device.library.porter_serve_packages(function)


@cache
def _load(device: Device) -> ctypes.CDLL:
    """Raises as what builds it does."""
    from aten_overlay.device import frameworks  # imports torch, which the device has to come before

    frameworks.load(device)
    frameworks.load_mps()
    frameworks.load_native()
    return ctypes.CDLL(str(libraries.build_packages()), mode=ctypes.RTLD_GLOBAL)
