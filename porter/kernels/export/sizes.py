"""Numbers that a script computes from sizes, for tensors of known ranks: as Python, and as Metal over extents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial, reduce

from porter.plan.promotion.expressions import (
    TRUE,
    ZERO,
    Apply,
    Argument,
    Constant,
    Expression,
    Input,
    Listed,
    Method,
    Node,
    OfTensor,
    Plain,
    SameSizes,
    Select,
    Size,
    Sizes,
    apply,
    is_never_negative,
    type_of,
)

_METAL = {"and": "&&", "or": "||", "//": "/"}
_INFIX = frozenset(("+", "-", "*", "//", "%", "/", "==", "!=", "<", "<=", ">", ">=", "and", "or"))
_MATH = frozenset(("sqrt", "log", "log2", "exp", "floor", "ceil"))
_TYPES = frozenset(("int", "float"))


class NotWritten(Exception):
    """A number cannot be written down. Holds what it is."""


def resolve(node: Node, ranks: Mapping[str, int], numbers: Mapping[str, Plain]) -> Expression:
    """A number by sizes of inputs alone, which are dense: arguments have the values of `numbers`.

    Raises NotWritten for what else a number may depend on.
    """
    match node:
        case Constant():
            return node
        case Argument(name, _):
            return Constant.of(numbers[name])
        case OfTensor(tensor, "dim"):
            return Constant.of(ranks[_input(tensor)])
        case OfTensor(tensor, "numel"):
            return _join("*", Constant.of(1), resolve_sizes(Sizes(tensor), ranks, numbers))
        case OfTensor(_, "is_contiguous"):
            return TRUE
        case OfTensor(_, "storage_offset"):
            return ZERO
        case Size(tensor, dim, "size"):
            name = _input(tensor)
            return Size(Input(name), dim % ranks[name])
        case Apply(function, arguments):
            return apply(function, *(resolve(each, ranks, numbers) for each in arguments))
        case SameSizes(left, right):
            ours, theirs = (resolve_sizes(each, ranks, numbers) for each in (left, right))
            if len(ours) != len(theirs):
                return Constant.of(False)
            return _join("and", TRUE, (apply("==", *pair) for pair in zip(ours, theirs, strict=True)))
        case Select(condition, yes, no):
            chosen = resolve(condition, ranks, numbers)
            if isinstance(chosen, Constant):
                return resolve(yes if chosen.value else no, ranks, numbers)
            return Select(chosen, resolve(yes, ranks, numbers), resolve(no, ranks, numbers))
    raise NotWritten(f"a tensor's {getattr(node, 'name', type(node).__name__.lower())}")


def resolve_sizes(node: Node, ranks: Mapping[str, int], numbers: Mapping[str, Plain]) -> tuple[Expression, ...]:
    """Sizes one by one. Raises NotWritten."""
    match node:
        case Listed(sizes):
            return tuple(resolve(each, ranks, numbers) for each in sizes)
        case Sizes(tensor, start, stop):
            name = _input(tensor)
            return tuple(Size(Input(name), each) for each in range(ranks[name])[start:stop])
        case Select(condition, yes, no):
            chosen = resolve(condition, ranks, numbers)
            if isinstance(chosen, Constant):
                return resolve_sizes(yes if chosen.value else no, ranks, numbers)
    raise NotWritten("sizes that depend on sizes")


def _input(tensor: Node) -> str:
    """The argument that a tensor is, or is a dense copy of."""
    while isinstance(tensor, Method) and tensor.name == "contiguous":
        tensor = tensor.tensor
    if not isinstance(tensor, Input):
        raise NotWritten("a view of a tensor")
    return tensor.name


def _join(function: str, start: Expression, values: Iterable[Expression]) -> Expression:
    return reduce(partial(apply, function), values, start)


def to_python(node: Expression) -> str:
    """A resolved number as a Python expression of the inputs."""
    match node:
        case Constant(value, _):
            return repr(value)
        case Size(Input(name), dim):
            return f"{name}.shape[{dim}]"
        case Apply("neg", (inner,)):
            return f"(-{to_python(inner)})"
        case Apply("not", (inner,)):
            return f"(not {to_python(inner)})"
        case Apply("ceil_div", (left, right)):
            return f"(-(-{to_python(left)} // {to_python(right)}))"
        case Apply("pow", (left, right)):
            return f"({to_python(left)} ** {to_python(right)})"
        case Apply(function, (left, right)) if function in _INFIX:
            return f"({to_python(left)} {function} {to_python(right)})"
        case Apply(function, arguments):
            module = "math." if function in _MATH else ""
            return f"{module}{function}({', '.join(map(to_python, arguments))})"
        case Select(condition, yes, no):
            return f"({to_python(yes)} if {to_python(condition)} else {to_python(no)})"  # type: ignore[arg-type]
    raise NotWritten(type(node).__name__.lower())


def to_metal(node: Expression, tensors: Mapping[str, str], ranks: Mapping[str, int]) -> str:
    """A resolved number as Metal. `tensors` has the kernel's name of each input, whose extents count from the end."""

    def write(node: Expression) -> str:
        match node:
            case Constant(bool(value), _):
                return str(value).lower()
            case Constant(float(value), _):
                return f"{value!r}f"
            case Constant(value, _):
                return str(value)
            case Size(Input(name), dim):
                return f"int({tensors[name]}.get_extent({ranks[name] - 1 - dim}))"
            case Apply("neg", (inner,)):
                return f"(-{write(inner)})"
            case Apply("not", (inner,)):
                return f"(!{write(inner)})"
            case Apply("ceil_div", (left, right)) if is_never_negative(left):
                return f"(({write(left)} + {write(right)} - 1) / {write(right)})"
            case Apply("/", (left, right)):
                return f"(float({write(left)}) / float({write(right)}))"
            case Apply("//" | "%", (left, _)) if type_of(left) != "int" or not is_never_negative(left):
                raise NotWritten("a quotient that may be negative")
            case Apply(function, (left, right)) if function in _INFIX:
                return f"({write(left)} {_METAL.get(function, function)} {write(right)})"
            case Apply("min" | "max" as function, arguments):
                return f"{function}({', '.join(map(write, arguments))})"
            case Apply(function, (inner,)) if function in _TYPES:
                return f"{function}({write(inner)})"
            case Apply(function, (inner,)) if function in _MATH:
                return f"{function}(float({write(inner)}))"
            case Select(condition, yes, no):
                return f"({write(condition)} ? {write(yes)} : {write(no)})"  # type: ignore[arg-type]
        raise NotWritten(node.function if isinstance(node, Apply) else type(node).__name__.lower())

    return write(node)
