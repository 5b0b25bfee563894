"""The struct that a functor with several scalars takes: its text in a header of both sides, and its names in Metal.

Host code fills it, a registration names an instance of it as the type of alpha (c10/metal/indexing.h).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from porter.aten.stubs import StubCall
from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.core.errors import PorterError

PARAMETER = "params"
_OPTIONAL = "std::optional<double>"
_NUMBERS = ("const Scalar&", "Scalar", "double", "float", "int64_t", "bool", _OPTIONAL)
_PRESENCE = "has_"
_BOOL = dtypes.BOOL.metal


@dataclass(frozen=True)
class Field:
    """A scalar: its name, and its type in the stub's signature (`const Scalar&`, `double`, `bool`)."""

    name: str
    type: str

    @property
    def is_bool(self) -> bool:
        return self.type == _BOOL

    @property
    def is_optional(self) -> bool:
        """Whether a second field says if there is a value."""
        return self.type == _OPTIONAL

    def declare(self) -> str:
        """Returns the field's declarations; T is the type of numbers."""
        presence = f"  {_BOOL} {_PRESENCE}{self.name};\n" if self.is_optional else ""
        return f"  {_BOOL if self.is_bool else 'T'} {self.name};\n{presence}"

    def initialize(self, element: str) -> str:
        """Returns what the host code fills the field with."""
        if self.is_bool:
            return self.name
        if self.is_optional:
            return f"static_cast<{element}>({self.name}.value_or(0)), {self.name}.has_value()"
        return f"{self.name}.to<{element}>()" if "Scalar" in self.type else f"static_cast<{element}>({self.name})"


@dataclass(frozen=True)
class ParamsStruct:
    """`template <typename T> struct <name>`. With `opmath`, T is the opmath type of the elements, else their own.

    Optional numbers are real even where the elements are complex.
    """

    name: str
    fields: tuple[Field, ...]
    opmath: bool

    @property
    def real(self) -> bool:
        """Whether T is the type of a complex element's parts."""
        return any(each.is_optional for each in self.fields)

    def text(self) -> str:
        """Returns the struct's definition, to be formatted with the fork's clang-format."""
        fields = "".join(each.declare() for each in self.fields)
        return f"template <typename T>\nstruct {self.name} {{\n{fields}}};\n"

    def element(self, dtype: DType) -> str:
        """Returns T in Metal for a type of elements."""
        dtype = dtype.real if self.real else dtype
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
    types = call.stub.types[1:]
    found = []
    for type_, given, theirs in zip(types, call.arguments[-len(types) :], cpu, strict=True):
        if type_ not in _NUMBERS:
            what = f"{call.stub.name} takes a {type_}, but a functor takes numbers"
            raise PorterError("PTR018", what, call.place, "Port it by hand.")
        found.append(Field(given if given in names else theirs.rstrip("_").removesuffix("_scalar"), type_))
    return tuple(found)


def write_launch(
    struct: ParamsStruct, call: Callable[..., str], kernel: str, served: tuple[DType, ...], iterator: str
) -> str:
    """Returns the statements of a host function of an iterator and the fields that launches a kernel with the struct.

    `call` writes the launcher's call with its last arguments.
    """
    scalar = "c10::scalar_value_type<scalar_t>::type" if struct.real else "scalar_t"
    element = "opmath_t" if struct.opmath else "value_t" if struct.real else scalar
    using = f"using opmath_t = at::opmath_type<{scalar}>;\n" if struct.opmath else ""
    using = using or (f"using value_t = {scalar};\n" if struct.real else "")
    dtype = f"c10::toRealValueType({iterator}.common_dtype())" if struct.real else f"{iterator}.common_dtype()"
    dtype = f"at::toOpMathType({dtype})" if struct.opmath else dtype
    given = ", ".join(each.initialize(element) for each in struct.fields)
    alias = f'fmt::format("{struct.name}_{{}}", mps::scalarToMetalTypeString({dtype}))'
    return (
        f'{_write_dispatch(served)}{iterator}.common_dtype(), "{kernel}_mps", [&]() {{\n'
        f"{using}const {struct.name}<{element}> {PARAMETER}{{{given}}};\n"
        f"{call(PARAMETER, alias)}\n}});"
    )


def write_scalar_launch(call: Callable[..., str], scalar: str, iterator: str) -> str:
    """Returns the statements of a host function of an iterator and one scalar, which the launcher takes as a struct."""
    passed = f"mps::getMPSScalar({scalar}, scalar_type).value", "mps::scalarToMetalTypeString(scalar_type)"
    return f"const auto scalar_type = at::toOpMathType({iterator}.common_dtype());\n{call(*passed)}"


def _write_dispatch(served: tuple[DType, ...]) -> str:
    """Returns the head of the macro in ATen/Dispatch.h that covers these types; others have no kernel."""
    kinds = {dtype.kind for dtype in served}
    whole = "FLOATING" if Kind.INTEGRAL not in kinds else "ALL"
    complex_too = "_AND_COMPLEX" if Kind.COMPLEX in kinds else ""
    name = f"{whole}{complex_too}_TYPES" if whole == "FLOATING" else f"{whole}_TYPES{complex_too}"
    beside = [f"k{dtype.aten}" for dtype in served if not dtype.is_basic]
    count = len(beside) if len(beside) > 1 else ""
    return f"AT_DISPATCH_{name}{f'_AND{count}' if beside else ''}({''.join(f'{each}, ' for each in beside)}"
