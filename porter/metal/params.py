"""The struct that a functor with several scalars takes: its text in a header of both sides, and its names in Metal.

Host code fills it, a registration names an instance of it as the type of alpha (c10/metal/indexing.h).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from porter.aten.stubs import StubCall
from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.core.errors import PorterError

PARAMETER = "params"
_NUMBERS = ("const Scalar&", "Scalar", "double", "float", "int64_t", "bool")
_BOOL = dtypes.BOOL.metal


@dataclass(frozen=True)
class Field:
    """A scalar: its name, and its type in the stub's signature (`const Scalar&`, `double`, `bool`)."""

    name: str
    type: str

    @property
    def is_bool(self) -> bool:
        return self.type == _BOOL

    def initialize(self, element: str) -> str:
        """Returns what the host code fills the field with."""
        if self.is_bool:
            return self.name
        return f"{self.name}.to<{element}>()" if "Scalar" in self.type else f"static_cast<{element}>({self.name})"


@dataclass(frozen=True)
class ParamsStruct:
    """`template <typename T> struct <name>`. With `opmath`, T is the opmath type of the elements, else their own."""

    name: str
    fields: tuple[Field, ...]
    opmath: bool

    def text(self) -> str:
        """Returns the struct's definition, to be formatted with the fork's clang-format."""
        fields = "".join(f"  {_BOOL if each.is_bool else 'T'} {each.name};\n" for each in self.fields)
        return f"template <typename T>\nstruct {self.name} {{\n{fields}}};\n"

    def element(self, dtype: DType) -> str:
        """Returns T in Metal for a type of elements."""
        return dtype.opmath.metal if self.opmath else dtype.metal

    def alias(self, dtype: DType) -> str:
        """Returns the name of the instance for a type of elements, one word as a registration needs it."""
        return f"{self.name}_{self.element(dtype)}"

    def aliases(self, served: tuple[DType, ...]) -> tuple[str, ...]:
        """Returns the lines that name the instances."""
        made = dict.fromkeys((self.element(dtype), self.alias(dtype)) for dtype in served)
        return tuple(f"typedef {self.name}<{element}> {alias};\n" for element, alias in made)


def read_fields(call: StubCall, names: Sequence[str], cpu: Sequence[str]) -> tuple[Field, ...]:
    """Returns the scalars of a stub, named as in the schema if the call passes one of `names`, else as in the CPU code.

    Raises PTR018 for one that is not a number.
    """
    types = [re.sub(r"\b(?:at|c10)::", "", type_) for type_, _ in call.stub.signature[1:]]
    found = []
    for type_, given, theirs in zip(types, call.arguments[-len(types) :], cpu, strict=True):
        if type_ not in _NUMBERS:
            what = f"{call.stub.name} takes a {type_}, but a functor takes numbers"
            raise PorterError("PTR018", what, call.place, "Port it by hand.")
        found.append(Field(given if given in names else theirs.rstrip("_").removesuffix("_scalar"), type_))
    return tuple(found)


def write_launch(struct: ParamsStruct, call: str, kernel: str, served: tuple[DType, ...]) -> str:
    """Returns the statements of a host function of `iter` and the fields that launches a kernel with the struct.

    `call` is the launcher's call up to the struct.
    """
    element = "opmath_t" if struct.opmath else "scalar_t"
    dtype = "at::toOpMathType(iter.common_dtype())" if struct.opmath else "iter.common_dtype()"
    given = ", ".join(each.initialize(element) for each in struct.fields)
    using = "using opmath_t = at::opmath_type<scalar_t>;\n" if struct.opmath else ""
    alias = f'fmt::format("{struct.name}_{{}}", mps::scalarToMetalTypeString({dtype}))'
    return (
        f'{_write_dispatch(served)}iter.common_dtype(), "{kernel}_mps", [&]() {{\n'
        f"{using}const {struct.name}<{element}> {PARAMETER}{{{given}}};\n"
        f"{call}, {PARAMETER}, {alias});\n}});"
    )


def write_scalar_launch(call: str, scalar: str) -> str:
    """Returns the statements of a host function of `iter` and one scalar, for a launcher that takes it as a struct."""
    return (
        "const auto scalar_type = at::toOpMathType(iter.common_dtype());\n"
        f"{call}, mps::getMPSScalar({scalar}, scalar_type).value, mps::scalarToMetalTypeString(scalar_type));"
    )


def _write_dispatch(served: tuple[DType, ...]) -> str:
    """Returns the head of the macro in ATen/Dispatch.h that covers these types; others have no kernel."""
    kinds = {dtype.kind for dtype in served}
    whole = "FLOATING" if Kind.INTEGRAL not in kinds else "ALL"
    complex_too = "_AND_COMPLEX" if Kind.COMPLEX in kinds else ""
    name = f"{whole}{complex_too}_TYPES" if whole == "FLOATING" else f"{whole}_TYPES{complex_too}"
    beside = [f"k{dtype.aten}" for dtype in served if not dtype.is_basic]
    count = len(beside) if len(beside) > 1 else ""
    return f"AT_DISPATCH_{name}{f'_AND{count}' if beside else ''}({''.join(f'{each}, ' for each in beside)}"
