"""ATen's element types and their names in torch, C++, Metal and MPSGraph. Lists of types elsewhere derive from these.

Source: `c10/core/ScalarType.h`, `getMPSDataType` and `scalarToMetalTypeString` in ATen/native/mps/OperationUtils.mm.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Kind(Enum):
    """A kind of element types that operators treat alike."""

    FLOATING = "floating"
    INTEGRAL = "integral"
    BOOL = "bool"
    COMPLEX = "complex"


@dataclass(frozen=True)
class ScalarType:
    """One of ATen's element types: its ATen and torch names, its kind, and its size in bytes.

    `code` is its value in `c10::ScalarType`, `cpp` its C++ name, `alias` its second torch name. `digits` is the number
    of significand digits of a number, or of each part of a complex number. `is_basic` types are part of "all types and
    complex" in ATen's macros and torch's lists.
    """

    aten: str
    torch: str = field(compare=False)
    kind: Kind = field(compare=False)
    size: int = field(compare=False)
    code: int = field(compare=False)
    cpp: str = field(compare=False)
    alias: str = field(default="", compare=False)
    digits: int = field(default=0, compare=False)
    is_basic: bool = field(default=True, compare=False)

    @property
    def is_signed(self) -> bool:
        """`c10::isSignedType`."""
        return self.kind is not Kind.BOOL and not self.torch.startswith("uint")

    @property
    def is_reduced(self) -> bool:
        """`c10::isReducedFloatingType`."""
        return self.kind is Kind.FLOATING and self.size == 2

    @property
    def wide(self) -> ScalarType:
        """The type of reference results for a floating or complex type."""
        return COMPLEX_DOUBLE if self.kind is Kind.COMPLEX else DOUBLE


@dataclass(frozen=True)
class DType(ScalarType):
    """An element type that Metal kernels can be registered for, with its Metal and MPSGraph names."""

    metal: str = field(default="", compare=False)
    mps: str = field(default="", compare=False)

    @property
    def real(self) -> DType:
        """The type of a complex number's parts; any other type itself."""
        return _PARTS.get(self, self)

    @property
    def opmath(self) -> DType:
        """`at::toOpMathType`: the type that arithmetic on elements of this one is done in."""
        return _OPMATH.get(self, self)

    def __str__(self) -> str:
        return self.metal


# ATen, torch, kind, size, code, C++, alias, digits, basic, Metal, MPSGraph.
FLOAT = DType("Float", "float32", Kind.FLOATING, 4, 6, "float", "float", 24, True, "float", "MPSDataTypeFloat32")
HALF = DType("Half", "float16", Kind.FLOATING, 2, 5, "Half", "half", 11, False, "half", "MPSDataTypeFloat16")
BFLOAT = DType("BFloat16", "bfloat16", Kind.FLOATING, 2, 15, "BFloat16", "", 8, False, "bfloat", "MPSDataTypeBFloat16")
LONG = DType("Long", "int64", Kind.INTEGRAL, 8, 4, "int64_t", "long", metal="long", mps="MPSDataTypeInt64")
INT = DType("Int", "int32", Kind.INTEGRAL, 4, 3, "int32_t", "int", metal="int", mps="MPSDataTypeInt32")
SHORT = DType("Short", "int16", Kind.INTEGRAL, 2, 2, "int16_t", "short", metal="short", mps="MPSDataTypeInt16")
UCHAR = DType("Byte", "uint8", Kind.INTEGRAL, 1, 0, "uint8_t", metal="uchar", mps="MPSDataTypeUInt8")
CHAR = DType("Char", "int8", Kind.INTEGRAL, 1, 1, "int8_t", metal="char", mps="MPSDataTypeInt8")
BOOL = DType("Bool", "bool", Kind.BOOL, 1, 11, "bool", is_basic=False, metal="bool", mps="MPSDataTypeBool")
FLOAT2 = DType(
    "ComplexFloat", "complex64", Kind.COMPLEX, 8, 9, "c10::complex<float>", "cfloat", 24, True,
    "float2", "MPSDataTypeComplexFloat32",
)  # fmt: skip
HALF2 = DType(
    "ComplexHalf", "complex32", Kind.COMPLEX, 4, 8, "c10::complex<Half>", "chalf", 11, False,
    "half2", "MPSDataTypeComplexFloat16",
)  # fmt: skip

# Types that Metal does not have.
DOUBLE = ScalarType("Double", "float64", Kind.FLOATING, 8, 7, "double", "double", 53)
COMPLEX_DOUBLE = ScalarType("ComplexDouble", "complex128", Kind.COMPLEX, 16, 10, "c10::complex<double>", "cdouble", 53)
UINT16 = ScalarType("UInt16", "uint16", Kind.INTEGRAL, 2, 27, "uint16_t", is_basic=False)
UINT32 = ScalarType("UInt32", "uint32", Kind.INTEGRAL, 4, 28, "uint32_t", is_basic=False)
UINT64 = ScalarType("UInt64", "uint64", Kind.INTEGRAL, 8, 29, "uint64_t", is_basic=False)

ALL: tuple[DType, ...] = (FLOAT, HALF, BFLOAT, LONG, INT, SHORT, UCHAR, CHAR, BOOL, FLOAT2, HALF2)
# The types that upstream's test_mps.py tests.
TESTED: tuple[DType, ...] = tuple(d for d in ALL if d is not HALF2)
SCALAR_TYPES: tuple[ScalarType, ...] = (*ALL, DOUBLE, COMPLEX_DOUBLE, UINT16, UINT32, UINT64)

BY_METAL = {d.metal: d for d in ALL}
BY_ATEN = {d.aten: d for d in ALL}
BY_TORCH = {d.torch: d for d in ALL}
BY_MPS = {d.mps: d for d in ALL}
BY_CPP = {d.cpp: d for d in ALL}

_PARTS = {FLOAT2: FLOAT, HALF2: HALF}
_OPMATH = {HALF: FLOAT, BFLOAT: FLOAT, HALF2: FLOAT2}
# The categories of type promotion, from lowest to highest.
_CATEGORIES = (Kind.BOOL, Kind.INTEGRAL, Kind.FLOATING, Kind.COMPLEX)


def name_torch(dtype: object) -> str:
    """The name of an element type of torch: `float32`."""
    return str(dtype).removeprefix("torch.")


def of_kind(*kinds: Kind, basic: bool = False) -> tuple[ScalarType, ...]:
    """Returns ATen's types of these kinds; with `basic`, only those in "all types and complex"."""
    return tuple(each for each in SCALAR_TYPES if each.kind in kinds and (each.is_basic or not basic))


def promote_types(left: DType, right: DType) -> DType:
    """Returns `c10::promoteTypes` of two types that Metal has."""
    if left == right:
        return left
    if {left.kind, right.kind} == {Kind.FLOATING, Kind.COMPLEX}:
        return FLOAT2 if promote_types(left.real, right.real) == FLOAT else HALF2
    ranks = _CATEGORIES.index(left.kind), _CATEGORIES.index(right.kind)
    if ranks[0] != ranks[1]:
        return left if ranks[0] > ranks[1] else right
    if left.kind is Kind.FLOATING and left.size == right.size:
        return FLOAT
    if left.size == right.size:  # one has a sign
        return SHORT
    return max((left, right), key=lambda dtype: dtype.size)
