"""What host code computes from its arguments: numbers, sizes and tensors, as values to compare and print."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

Plain: TypeAlias = bool | int | float


@dataclass(frozen=True)
class Constant:
    """A number that is known. Equal only to one of its own type: `1`, `1.0` and `True` are three."""

    value: Plain
    type: str

    @classmethod
    def of(cls, value: Plain) -> Constant:
        return cls(value, type(value).__name__)


@dataclass(frozen=True)
class Argument:
    """A number argument of the operator."""

    name: str
    type: str


@dataclass(frozen=True)
class Input:
    """A tensor argument of the operator."""

    name: str


@dataclass(frozen=True)
class Method:
    """A tensor made of another one by a method that ATen's tensors have too."""

    tensor: TensorExpression
    name: str
    arguments: tuple[Expression | SizesExpression | Named, ...] = ()


@dataclass(frozen=True)
class Named:
    """A name that C++ knows, such as an element type: `kInt`."""

    name: str


@dataclass(frozen=True)
class OfTensor:
    """A number that a tensor has: `dim`, `numel`, `storage_offset` or `is_contiguous`."""

    tensor: TensorExpression
    name: str


@dataclass(frozen=True)
class Size:
    """The length of a tensor's dimension, or its stride."""

    tensor: TensorExpression
    dim: int
    name: str = "size"


@dataclass(frozen=True)
class Apply:
    """A function of numbers."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Sizes:
    """The sizes of a tensor from dimension `start` to before `stop`, as Python's slices count; None is the end."""

    tensor: TensorExpression
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True)
class Listed:
    """Sizes one by one."""

    sizes: tuple[Expression, ...]


@dataclass(frozen=True)
class SameSizes:
    """Whether two lists of sizes are equal."""

    left: SizesExpression
    right: SizesExpression


@dataclass(frozen=True)
class Select:
    """One of two values of the same kind."""

    condition: Expression
    yes: Node
    no: Node


Expression: TypeAlias = Constant | Argument | OfTensor | Size | Apply | SameSizes | Select
TensorExpression: TypeAlias = Input | Method | Select
SizesExpression: TypeAlias = Sizes | Listed | Select
Node: TypeAlias = (
    Constant | Argument | OfTensor | Size | Apply | SameSizes | Select | Input | Method | Sizes | Listed | Named
)

TRUE, FALSE = Constant(True, "bool"), Constant(False, "bool")
ZERO = Constant(0, "int")
COMPARISONS = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_BOOLEAN = frozenset((*COMPARISONS, "and", "or", "not"))
_FLOATING = frozenset(("/", "sqrt", "log", "log2", "exp", "float"))
_WHOLE = frozenset(("int", "floor", "ceil"))
_FOLDED: Mapping[str, Callable[..., Plain]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "/": operator.truediv, "neg": operator.neg, "min": min, "max": max, "pow": operator.pow,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "and": lambda a, b: a and b, "or": lambda a, b: a or b, "not": operator.not_, "sqrt": math.sqrt,
    "log": math.log, "log2": math.log2, "exp": math.exp, "float": float, "int": int, "abs": abs,
    "floor": math.floor, "ceil": math.ceil,
}  # fmt: skip
_UNITS = {("*", 1), ("//", 1), ("+", 0), ("-", 0)}


def apply(function: str, *arguments: Expression) -> Expression:
    """A function of numbers, computed if they are known, and without what changes nothing."""
    if all(isinstance(each, Constant) for each in arguments):
        return Constant.of(_FOLDED[function](*(each.value for each in arguments if isinstance(each, Constant))))
    if function == "not":
        return negate(arguments[0])
    if function in ("and", "or"):
        return _connect(function, *arguments)
    if len(arguments) == 2 and all(type_of(each) == "int" for each in arguments):
        left, right = arguments
        if isinstance(right, Constant) and (function, right.value) in _UNITS:
            return left
        if isinstance(left, Constant) and (function, left.value) in (("*", 1), ("+", 0)):
            return right
    if function == "neg" and isinstance(arguments[0], Apply):
        inner = arguments[0]
        if inner.function == "neg":
            return inner.arguments[0]
        if inner.function == "//" and isinstance(inner.arguments[0], Apply) and inner.arguments[0].function == "neg":
            return apply("ceil_div", inner.arguments[0].arguments[0], inner.arguments[1])
    return Apply(function, arguments)


def negate(condition: Expression) -> Expression:
    """Not `condition`."""
    match condition:
        case Constant(value, _):
            return Constant.of(not value)
        case Apply("not", (inner,)):
            return inner
        case Apply(function, arguments) if function in COMPARISONS and not any(
            type_of(each) == "float"
            for each in arguments  # NaN is neither less nor not less
        ):
            return Apply(COMPARISONS[function], arguments)
        case Apply(("and" | "or") as function, (left, right)):
            return _connect("or" if function == "and" else "and", negate(left), negate(right))
    return Apply("not", (condition,))


def _connect(function: str, left: Expression, right: Expression) -> Expression:
    neutral = TRUE if function == "and" else FALSE
    if left in (neutral, right):
        return right
    if right == neutral:
        return left
    if negate(neutral) in (left, right):
        return negate(neutral)
    return Apply(function, (left, right))


def type_of(expression: Node) -> str:
    """`int`, `float` or `bool` for a number."""
    match expression:
        case Constant(_, type_) | Argument(_, type_):
            return type_
        case SameSizes() | OfTensor(_, "is_contiguous"):
            return "bool"
        case Select(_, yes, no):
            return "float" if "float" in (type_of(yes), type_of(no)) else type_of(yes)
        case Apply(function, _) if function in _BOOLEAN:
            return "bool"
        case Apply(function, _) if function in _FLOATING:
            return "float"
        case Apply(function, _) if function in _WHOLE:
            return "int"
        case Apply(_, arguments):
            return "float" if "float" in map(type_of, arguments) else "int"
    return "int"


def evaluate(node: Node, shapes: Mapping[str, tuple[int, ...]], numbers: Mapping[str, int]) -> Plain:
    """A number of a call, by its tensors' shapes and its whole numbers. Raises IndexError for a dimension it lacks."""
    match node:
        case Constant(value, _):
            return value
        case Argument(name, _):
            return numbers[name]
        case OfTensor(Input(name), "dim"):
            return len(shapes[name])
        case OfTensor(Input(name), "numel"):
            return math.prod(shapes[name])
        case Size(Input(name), dim, "size"):
            return shapes[name][dim]
        case SameSizes(Sizes(Input(one), 0, None), Sizes(Input(other), 0, None)):
            return shapes[one] == shapes[other]
        case Apply(function, arguments):
            return _FOLDED[function](*(evaluate(each, shapes, numbers) for each in arguments))
    raise ValueError(f"{node} is no number of shapes")


def is_never_negative(expression: Node) -> bool:
    """Whether a number can be seen to be 0 or more."""
    match expression:
        case Constant(value, _):
            return value >= 0
        case OfTensor() | Size():
            return True
        case Apply("max", arguments):
            return any(map(is_never_negative, arguments))
        case Apply("+" | "*" | "//" | "min" | "ceil_div", arguments):
            return all(map(is_never_negative, arguments))
        case Apply("%", (_, divisor)):
            return is_never_negative(divisor)
        case Select(_, yes, no):
            return is_never_negative(yes) and is_never_negative(no)
    return False


def select(condition: Expression, yes: Node, no: Node) -> Node:
    """One of two values, chosen as far inside of them as they differ."""
    if yes == no:
        return yes
    if isinstance(yes, Constant) and isinstance(no, Constant) and yes.type == no.type == "bool":
        return condition if yes.value else negate(condition)
    if type_of(yes) == "bool" and no == FALSE:
        return _connect("and", condition, yes)  # type: ignore[arg-type]
    if type_of(yes) == "bool" and no == TRUE:
        return _connect("or", negate(condition), yes)  # type: ignore[arg-type]
    if isinstance(yes, Select) and yes.no == no:
        return select(_connect("and", condition, yes.condition), yes.yes, no)
    if isinstance(no, Select) and no.yes == yes:
        return select(_connect("or", condition, no.condition), yes, no.no)
    if _is_alike(yes, no):
        pairs = {f.name: _select_part(condition, getattr(yes, f.name), getattr(no, f.name)) for f in fields(yes)}
        return replace(yes, **pairs)  # type: ignore[arg-type]
    return Select(condition, yes, no)


def _select_part(condition: Expression, yes: object, no: object) -> object:
    if isinstance(yes, tuple) and isinstance(no, tuple):
        return tuple(_select_part(condition, one, other) for one, other in zip(yes, no, strict=True))
    return yes if yes == no else select(condition, yes, no)  # type: ignore[arg-type]


def _is_alike(yes: Node, no: Node) -> bool:
    """Whether two values differ only in numbers or tensors within."""
    match yes, no:
        case (Size(), Size()) | (OfTensor(), OfTensor()) | (Sizes(), Sizes()):
            return all(getattr(yes, f.name) == getattr(no, f.name) for f in fields(yes) if f.name != "tensor")
        case Apply(one, ours), Apply(other, theirs):
            if one != other or len(ours) != len(theirs):
                return False
            return sum(map(operator.ne, ours, theirs)) == 1 or all(map(_differ_in_tensors, ours, theirs))
        case Listed(ours), Listed(theirs):
            return len(ours) == len(theirs)
    return False


def is_tensor(node: Node) -> bool:
    """Whether a value is a tensor."""
    return isinstance(node, (Input, Method)) or (isinstance(node, Select) and is_tensor(node.yes))


def _differ_in_tensors(yes: Node, no: Node) -> bool:
    """Whether two values are computed alike from tensors that may differ."""
    if yes == no or (is_tensor(yes) and is_tensor(no)):
        return True
    ours, theirs = parts(yes), parts(no)
    plain = [[getattr(node, f.name) for f in fields(node) if f.name not in _PARTS] for node in (yes, no)]
    alike = type(yes) is type(no) and plain[0] == plain[1] and len(ours) == len(theirs) > 0
    return alike and all(map(_differ_in_tensors, ours, theirs))


def parts(node: Node) -> tuple[Node, ...]:
    """The values that a value is made of."""
    found: list[Node] = []
    for each in fields(node):
        value = getattr(node, each.name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, _NODES):
                found.append(part)
    return tuple(found)


_PARTS = frozenset(("tensor", "arguments", "left", "right", "condition", "yes", "no", "sizes"))
_NODES = (Constant, Argument, OfTensor, Size, Apply, SameSizes, Select, Input, Method, Sizes, Listed, Named)
