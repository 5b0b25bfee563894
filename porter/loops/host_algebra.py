"""Simplifies what host code computes: numbers and conditions of sizes, and choices between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from operator import ne
from types import MappingProxyType

from porter.loops import host_values as host

TRUE, FALSE = host.Constant(True), host.Constant(False)
ZERO = host.Constant(0)
_BOOLEAN = frozenset((*host.COMPARISONS, "and", "or", "not"))
_FLOATING = frozenset(("/", "sqrt", "log", "log2", "exp", "float"))
_WHOLE = frozenset(("int", "floor", "ceil"))
_UNITS = {("*", 1), ("//", 1), ("+", 0), ("-", 0)}


def apply(function: str, *arguments: host.HostValue) -> host.HostValue:
    """A function of numbers, computed if they are known, and without what changes nothing."""
    if all(isinstance(each, host.Constant) for each in arguments):
        return host.Constant(
            host.FUNCTIONS[function](*(each.value for each in arguments if isinstance(each, host.Constant)))
        )
    if function == "not":
        return negate(arguments[0])
    if function in ("and", "or"):
        return _connect(function, *arguments)
    if len(arguments) == 2 and all(type_of(each) == "int" for each in arguments):
        first, second = arguments
        if isinstance(second, host.Constant) and (function, second.value) in _UNITS:
            return first
        if isinstance(first, host.Constant) and (function, first.value) in (("*", 1), ("+", 0)):
            return second
    if function == "neg" and isinstance(arguments[0], host.Apply):
        inner = arguments[0]
        if inner.function == "neg":
            return inner.arguments[0]
        if (
            inner.function == "//"
            and isinstance(inner.arguments[0], host.Apply)
            and inner.arguments[0].function == "neg"
        ):
            return apply("ceil_div", inner.arguments[0].arguments[0], inner.arguments[1])
    return host.Apply(function, arguments)


def negate(condition: host.HostValue) -> host.HostValue:
    """Not `condition`."""
    match condition:
        case host.Constant(value):
            return host.Constant(not value)
        case host.Apply("not", (inner,)):
            return inner
        # NaN is neither less nor not less
        case host.Apply(function, arguments) if function in host.COMPARISONS and "float" not in map(type_of, arguments):
            return host.Apply(host.COMPARISONS[function], arguments)
        case host.Apply(("and" | "or") as function, arguments):
            return _connect("or" if function == "and" else "and", *map(negate, arguments))
    return host.Apply("not", (condition,))


def _connect(function: str, condition: host.HostValue, other: host.HostValue) -> host.HostValue:
    neutral = TRUE if function == "and" else FALSE
    if condition in (neutral, other):
        return other
    if other == neutral:
        return condition
    if negate(neutral) in (condition, other):
        return negate(neutral)
    return host.Apply(function, (condition, other))


def type_of(value: host.Node, types: Mapping[str, str] = MappingProxyType({})) -> str:
    """`int`, `float` or `bool` for a number. Arguments have schema `types`, if no script says theirs."""
    match value:
        case host.Constant(type=type_):
            return type_
        case host.Scalar(name) | host.Element(name):
            type_ = value.type if isinstance(value, host.Scalar) else ""
            return type_ or ("float" if types.get(name, "").startswith(("Scalar", "float")) else "int")
        case host.SameSizes() | host.Given() | host.Property(_, "is_contiguous"):
            return "bool"
        case host.Select(_, yes, no):
            ways = (type_of(yes, types), type_of(no, types))
            return "float" if "float" in ways else ways[0]
        case host.Apply(function) if function in _BOOLEAN:
            return "bool"
        case host.Apply(function) if function in _FLOATING:
            return "float"
        case host.Apply(function) if function in _WHOLE:
            return "int"
        case host.Apply(_, arguments):
            return "float" if any(type_of(each, types) == "float" for each in arguments) else "int"
    return "int"


def is_never_negative(expression: host.Node) -> bool:
    """Whether a number can be seen to be 0 or more."""
    match expression:
        case host.Constant(value):
            return value >= 0
        case host.Rank() | host.Property() | host.Size() | host.SizeProduct() | host.Apply("quotient"):
            return True
        case host.Apply("max", arguments):
            return any(map(is_never_negative, arguments))
        case host.Apply("+" | "*" | "//" | "min" | "ceil_div", arguments):
            return all(map(is_never_negative, arguments))
        case host.Apply("%", (_, divisor)):
            return is_never_negative(divisor)
        case host.Select(_, yes, no):
            return is_never_negative(yes) and is_never_negative(no)
    return False


def select(condition: host.HostValue, yes: host.Node, no: host.Node) -> host.Node:
    """One of two values, chosen as far inside of them as they differ."""
    if yes == no:
        return yes
    if isinstance(yes, host.Constant) and isinstance(no, host.Constant) and yes.type == no.type == "bool":
        return condition if yes.value else negate(condition)
    if type_of(yes) == "bool" and no == FALSE:
        return _connect("and", condition, yes)  # type: ignore[arg-type]
    if type_of(yes) == "bool" and no == TRUE:
        return _connect("or", negate(condition), yes)  # type: ignore[arg-type]
    if isinstance(yes, host.Select) and yes.no == no:
        return select(_connect("and", condition, yes.condition), yes.yes, no)
    if isinstance(no, host.Select) and no.yes == yes:
        return select(_connect("or", condition, no.condition), yes, no.no)
    if not isinstance(yes, str) and _is_alike(yes, no):
        pairs = {
            f.name: _select_part(condition, getattr(yes, f.name), getattr(no, f.name)) for f in fields(yes) if f.init
        }
        return replace(yes, **pairs)  # type: ignore[arg-type]
    return host.Select(condition, yes, no)


def _select_part(condition: host.HostValue, yes: object, no: object) -> object:
    if isinstance(yes, tuple) and isinstance(no, tuple):
        return tuple(_select_part(condition, one, other) for one, other in zip(yes, no, strict=True))
    return yes if yes == no else select(condition, yes, no)  # type: ignore[arg-type]


def _is_alike(yes: host.Node, no: host.Node) -> bool:
    """Whether two values differ only in numbers or tensors within."""
    match yes, no:
        case (host.Rank() | host.Size() | host.Property() | host.SizeProduct() | host.Sizes(), _) if type(yes) is type(
            no
        ):
            return all(getattr(yes, f.name) == getattr(no, f.name) for f in fields(yes) if f.name != "tensor")
        case host.Apply(one, ours), host.Apply(other, theirs):
            if one != other or len(ours) != len(theirs):
                return False
            return sum(map(ne, ours, theirs)) == 1 or all(map(_differ_in_tensors, ours, theirs))
        case host.Listed(ours), host.Listed(theirs):
            return len(ours) == len(theirs)
    return False


def is_tensor(node: host.Node) -> bool:
    """Whether a value is a tensor."""
    return isinstance(node, (str, host.Method)) or (isinstance(node, host.Select) and is_tensor(node.yes))


def _differ_in_tensors(yes: host.Node, no: host.Node) -> bool:
    """Whether two values are computed alike from tensors that may differ."""
    if yes == no or (is_tensor(yes) and is_tensor(no)):
        return True
    if type(yes) is not type(no):
        return False
    ours, theirs = host.list_parts(yes), host.list_parts(no)
    plain = [[getattr(node, f.name) for f in fields(node) if f.name not in host.PARTS] for node in (yes, no)]  # type: ignore[arg-type]
    is_alike = plain[0] == plain[1] and len(ours) == len(theirs) > 0
    return is_alike and all(map(_differ_in_tensors, ours, theirs))
