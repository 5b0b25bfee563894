"""What host code can compute of a call's arguments before it launches kernels: numbers, sizes, tensors, conditions.

Ports, promoted kernels and new operators share these values; `porter/metal/codegen/host_values.py` prints them as C++.
Tensors are named as in the schema; an element of a list has an index (`tensors[0]`), and results are `result0`,
`result1`... Described values read like C++ with slices: `input.size(-1)`, `prod(input[dim + 1:])`.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TypeAlias

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
    """A number that is the same in every call. Equal only to one of its own type: `1`, `1.0` and `True` are three."""

    value: Number
    type: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", type(self.value).__name__)


@dataclass(frozen=True)
class Scalar:
    """A scalar argument; `default` is its value where it is left out. Scripts say its `type`: int, float or bool."""

    name: str
    default: Number | None = None
    type: str = ""


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

    tensor: HostTensor


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

    tensor: HostTensor
    dim: HostValue


@dataclass(frozen=True)
class Property:
    """What else a tensor says of itself: `storage_offset` or `is_contiguous`; with a dimension, its `stride`."""

    tensor: HostTensor
    name: str
    dim: Constant | None = None


@dataclass(frozen=True)
class SizeProduct:
    """The product of the sizes from `begin` up to `end`, which is not included; None is that side's end of the shape.

    Negative constants count from the back.
    """

    tensor: HostTensor
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


COMPARISONS = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}  # each with its negation
FUNCTIONS: Mapping[str, Callable[..., Number]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "quotient": operator.floordiv, "neg": operator.neg, "min": min, "max": max, "pow": operator.pow,
    "/": lambda a, b: a / b if b or not a else math.copysign(math.inf, a),  # as in C++
    "ceil_div": lambda a, b: -(-a // b),
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "and": lambda a, b: a and b, "or": lambda a, b: a or b, "not": operator.not_, "sqrt": math.sqrt,
    "log": math.log, "log2": math.log2, "exp": math.exp, "float": float, "int": int, "abs": abs,
    "floor": math.floor, "ceil": math.ceil,
}  # fmt: skip


@dataclass(frozen=True)
class Apply:
    """A function of numbers: one of `FUNCTIONS`. `//` rounds down; `quotient` is of counts, which have no sign."""

    function: str
    arguments: tuple[HostValue, ...]


@dataclass(frozen=True)
class SameSizes:
    """Whether two lists of sizes are equal."""

    left: HostSizes
    right: HostSizes


@dataclass(frozen=True)
class Select:
    """One of two values of the same kind."""

    condition: HostValue
    yes: Node
    no: Node


@dataclass(frozen=True)
class Method:
    """A tensor made of another one by a method that ATen's tensors have too."""

    tensor: HostTensor
    name: str
    arguments: tuple[HostValue | HostSizes | CppName, ...] = ()


@dataclass(frozen=True)
class CppName:
    """A name that C++ knows, such as an element type: `kInt`."""

    name: str


@dataclass(frozen=True)
class Sizes:
    """The sizes of a tensor from dimension `start` to before `stop`, as Python's slices count; None is the end."""

    tensor: HostTensor
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True)
class Listed:
    """Sizes one by one."""

    sizes: tuple[HostValue, ...]


HostValue: TypeAlias = (
    Constant | Scalar | Element | Length | Rank | WrappedDim | EndDim | Size | Property | SizeProduct | SizesOver
    | Given | Apply | SameSizes | Select
)  # fmt: skip
HostTensor: TypeAlias = str | Method | Select
HostSizes: TypeAlias = Sizes | Listed | Select
Node: TypeAlias = HostValue | HostTensor | HostSizes | CppName
PARTS = frozenset(("tensor", "dim", "begin", "end", "arguments", "left", "right", "condition", "yes", "no", "sizes"))


def list_parts(node: Node) -> tuple[Node, ...]:
    """The values that a value is made of."""
    if isinstance(node, str):
        return ()
    values = (getattr(node, each.name) for each in fields(node) if each.name in PARTS)
    parts = (part for value in values for part in (value if isinstance(value, tuple) else (value,)))
    return tuple(part for part in parts if part is not None)


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
        case Property():
            raise _NoValue
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
        case Apply(function, arguments):
            return FUNCTIONS[function](*(_evaluate(each, call) for each in arguments))
        case SameSizes(left, right):
            return _sizes(left, call) == _sizes(right, call)
        case Select(condition, yes, no):
            return _evaluate(_choose(condition, yes, no, call), call)  # type: ignore[arg-type]


def _choose(condition: HostValue, yes: Node, no: Node, call: Arguments) -> Node:
    return yes if _evaluate(condition, call) else no


def _sizes(value: HostSizes, call: Arguments) -> tuple[Number, ...]:
    match value:
        case Sizes(tensor, start, stop):
            return tuple(_shape(call, tensor)[start:stop])
        case Listed(sizes):
            return tuple(_evaluate(each, call) for each in sizes)
        case Select(condition, yes, no):
            return _sizes(_choose(condition, yes, no, call), call)  # type: ignore[arg-type]


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


def _shape(call: Arguments, tensor: HostTensor) -> tuple[int, ...]:
    found = call.tensors.get(tensor) if isinstance(tensor, str) else None
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


_SIGNS = {"quotient": "//", "and": "&&", "or": "||"}


def describe(value: Node) -> str:
    """The value as text: `prod(input[:dim])`."""
    match value:
        case str(name) | CppName(name):
            return name
        case Constant(number):
            return f"{number:g}" if isinstance(number, float) else str(number)
        case Scalar(name, default):
            return name if default is None else f"{name}.value_or({default:g})"
        case Element(name, index):
            return f"{name}[{index}]"
        case Length(name):
            return f"{name}.size()"
        case Rank(tensor):
            return f"{describe(tensor)}.dim()"
        case WrappedDim(dim, _):
            return describe(dim)
        case EndDim(dims, _, is_last):
            return f"{'last' if is_last else 'first'}({dims})"
        case Size(tensor, dim):
            return f"{describe(tensor)}.size({describe(dim)})"
        case Property(tensor, name, dim):
            return f"{describe(tensor)}.{name}({describe(dim) if dim else ''})"
        case SizeProduct(tensor, None, None):
            return f"{describe(tensor)}.numel()"
        case SizeProduct(tensor, begin, end):
            return f"prod({describe(tensor)}[{describe(begin) if begin else ''}:{describe(end) if end else ''}])"
        case SizesOver(tensor, dims, others):
            return f"prod({tensor} {'without' if others else 'over'} {dims})"
        case Given(tensor):
            return f"{tensor}.defined()"
        case Apply(function, (left, right)) if function in _SIGNS or not function.isidentifier():
            return f"{_describe_operand(left)} {_SIGNS.get(function, function)} {_describe_operand(right)}"
        case Apply(name) | Method(name=name):
            return f"{name}({', '.join(map(describe, list_parts(value)))})"
        case Sizes(tensor, start, stop):
            return f"{describe(tensor)}[{start or ''}:{'' if stop is None else stop}]"
        case Listed(sizes):
            return f"{{{', '.join(map(describe, sizes))}}}"
        case SameSizes(left, right):
            return f"{describe(left)} == {describe(right)}"
        case Select(condition, yes, no):
            return f"{describe(condition)} ? {describe(yes)} : {describe(no)}"


def _describe_operand(value: HostValue) -> str:
    is_infix = isinstance(value, Apply) and len(value.arguments) > 1 and value.function not in ("min", "max")
    return f"({describe(value)})" if is_infix else describe(value)


def list_names(value: Node) -> frozenset[str]:
    """The arguments and tensors that a value is computed from."""
    match value:
        case str(name) | Scalar(name) | Element(name) | Length(name) | Given(name):
            return frozenset((name,))
        case SizesOver(tensor, dims, _) | EndDim(dims, tensor, _):
            return frozenset((tensor, dims))
    return frozenset[str]().union(*map(list_names, list_parts(value)))


def substitute(value: HostValue, made: Mapping[HostValue, HostValue]) -> HostValue:
    """A value with others in the place of some of its parts."""
    if value in made:
        return made[value]
    if isinstance(value, Apply):
        return Apply(value.function, tuple(substitute(each, made) for each in value.arguments))
    return value


def is_result(tensor: str) -> bool:
    """Whether a tensor is a result of the call."""
    return tensor.startswith("result") and tensor.removeprefix("result").isdecimal()


def list_operands(value: HostValue) -> Iterator[HostValue]:
    """A value, and those that operations compute it from."""
    yield value
    if isinstance(value, Apply):
        for argument in value.arguments:
            yield from list_operands(argument)


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
