"""Simplifies what host code computes: numbers and conditions of sizes, and choices between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from operator import ne
from types import MappingProxyType

from porter.loops.host_values import (
    COMPARISONS,
    FUNCTIONS,
    PARTS,
    Apply,
    Constant,
    Element,
    Given,
    HostValue,
    Listed,
    Method,
    Node,
    Property,
    Rank,
    SameSizes,
    Scalar,
    Select,
    Size,
    SizeProduct,
    Sizes,
    list_parts,
)

TRUE, FALSE = Constant(True), Constant(False)
ZERO = Constant(0)
_BOOLEAN = frozenset((*COMPARISONS, "and", "or", "not"))
_FLOATING = frozenset(("/", "sqrt", "log", "log2", "exp", "float"))
_WHOLE = frozenset(("int", "floor", "ceil"))
_UNITS = {("*", 1), ("//", 1), ("+", 0), ("-", 0)}


def apply(function: str, *arguments: HostValue) -> HostValue:
    """A function of numbers, computed if they are known, and without what changes nothing."""
    if all(isinstance(each, Constant) for each in arguments):
        return Constant(FUNCTIONS[function](*(each.value for each in arguments if isinstance(each, Constant))))
    if function == "not":
        return negate(arguments[0])
    if function in ("and", "or"):
        return _connect(function, *arguments)
    if len(arguments) == 2 and all(type_of(each) == "int" for each in arguments):
        first, second = arguments
        if isinstance(second, Constant) and (function, second.value) in _UNITS:
            return first
        if isinstance(first, Constant) and (function, first.value) in (("*", 1), ("+", 0)):
            return second
    if function == "neg" and isinstance(arguments[0], Apply):
        inner = arguments[0]
        if inner.function == "neg":
            return inner.arguments[0]
        if inner.function == "//" and isinstance(inner.arguments[0], Apply) and inner.arguments[0].function == "neg":
            return apply("ceil_div", inner.arguments[0].arguments[0], inner.arguments[1])
    return Apply(function, arguments)


def negate(condition: HostValue) -> HostValue:
    """Not `condition`."""
    match condition:
        case Constant(value):
            return Constant(not value)
        case Apply("not", (inner,)):
            return inner
        # NaN is neither less nor not less
        case Apply(function, arguments) if function in COMPARISONS and "float" not in map(type_of, arguments):
            return Apply(COMPARISONS[function], arguments)
        case Apply(("and" | "or") as function, arguments):
            return _connect("or" if function == "and" else "and", *map(negate, arguments))
    return Apply("not", (condition,))


def _connect(function: str, condition: HostValue, other: HostValue) -> HostValue:
    neutral = TRUE if function == "and" else FALSE
    if condition in (neutral, other):
        return other
    if other == neutral:
        return condition
    if negate(neutral) in (condition, other):
        return negate(neutral)
    return Apply(function, (condition, other))


def type_of(value: Node, types: Mapping[str, str] = MappingProxyType({})) -> str:
    """`int`, `float` or `bool` for a number. Arguments have schema `types`, if no script says theirs."""
    match value:
        case Constant(type=type_):
            return type_
        case Scalar(name) | Element(name):
            type_ = value.type if isinstance(value, Scalar) else ""
            return type_ or ("float" if types.get(name, "").startswith(("Scalar", "float")) else "int")
        case SameSizes() | Given() | Property(_, "is_contiguous"):
            return "bool"
        case Select(_, yes, no):
            ways = (type_of(yes, types), type_of(no, types))
            return "float" if "float" in ways else ways[0]
        case Apply(function) if function in _BOOLEAN:
            return "bool"
        case Apply(function) if function in _FLOATING:
            return "float"
        case Apply(function) if function in _WHOLE:
            return "int"
        case Apply(_, arguments):
            return "float" if any(type_of(each, types) == "float" for each in arguments) else "int"
    return "int"


def is_never_negative(expression: Node) -> bool:
    """Whether a number can be seen to be 0 or more."""
    match expression:
        case Constant(value):
            return value >= 0
        case Rank() | Property() | Size() | SizeProduct() | Apply("quotient"):
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


def select(condition: HostValue, yes: Node, no: Node) -> Node:
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
    if not isinstance(yes, str) and _is_alike(yes, no):
        pairs = {
            f.name: _select_part(condition, getattr(yes, f.name), getattr(no, f.name)) for f in fields(yes) if f.init
        }
        return replace(yes, **pairs)  # type: ignore[arg-type]
    return Select(condition, yes, no)


def _select_part(condition: HostValue, yes: object, no: object) -> object:
    if isinstance(yes, tuple) and isinstance(no, tuple):
        return tuple(_select_part(condition, one, other) for one, other in zip(yes, no, strict=True))
    return yes if yes == no else select(condition, yes, no)  # type: ignore[arg-type]


def _is_alike(yes: Node, no: Node) -> bool:
    """Whether two values differ only in numbers or tensors within."""
    match yes, no:
        case (Rank() | Size() | Property() | SizeProduct() | Sizes(), _) if type(yes) is type(no):
            return all(getattr(yes, f.name) == getattr(no, f.name) for f in fields(yes) if f.name != "tensor")
        case Apply(one, ours), Apply(other, theirs):
            if one != other or len(ours) != len(theirs):
                return False
            return sum(map(ne, ours, theirs)) == 1 or all(map(_differ_in_tensors, ours, theirs))
        case Listed(ours), Listed(theirs):
            return len(ours) == len(theirs)
    return False


def is_tensor(node: Node) -> bool:
    """Whether a value is a tensor."""
    return isinstance(node, (str, Method)) or (isinstance(node, Select) and is_tensor(node.yes))


def _differ_in_tensors(yes: Node, no: Node) -> bool:
    """Whether two values are computed alike from tensors that may differ."""
    if yes == no or (is_tensor(yes) and is_tensor(no)):
        return True
    if type(yes) is not type(no):
        return False
    ours, theirs = list_parts(yes), list_parts(no)
    plain = [[getattr(node, f.name) for f in fields(node) if f.name not in PARTS] for node in (yes, no)]  # type: ignore[arg-type]
    is_alike = plain[0] == plain[1] and len(ours) == len(theirs) > 0
    return is_alike and all(map(_differ_in_tensors, ours, theirs))
