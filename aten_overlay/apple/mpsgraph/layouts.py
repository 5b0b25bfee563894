"""Which dimension of an image is which. Source: MPSGraphTensorNamedDataLayout in Apple's documentation of MPSGraph."""

from __future__ import annotations

from torch import Tensor

from aten_overlay.apple.mpsgraph.semantics import unsupported

NCHW, NHWC, CHW, HWC, HW, NCDHW, NDHWC = 0, 1, 4, 5, 6, 7, 8
_ROWS = {NCHW: -2, NHWC: -3, CHW: -2, HWC: -3, HW: -2}


def rows(layout: int) -> int:
    """The dimension of the height, from the end; that of the width follows it. Raises PTR131."""
    if layout not in _ROWS:
        raise unsupported(f"data layout {layout} of an image")
    return _ROWS[layout]


def channels_first(x: Tensor, layout: int) -> Tensor:
    """A batch with its channels before its space. Raises PTR131."""
    if layout in (NCHW, NCDHW):
        return x
    if layout not in (NHWC, NDHWC):
        raise unsupported(f"data layout {layout} of a batch")
    return x.movedim(-1, 1)


def from_channels_first(x: Tensor, layout: int) -> Tensor:
    return x.movedim(1, -1) if layout in (NHWC, NDHWC) else x
