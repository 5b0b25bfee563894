"""Finds rows whose work a library of Apple's does: matrix products, convolutions, FFT, LSTM, attention."""

from __future__ import annotations

import re
from functools import lru_cache

from porter.aten.implementations import read_reachable
from porter.aten.operator import ServedFunction
from porter.core.checkout import Checkout
from porter.core.errors import PorterError

# Operations of MPSGraph, and kernels of MetalPerformanceShaders, that ports leave as they are.
_LIBRARY_CALL = re.compile(
    r"\b(?:matrixMultiplicationWith|convolution\w*With|MPSMatrix(?:Multiplication|Decomposition|Solve)"
    r"|MPSNDArrayMatrixMultiplication|LSTM(?:Gradients\w*)?With|fastFourierTransformWith"
    r"|(?:realToHermitean|HermiteanToReal)FFTWith|inverseOfTensor|scaledDotProductAttention\w*With)\w*"
)


class LibraryCall(PorterError):
    """A row's code calls a library that computes what a kernel would have to (PTR020)."""


def find_library_call(checkout: Checkout, served: ServedFunction) -> LibraryCall | None:
    """The first call of a library in a row's code, or in functions that it calls; None if there is none."""
    found = served.implementation
    if found is None:
        return None
    called = next(filter(None, map(_find_call, read_reachable(checkout, found))), "")
    if not called:
        return None
    hint = "Nothing is to be ported: the call stays. `porter migrate OP --scaffold` writes the frame of a kernel."
    return LibraryCall("PTR020", f"{served.function.name} calls `{called}`: a library computes it", found.place, hint)


@lru_cache(maxsize=4096)
def _find_call(text: str) -> str:
    """The call of a library in a function, or nothing: functions that many rows call are asked about as often."""
    found = _LIBRARY_CALL.search(text)
    return found[0] if found else ""
