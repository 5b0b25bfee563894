"""What numbers become in memory of a reduced floating-point type, to the nearest even."""

from __future__ import annotations

import math
import struct

from porter.core.dtypes import BFLOAT, HALF, DType
from porter.loops.host_values import Number

_HALF = struct.Struct("e")
_FLOAT, _BITS = struct.Struct("f"), struct.Struct("I")
_DROPPED = 16  # bits of a float that a bfloat does not have


def round_number(value: Number, dtype: DType) -> float:
    """A number in an element type; as it is where that has single precision."""
    try:
        if dtype == HALF:
            return float(_HALF.unpack(_HALF.pack(value))[0])
        if dtype == BFLOAT and math.isfinite(value):
            (bits,) = _BITS.unpack(_FLOAT.pack(value))
            bits += (1 << (_DROPPED - 1)) - 1 + (bits >> _DROPPED & 1)
            return float(_FLOAT.unpack(_BITS.pack(bits >> _DROPPED << _DROPPED & 0xFFFFFFFF))[0])
    except (OverflowError, struct.error):
        return math.copysign(math.inf, value)
    return float(value)
