"""Fourier transforms. Source: Apple's documentation of MPSGraph (Fourier transform operations)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from aten_overlay.apple.mpsgraph.semantics import implements

_SIZE, _UNITARY = 1, 2  # MPSGraphFFTScalingMode


def _wide(x: Tensor) -> Tensor:
    """torch transforms no halves on a CPU."""
    return x.to({torch.float16: torch.float32, torch.complex32: torch.complex64}.get(x.dtype, x.dtype))


def _complex_of(x: Tensor) -> torch.dtype:
    return torch.complex32 if x.dtype in (torch.float16, torch.complex32) else torch.complex64


def _scaled(x: Tensor, count: int, d: Any) -> Tensor:
    if d.scalingMode == _SIZE:
        return x / count
    return x / count**0.5 if d.scalingMode == _UNITARY else x


def _count(x: Tensor, axes: list[int]) -> int:
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    return count


@implements("fastFourierTransformWithTensor:axes:descriptor")
def transform(x: Tensor, axes: list[int], d: Any) -> Tensor:
    """Forward the exponents are negative; neither way scales unless the descriptor says so."""
    wide = _wide(x)
    made = torch.fft.ifftn(wide, dim=axes, norm="forward") if d.inverse else torch.fft.fftn(wide, dim=axes)
    return _scaled(made, _count(x, axes), d).to(_complex_of(x))


@implements("realToHermiteanFFTWithTensor:axes:descriptor")
def real_to_hermitean(x: Tensor, axes: list[int], d: Any) -> Tensor:
    """The half of the last axis that is its own: its size halved, and one."""
    made = torch.fft.rfftn(_wide(x), dim=axes)
    made = made.conj().resolve_conj() if d.inverse else made
    return _scaled(made, _count(x, axes), d).to(_complex_of(x))


@implements("HermiteanToRealFFTWithTensor:axes:descriptor")
def hermitean_to_real(x: Tensor, axes: list[int], d: Any) -> Tensor:
    """The last axis grows to twice its size less two, or less one where the result is to be odd."""
    sizes = [x.shape[axis] for axis in axes]
    sizes[-1] = 2 * sizes[-1] - (1 if d.roundToOddHermitean else 2)
    wide = _wide(x) if d.inverse else _wide(x).conj()
    made = torch.fft.irfftn(wide, s=sizes, dim=axes, norm="forward")
    return _scaled(made, _count(made, axes), d).to(torch.float16 if x.dtype is torch.complex32 else torch.float32)
