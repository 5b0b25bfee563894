"""The element types of a kernel's buffers: the parameters of its template, and what it is instantiated for.

Scalars that kernels take have the type of the elements: as floats, large integers would not be exact. Source:
ATen/native/mps/OperationUtils.h (`getMPSScalar`), ATen/AccumulateType.h (`toAccumulateType`, `MPS_ACC_TYPE`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from porter.core import dtypes
from porter.core.dtypes import BOOL, FLOAT, FLOAT2, INT, LONG, DType, Kind
from porter.core.errors import explained
from porter.languages.identifiers import contains_identifier
from porter.loops.expressions import Buffer, Expr, Op, ReductionKind, find_buffers, walk
from porter.loops.fusion import LoopNest
from porter.loops.host_values import Arguments, Named, Scalar
from porter.loops.optional import name_role
from porter.loops.program import SymbolicProgram, Table, Temporary
from porter.metal.codegen.host_values import Names
from porter.metal.loop_spelling import copies, drop_conversion

KEY = "T"
COMBINED = "combined_t"
ACCUMULATE_TYPE = "ATen/AccumulateType.h"
NARROW = tuple(each for each in dtypes.ALL if each.kind is Kind.INTEGRAL and each.size < INT.size)
_OF_COMPLEX = (ReductionKind.SUM, ReductionKind.PRODUCT, ReductionKind.ANY, ReductionKind.ALL)
_BY_PARTS = ("addition", "subtraction", "negative", "identity")
_BY_NUMBER = ("division", "multiplication")  # of two complex numbers by functions of the fork, with a real one by parts


class Complex(Enum):
    """What host code does with complex numbers, as far as it is known."""

    TAKES = "takes them"
    REFUSES = "refuses them"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class TypeParameter:
    """A template parameter, and the schema's name of a tensor of that type."""

    name: str
    tensor: str


@dataclass(frozen=True)
class Elements:
    """How a kernel's template spells the types of buffers (`types`) and values; `instances` are types in order."""

    parameters: tuple[TypeParameter, ...]
    types: Mapping[Buffer, str]
    instances: tuple[tuple[DType, ...], ...]
    key: DType
    all_floating: bool

    @property
    def has_complex(self) -> bool:
        return any(dtype.kind is Kind.COMPLEX for each in self.instances for dtype in each)

    @property
    def has_floating(self) -> bool:
        return any(each[0].kind is Kind.FLOATING for each in self.instances)

    @property
    def has_long(self) -> bool:
        return LONG.metal in self.types.values() or any(LONG in each for each in self.instances)

    def value(self, dtype: DType) -> str:
        """The type that values are computed in."""
        if self.all_floating or dtype.kind is Kind.BOOL or dtype != self.key.opmath:
            return dtype.metal
        return self.widen(KEY)

    def widen(self, parameter: str) -> str:
        """The type that elements of a parameter's are combined in."""
        return f"{COMBINED if self.has_bool(parameter) else 'c10::metal::opmath_t'}<{parameter}>"

    def has_bool(self, parameter: str) -> bool:
        """Whether elements of a parameter's type may be bools."""
        at = [each.name for each in self.parameters].index(parameter)
        return any(instance[at].kind is Kind.BOOL for instance in self.instances)


def read_elements(
    program: SymbolicProgram, buffers: Sequence[Buffer], complex_numbers: Complex = Complex.UNKNOWN
) -> Elements:
    """The types of some buffers of a program. Raises PTR373 for a type that follows from no other."""
    key = _dtype(program.example, program.key)
    parameters, types = [TypeParameter(KEY, program.key)], {}
    columns = [program.key]
    for buffer in buffers:
        role = program.roles[buffer]
        tensor = name_role(role)
        if not tensor:
            assert isinstance(role, (Temporary, Table))
            types[buffer] = role.dtype.metal
            continue
        found = {(_dtype(call, program.key), _dtype(call, tensor)) for call in program.calls if tensor in call.tensors}
        if all(ours == other for ours, other in found):
            types[buffer] = KEY
        elif len({other for _, other in found}) == 1:
            types[buffer] = next(iter(found))[1].metal
        else:
            same = next((p for p in parameters[1:] if _agree(program, p.tensor, tensor)), None)
            if same is None:
                same = TypeParameter(f"{KEY}{len(parameters)}", tensor)
                parameters.append(same)
                columns.append(tensor)
            types[buffer] = same.name
    instances = dict.fromkeys(
        tuple(_dtype(call, column) for column in columns)
        for call in program.calls
        if all(each in call.tensors for each in columns)
    )
    widened = _widen(program, list(instances), complex_numbers)
    ordered = sorted(widened, key=lambda types: [dtypes.ALL.index(each) for each in types])
    if _moves_only(program) and len(parameters) == 1:
        ordered = [(dtype,) for dtype in dtypes.ALL]
    if complex_numbers is Complex.REFUSES:
        ordered = [each for each in ordered if each[0].kind is not Kind.COMPLEX]
    floating = all(dtypes_of[0].kind is Kind.FLOATING for dtypes_of in ordered)
    return Elements(tuple(parameters), types, tuple(ordered), key, floating)


def _widen(
    program: SymbolicProgram, instances: list[tuple[DType, ...]], complex_numbers: Complex
) -> list[tuple[DType, ...]]:
    """The instances, and those of types that compute alike: narrow integers as int, and complex numbers by parts.

    A verdict tries each.
    """
    known = {each[0]: each for each in instances}
    takes = complex_numbers is Complex.TAKES or not all(each.kind is Kind.FLOATING for each in known)
    if FLOAT in known and takes and (_computes_by_parts(program) or _computes_real(program)):
        instances = [*instances, tuple(FLOAT2 if dtype == FLOAT else dtype for dtype in known[FLOAT])]
    if (INT, LONG) in instances:  # callers may choose the result's type too
        instances = list(dict.fromkeys((*instances, (INT, INT))))
    alike = (*NARROW, BOOL) if (INT, LONG) in instances else NARROW
    for other in (each for each in alike if each not in known):
        of_int = [each for each in instances if each[0] == INT and (other is not BOOL or each == (INT, LONG))]
        made = (tuple(other if dtype == INT else dtype for dtype in each) for each in of_int)
        instances = [*instances, *(each for each in made if each not in instances)]
    return instances


def _computes_by_parts(program: SymbolicProgram) -> bool:
    """Whether the text for real elements is right for complex ones: they are moved, summed, multiplied up, scaled."""
    stores = program.stores
    values = [each for store in stores for each in walk(store.value) if each.dtype is not None]
    scales = {each.args[1] for each in values if each.op is Op.CALL and each.attribute in _BY_NUMBER}
    if all(map(copies, stores)):  # numbers are written as the real part
        scales |= {each for each in values if isinstance(each.attribute, (bool, int, float))}
    return all(_is_by_parts(each) or (each.op is Op.NUMBER and each in scales) for each in values)


def _computes_real(program: SymbolicProgram) -> bool:
    """Whether results are computed of numbers and indices alone, as floats that stores convert to any type."""
    stores = program.stores
    is_real = all(drop_conversion(store).dtype == FLOAT and not find_buffers(store.value) for store in stores)
    return is_real and _dtype(program.example, program.key).opmath != FLOAT


def _is_by_parts(value: Expr) -> bool:
    match value.op:
        case Op.CALL if value.attribute in _BY_NUMBER:
            return value.args[0].op is not Op.NUMBER
        case Op.CALL:
            return value.attribute in _BY_PARTS or compares_with_zero(value)
        case Op.REDUCE:
            return value.reduction.kind in _OF_COMPLEX
        case Op.NUMBER:
            return value.attribute == 0
    return value.op is not Op.INDEX_VALUE


def compares_with_zero(value: Expr) -> bool:
    """Whether a value says that another is not zero."""
    return value.attribute == "notEqual" and value.args[1].op is Op.NUMBER and value.args[1].attribute == 0


def _moves_only(program: SymbolicProgram) -> bool:
    """Whether a program only moves elements, scalars and zeros, so that it is the same for every type."""
    stores = program.stores
    values = [each for store in stores for each in walk(store.value)]
    numbers = [each.attribute for each in values if each.op is Op.NUMBER]
    return all(map(copies, stores)) and all(
        isinstance(number.value, Scalar) if isinstance(number, Named) else number == 0 for number in numbers
    )


def _agree(program: SymbolicProgram, tensor: str, other: str) -> bool:
    known = [call for call in program.calls if {tensor, other} <= call.tensors.keys()]
    return all(_dtype(call, tensor) == _dtype(call, other) for call in known)


def _dtype(call: Arguments, tensor: str) -> DType:
    found = call.tensors.get(tensor)
    if found is None:
        raise explained("PTR373", f"the type of `{tensor}` is not known")
    return found.dtype


@dataclass(frozen=True)
class TypedScalars:
    """The numbers of a kernel that have the type of its elements; if `is_wide`, that in which these accumulate."""

    numbers: frozenset[Named]
    is_wide: bool

    @property
    def type(self) -> str:
        return f"acc_t<{KEY}>" if self.is_wide else KEY

    def spell_value(self, elements: Elements, dtype: DType) -> str:
        """The type that values are computed in: that of the scalars, where it follows from the elements' too."""
        spelled = elements.value(dtype)
        return self.type if self.is_wide and contains_identifier(spelled, KEY) else spelled


NO_SCALARS = TypedScalars(frozenset(), False)


def find_typed(nest: LoopNest, elements: Elements) -> TypedScalars:
    """The scalars that are elements, or are computed with as elements are; none where all types are floating-point.

    Scalars that are only stored have the type of elements, others that in which they accumulate. Reductions have types
    of their own.
    """
    is_copy = all(map(copies, nest.stores))
    found = [each for store in nest.stores for each in walk(store.place, store.value)]
    if any(each.op is Op.REDUCE for each in found):
        return NO_SCALARS
    alike = {each.attribute for each in found if each.op is Op.NUMBER and each.dtype == elements.key.opmath}
    others = {each.attribute for each in found if each.op is not Op.NUMBER or each.dtype != elements.key.opmath}
    is_right = is_copy or not elements.has_complex
    numbers = (each for each in alike - others if isinstance(each, Named))
    named = frozenset(each for each in numbers if isinstance(each.value, Scalar) and each.value.default is None)
    return TypedScalars(named if is_right and not elements.all_floating else frozenset(), not is_copy)


def write_typed(number: Named, tensor: str, is_wide: bool, names: Names) -> str:
    """A scalar argument in the type of a tensor's elements. Raises PTR371."""
    assert isinstance(number.value, Scalar)
    variable, type_ = names.variable(number.value.name), f"{tensor}.scalar_type()"
    given = f"{variable}.get()" if variable in names.references else variable
    if variable not in names.references and names.types.get(number.value.name, "").endswith("?"):
        given = f"{variable}.value()"
    return f"getMPSScalar({given}, {f'toAccumulateType({type_}, kMPS)' if is_wide else type_})"
