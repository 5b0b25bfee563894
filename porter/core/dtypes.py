"""The element types a Metal kernel can be registered for, and what each side calls them.

Source: `getMPSDataType` and `scalarToMetalTypeString` in ATen/native/mps/OperationUtils.mm, `c10/core/ScalarType.h`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """A class of element types that operators treat alike."""

    FLOATING = "floating"
    INTEGRAL = "integral"
    BOOL = "bool"
    COMPLEX = "complex"


@dataclass(frozen=True)
class DType:
    """One element type: its Metal, ATen, torch and MPSGraph names, its class and its size in bytes."""

    metal: str
    aten: str
    torch: str
    mps: str
    kind: Kind
    size: int

    @property
    def real(self) -> DType:
        """The type of a complex number's parts, any other type itself."""
        return {FLOAT2: FLOAT, HALF2: HALF}.get(self, self)

    def __str__(self) -> str:
        return self.metal


FLOAT = DType("float", "Float", "float32", "MPSDataTypeFloat32", Kind.FLOATING, 4)
HALF = DType("half", "Half", "float16", "MPSDataTypeFloat16", Kind.FLOATING, 2)
BFLOAT = DType("bfloat", "BFloat16", "bfloat16", "MPSDataTypeBFloat16", Kind.FLOATING, 2)
LONG = DType("long", "Long", "int64", "MPSDataTypeInt64", Kind.INTEGRAL, 8)
INT = DType("int", "Int", "int32", "MPSDataTypeInt32", Kind.INTEGRAL, 4)
SHORT = DType("short", "Short", "int16", "MPSDataTypeInt16", Kind.INTEGRAL, 2)
UCHAR = DType("uchar", "Byte", "uint8", "MPSDataTypeUInt8", Kind.INTEGRAL, 1)
CHAR = DType("char", "Char", "int8", "MPSDataTypeInt8", Kind.INTEGRAL, 1)
BOOL = DType("bool", "Bool", "bool", "MPSDataTypeBool", Kind.BOOL, 1)
FLOAT2 = DType("float2", "ComplexFloat", "complex64", "MPSDataTypeComplexFloat32", Kind.COMPLEX, 8)
HALF2 = DType("half2", "ComplexHalf", "complex32", "MPSDataTypeComplexFloat16", Kind.COMPLEX, 4)

ALL: tuple[DType, ...] = (FLOAT, HALF, BFLOAT, LONG, INT, SHORT, UCHAR, CHAR, BOOL, FLOAT2, HALF2)
BY_METAL = {d.metal: d for d in ALL}
BY_ATEN = {d.aten: d for d in ALL}
BY_TORCH = {d.torch: d for d in ALL}
BY_MPS = {d.mps: d for d in ALL}
