"""Textures over arrays, and samplers: what a launch binds beside buffers (see `include/porter_metal_abi.h`)."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aten_overlay.errors import OverlayError

FIRST_TEXTURE, FIRST_SAMPLER = 32, 160
_FORMATS: Mapping[tuple[str, bool], int] = {
    ("u1", True): 0, ("i1", True): 1, ("u1", False): 2, ("i1", False): 3, ("u2", True): 4, ("i2", True): 5,
    ("u2", False): 6, ("i2", False): 7, ("f2", False): 8, ("u4", False): 9, ("i4", False): 10, ("f4", False): 11,
}  # fmt: skip
_ADDRESSES = ("clamp_to_edge", "clamp_to_zero", "repeat", "mirrored_repeat", "clamp_to_border")
_BORDERS = ("transparent_black", "opaque_black", "opaque_white")
_COMPARISONS = ("never", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "always")


class _Texture(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        *((name, ctypes.c_uint32) for name in ("width", "height", "depth", "layers", "texel", "channels")),
        ("row_bytes", ctypes.c_uint64),
        ("slice_bytes", ctypes.c_uint64),
    ]


class _Sampler(ctypes.Structure):
    _fields_ = [
        ("coord", ctypes.c_uint32),
        ("filter", ctypes.c_uint32),
        ("address", ctypes.c_uint32 * 3),
        ("border", ctypes.c_uint32),
        ("compare", ctypes.c_uint32),
    ]


@dataclass(frozen=True)
class Texture:
    """A texture whose texels are those of a contiguous numpy array: (layers or depth, height, width, channels).

    `layered` tells an array of 2D textures, or the faces of cubes, from a 3D texture or the samples of a multisampled
    one; `normalized` reads integers as floats up to 1.
    """

    array: Any
    normalized: bool = False
    layered: bool = False

    def describe(self) -> ctypes.Structure:
        """As a launch takes it. Raises PTR106 for an array that no texture has."""
        array = self.array
        texel = _FORMATS.get((array.dtype.str[1:], self.normalized))
        if texel is None or array.ndim != 4 or array.shape[3] not in (1, 2, 4) or not array.flags.c_contiguous:
            what = f"a texture cannot be over an array of {array.dtype} of shape {array.shape}"
            raise OverlayError("PTR106", what, hint="Give (depth, height, width, 1, 2 or 4 channels), contiguous.")
        slices, height, width, channels = array.shape
        depth, layers = (1, slices) if self.layered else (slices, 1)
        rows = array.strides[1], array.strides[0]
        return _Texture(array.ctypes.data, width, height, depth, layers, texel, channels, *rows)


@dataclass(frozen=True)
class Sampler:
    """A sampler, in the words of the language."""

    normalized: bool = True
    linear: bool = False
    address: str = "clamp_to_edge"
    border: str = "transparent_black"
    compare: str = "never"

    def describe(self) -> ctypes.Structure:
        """As a launch takes it."""
        modes = (ctypes.c_uint32 * 3)(*[_ADDRESSES.index(self.address)] * 3)
        border, compare = _BORDERS.index(self.border), _COMPARISONS.index(self.compare)
        return _Sampler(int(not self.normalized), int(self.linear), modes, border, compare)
