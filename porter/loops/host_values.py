"""What host code can compute of a call's arguments before it launches kernels: sizes, their products, scalars.

Tensors are named as in the schema; an element of a list has an index (`tensors[0]`), and results are `result0`,
`result1`... Printed values read like C++ with slices: `input.size(-1)`, `prod(input[dim + 1:])`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from porter.core.dtypes import BFLOAT, BOOL, FLOAT, HALF, DType, Kind

Number = bool | int | float
_HALF = struct.Struct("e")
_FLOAT, _BITS = struct.Struct("f"), struct.Struct("I")
_FORMATS = {HALF: _HALF, FLOAT: _FLOAT}
_DROPPED = 16  # bits of a float that a bfloat does not have


@dataclass(frozen=True)
class TensorValue:
    """A tensor of a call; one that the graph expands to this shape has one of its `own`."""

    shape: tuple[int, ...]
    dtype: DType
    own: tuple[int, ...] | None = None


ArgumentValue = bool | int | float | str | None | tuple["ArgumentValue", ...]


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call by name, with its results: elements of a list of tensors are `name[i]`."""

    tensors: Mapping[str, TensorValue]
    others: Mapping[str, ArgumentValue]


@dataclass(frozen=True)
class Constant:
    """A number that is the same in every call."""

    value: Number


@dataclass(frozen=True)
class Scalar:
    """A scalar argument; `default` is its value where it is left out."""

    name: str
    default: Number | None = None


@dataclass(frozen=True)
class Element:
    """An element of a list argument; a negative index counts from the back."""

    name: str
    index: int


@dataclass(frozen=True)
class Length:
    """The number of elements of a list argument, also of tensors."""

    name: str


@dataclass(frozen=True)
class Rank:
    """The number of dimensions of a tensor."""

    tensor: str


@dataclass(frozen=True)
class WrappedDim:
    """An argument that names a dimension of a tensor, from the front: `maybe_wrap_dim`."""

    dim: Scalar | Element
    tensor: str


@dataclass(frozen=True)
class EndDim:
    """The first or the last of the dimensions that a list names, from the front; an empty list or None names all."""

    dims: str
    tensor: str
    is_last: bool


@dataclass(frozen=True)
class Size:
    """The size of a dimension; a negative constant counts from the back."""

    tensor: str
    dim: HostValue


@dataclass(frozen=True)
class SizeProduct:
    """The product of the sizes from `begin` up to `end`, which is not included; None is that side's end of the shape.

    Negative constants count from the back.
    """

    tensor: str
    begin: HostValue | None = None
    end: HostValue | None = None


@dataclass(frozen=True)
class SizesOver:
    """The product of the sizes of the dimensions that a list or scalar argument names; with `others`, of all but those.

    An argument that is empty or None names all dimensions.
    """

    tensor: str
    dims: str
    others: bool = False


@dataclass(frozen=True)
class Given:
    """Whether a tensor that may be left out is given; of a result, whether it is asked for."""

    tensor: str


class Operator(Enum):
    """An operation on two numbers."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    FLOOR_DIVIDE = "//"  # of integers
    DIVIDE = "/"  # of floating-point numbers
    LEAST = "min"
    GREATEST = "max"


@dataclass(frozen=True)
class Binary:
    """An operation on two values."""

    operator: Operator
    left: HostValue
    right: HostValue


HostValue = (
    Constant | Scalar | Element | Length | Rank | WrappedDim | EndDim | Size | SizeProduct | SizesOver | Given | Binary
)


@dataclass(frozen=True)
class Named:
    """A number that kernels take as an argument: its name there, its value, and that of one call, the example."""

    name: str
    value: HostValue
    example: Number

    def __str__(self) -> str:
        return f"{self.name} = {describe(self.value)}"


def evaluate(value: HostValue, call: Arguments) -> Number | None:
    """The value in a call; None where it has none: an argument that is left out, a dimension that does not exist."""
    try:
        return _evaluate(value, call)
    except (_NoValue, ArithmeticError):
        return None


class _NoValue(Exception):
    pass


def _evaluate(value: HostValue, call: Arguments) -> Number:
    match value:
        case Constant(number):
            return number
        case Scalar(name, default):
            given = call.others.get(name)
            return _number(default if given is None else given)
        case Element(name, index):
            return _number(_at(_list(call, name), index))
        case Length(name):
            number_of_tensors = sum(tensor.startswith(f"{name}[") for tensor in call.tensors)
            return number_of_tensors or len(_list(call, name))
        case Rank(tensor):
            return len(_shape(call, tensor))
        case WrappedDim(dim, tensor):
            return _wrap(_integer(dim, call), len(_shape(call, tensor)))
        case EndDim(dims, tensor, is_last):
            named = _find_dims(call.others.get(dims), len(_shape(call, tensor)))
            return max(named) if is_last else min(named)
        case Size(tensor, dim):
            return _at(_shape(call, tensor), _integer(dim, call))
        case SizeProduct(tensor, begin, end):
            shape = _shape(call, tensor)
            rank = len(shape)
            first = 0 if begin is None else _cut(begin, rank, call)
            last = rank if end is None else _cut(end, rank, call)
            if first > last:
                raise _NoValue
            return math.prod(shape[first:last])
        case SizesOver(tensor, dims, others):
            return _multiply_over(_shape(call, tensor), call.others.get(dims), others)
        case Given(tensor):
            return tensor in call.tensors
        case Binary(operator, left, right):
            return _compute(operator, _evaluate(left, call), _evaluate(right, call))


def _number(value: ArgumentValue) -> Number:
    if not isinstance(value, (bool, int, float)):
        raise _NoValue
    return value


def _integer(value: HostValue, call: Arguments) -> int:
    found = _evaluate(value, call)
    if not isinstance(found, int):
        raise _NoValue
    return found


def _list(call: Arguments, name: str) -> tuple[ArgumentValue, ...]:
    found = call.others.get(name)
    if not isinstance(found, tuple):
        raise _NoValue
    return found


def _shape(call: Arguments, tensor: str) -> tuple[int, ...]:
    found = call.tensors.get(tensor)
    if found is None:
        raise _NoValue
    return found.shape


def _at(values: Sequence[ArgumentValue], index: int) -> Number:
    if not -len(values) <= index < len(values):
        raise _NoValue
    return _number(values[index])


def _wrap(dim: int, rank: int) -> int:
    """A dimension from the front; a tensor of rank 0 has one to name."""
    if not -max(rank, 1) <= dim < max(rank, 1):
        raise _NoValue
    return dim % max(rank, 1)


def _cut(value: HostValue, rank: int, call: Arguments) -> int:
    found = _integer(value, call)
    found = found + rank if isinstance(value, Constant) and found < 0 else found
    if not 0 <= found <= rank:
        raise _NoValue
    return found


def _multiply_over(shape: Sequence[int], dims: ArgumentValue, others: bool) -> int:
    over = _find_dims(dims, len(shape))
    return math.prod(size for i, size in enumerate(shape) if (i in over) is not others)


def _find_dims(dims: ArgumentValue, rank: int) -> frozenset[int]:
    """The dimensions that an argument names."""
    named = dims if isinstance(dims, tuple) else () if dims is None else (dims,)
    wrapped = frozenset(_wrap(each, rank) for each in named if isinstance(each, int))
    if len(wrapped) != len(named):
        raise _NoValue
    return wrapped or frozenset(range(max(rank, 1)))


def _compute(operator: Operator, left: Number, right: Number) -> Number:
    match operator:
        case Operator.ADD:
            return left + right
        case Operator.SUBTRACT:
            return left - right
        case Operator.MULTIPLY:
            return left * right
        case Operator.FLOOR_DIVIDE:
            return left // right
        case Operator.DIVIDE:
            return left / right if right or not left else math.copysign(math.inf, left)  # as in C++
        case Operator.LEAST:
            return min(left, right)
        case Operator.GREATEST:
            return max(left, right)


def describe(value: HostValue) -> str:
    """The value as text: `prod(input[:dim])`."""
    match value:
        case Constant(number):
            return f"{number:g}" if isinstance(number, float) else str(number)
        case Scalar(name, default):
            return name if default is None else f"{name}.value_or({default:g})"
        case Element(name, index):
            return f"{name}[{index}]"
        case Length(name):
            return f"{name}.size()"
        case Rank(tensor):
            return f"{tensor}.dim()"
        case WrappedDim(dim, _):
            return describe(dim)
        case EndDim(dims, _, is_last):
            return f"{'last' if is_last else 'first'}({dims})"
        case Size(tensor, dim):
            return f"{tensor}.size({describe(dim)})"
        case SizeProduct(tensor, None, None):
            return f"{tensor}.numel()"
        case SizeProduct(tensor, begin, end):
            return f"prod({tensor}[{describe(begin) if begin else ''}:{describe(end) if end else ''}])"
        case SizesOver(tensor, dims, others):
            return f"prod({tensor} {'without' if others else 'over'} {dims})"
        case Given(tensor):
            return f"{tensor}.defined()"
        case Binary(Operator.LEAST | Operator.GREATEST as operator, left, right):
            return f"{operator.value}({describe(left)}, {describe(right)})"
        case Binary(operator, left, right):
            return f"{_describe_operand(left)} {operator.value} {_describe_operand(right)}"


def _describe_operand(value: HostValue) -> str:
    infix = isinstance(value, Binary) and value.operator not in (Operator.LEAST, Operator.GREATEST)
    return f"({describe(value)})" if infix else describe(value)


def list_names(value: HostValue) -> frozenset[str]:
    """The arguments and tensors that a value is computed from."""
    match value:
        case Constant():
            return frozenset()
        case Scalar(name, _) | Element(name, _) | Length(name) | Rank(name) | Given(name):
            return frozenset((name,))
        case WrappedDim(dim, tensor):
            return frozenset((dim.name, tensor))
        case Size(tensor, dim):
            return frozenset((tensor,)) | list_names(dim)
        case SizeProduct(tensor, begin, end):
            return frozenset((tensor,)).union(*(list_names(each) for each in (begin, end) if each))
        case SizesOver(tensor, dims, _) | EndDim(dims, tensor, _):
            return frozenset((tensor, dims))
        case Binary(_, left, right):
            return list_names(left) | list_names(right)


def substitute(value: HostValue, made: Mapping[HostValue, HostValue]) -> HostValue:
    """A value with others in the place of some of its parts."""
    if value in made:
        return made[value]
    if isinstance(value, Binary):
        return Binary(value.operator, substitute(value.left, made), substitute(value.right, made))
    return value


def is_result(tensor: str) -> bool:
    """Whether a tensor is a result of the call."""
    return tensor.startswith("result") and tensor.removeprefix("result").isdecimal()


def list_operands(value: HostValue) -> Iterator[HostValue]:
    """A value, and those that operations compute it from."""
    yield value
    if isinstance(value, Binary):
        yield from (*list_operands(value.left), *list_operands(value.right))


def list_scalars(value: HostValue) -> list[Scalar]:
    """The scalar arguments that a value is computed from."""
    return [part for part in list_operands(value) if isinstance(part, Scalar)]


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
