"""What numbers become in an element type: to the nearest even, or toward zero."""

from __future__ import annotations

import math
import struct

from porter.core.dtypes import BFLOAT, BOOL, FLOAT, HALF, DType, Kind
from porter.loops.host_values import Number

_HALF = struct.Struct("e")
_FLOAT, _BITS = struct.Struct("f"), struct.Struct("I")
_FORMATS = {HALF: _HALF, FLOAT: _FLOAT}
_DROPPED = 16  # bits of a float that a bfloat does not have


def round_number(value: Number, dtype: DType) -> Number:
    """A number in an element type."""
    if dtype == BOOL:
        return bool(value)
    if dtype.kind is Kind.INTEGRAL and math.isfinite(value):
        return int(value)
    try:
        if dtype in _FORMATS:
            return float(_FORMATS[dtype].unpack(_FORMATS[dtype].pack(value))[0])
        if dtype == BFLOAT and math.isfinite(value):
            (bits,) = _BITS.unpack(_FLOAT.pack(value))
            bits += (1 << (_DROPPED - 1)) - 1 + (bits >> _DROPPED & 1)
            return float(_FLOAT.unpack(_BITS.pack(bits >> _DROPPED << _DROPPED & 0xFFFFFFFF))[0])
    except (OverflowError, struct.error):
        return math.copysign(math.inf, value)
    return float(value)
