"""The typed expression graph of an operator, read from source or recorded: its values, its text and its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from porter.aten.branches import Condition
from porter.core import codec, dtypes
from porter.core.dtypes import DType
from porter.core.errors import Place

Value = bool | int | float | str | None | tuple["Value", ...]
RESULTS = "results"


@dataclass(frozen=True)
class Input:
    """A tensor argument, by its name in the schema (`self`, `other`)."""

    name: str
    dtype: DType


@dataclass(frozen=True)
class Scalar:
    """A scalar argument of the operator, by its name in the schema (`alpha`, `eps`).

    It is `wrapped` if host code first puts it in a tensor of the number's own type, and then promotes.
    """

    name: str
    dtype: DType
    wrapped: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Constant:
    """A literal number, with its element type in the graph."""

    value: float | int | bool
    dtype: DType


@dataclass(frozen=True)
class Literal:
    """A non-tensor argument of an operation: an axis, a shape, a flag, the properties of a descriptor.

    `dtype` is that of the operation.
    """

    value: Value
    dtype: DType


@dataclass(frozen=True)
class UnknownValue:
    """A number that differs between runs in an unknown way; `values` are those recorded."""

    values: tuple[Value, ...]
    dtype: DType


@dataclass(frozen=True)
class Call:
    """An MPSGraph operation: `op` is its name in the table of operations, `dtype` the type of its result.

    In a recorded graph, the `op` of an operation that is not in the table is its selector, followed by `[1]` for the
    second result. `results` joins the results of an operator with several.
    """

    op: str
    args: tuple[Expr, ...]
    dtype: DType


@dataclass(frozen=True)
class Cast:
    """`castTensor:toType:`."""

    arg: Expr
    dtype: DType


Expr = Input | Scalar | Constant | Literal | UnknownValue | Call | Cast


def parts(expr: Expr) -> tuple[Expr, ...]:
    """Returns the direct operands of an expression."""
    return expr.args if isinstance(expr, Call) else (expr.arg,) if isinstance(expr, Cast) else ()


def nodes(expr: Expr) -> Iterator[Expr]:
    """Yields an expression and all its operands, from left to right, shared ones once per use."""
    yield expr
    for part in parts(expr):
        yield from nodes(part)


@dataclass(frozen=True)
class Case:
    """What is computed for one input dtype, if all of `when` hold."""

    dtype: DType
    when: tuple[Condition, ...]
    expr: Expr


@dataclass(frozen=True)
class Refusal:
    """An element type that the implementation rejects, with the message of its check."""

    dtype: DType
    text: str
    place: Place


@dataclass(frozen=True)
class Graph:
    """The cases of an operator, in the order of `porter.core.dtypes.ALL`, and the element types it rejects."""

    inputs: tuple[str, ...]
    scalars: tuple[str, ...]
    cases: tuple[Case, ...]
    refusals: tuple[Refusal, ...] = ()

    def of(self, dtype: DType) -> tuple[Case, ...]:
        """Returns the cases of an element type."""
        return tuple(case for case in self.cases if case.dtype == dtype)


def graph_lines(graph: Graph) -> Iterator[str]:
    """Returns lines such as `float, half: T(squareRoot(addition(self, other)))`, with T for the case's type, followed
    by the rejected types.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for case in graph.cases:
        when = " and ".join(map(str, case.when))
        groups.setdefault((when, format_expr(case.expr, case.dtype)), []).append(case.dtype.metal)
    for (when, text), names in groups.items():
        yield f"{', '.join(names)}{f' if {when}' if when else ''}: {text}"
    for refusal in graph.refusals:
        yield f"{refusal.dtype}: refused at {refusal.place}: {refusal.text}"


def format_expr(expr: Expr, own: DType | None = None) -> str:
    """Returns the expression as nested calls. A cast to the type `own` prints as `T`; unknown values print as `?`."""
    match expr:
        case Input(name=name) | Scalar(name=name):
            return name
        case Constant(value=value):
            return str(value)
        case Literal(value=literal):
            return _format_literal(literal)
        case UnknownValue():
            return "?"
        case Cast(arg=arg, dtype=dtype):
            return f"{'T' if dtype == own else dtype}({format_expr(arg, own)})"
        case Call(op=op, args=args):
            return f"{op}({', '.join(format_expr(arg, own) for arg in args)})"


def _format_literal(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_format_literal, value))}]"
    return "nil" if value is None else str(value)


_HOLE = Literal("_", dtypes.FLOAT)


def leaves(expr: Expr) -> tuple[Constant | Literal, ...]:
    """Returns the constants and literals of an expression, from left to right, shared ones once per use."""
    return tuple(node for node in nodes(expr) if isinstance(node, (Constant, Literal)))


def replace_leaves(expr: Expr, new: Iterator[Expr]) -> Expr:
    """Returns the expression with its constants and literals replaced by `new`, in the order of `leaves`."""
    if isinstance(expr, (Constant, Literal)):
        return next(new)
    if isinstance(expr, Cast):
        return replace(expr, arg=replace_leaves(expr.arg, new))
    if isinstance(expr, Call):
        return replace(expr, args=tuple(replace_leaves(arg, new) for arg in expr.args))
    return expr


def skeleton(expr: Expr) -> str:
    """Returns a text that is the same for two expressions that only differ in their numbers."""
    return format_expr(replace_leaves(expr, iter(lambda: _HOLE, None)))


def size(expr: Expr, at_most: int) -> int:
    """Returns the number of nodes when shared parts are written out, counted up to `at_most`."""
    known: dict[int, int] = {}

    def counted(node: Expr) -> int:
        if id(node) not in known:
            known[id(node)] = reduce(lambda total, part: min(at_most, total + counted(part)), parts(node), 1)
        return known[id(node)]

    return counted(expr)


@dataclass(frozen=True)
class CallSummary:
    """One call: the element type of its tensors, its arguments by name, and the case of the graph it took."""

    dtype: DType
    arguments: Mapping[str, Value]
    case: int


@dataclass(frozen=True)
class NotRecorded:
    """Why calls of one element type gave no graph."""

    dtype: DType
    code: str
    reason: str


@dataclass(frozen=True)
class LoopForm:
    """The shapes of a call's tensors, its graphs as fused kernels in lines of pseudocode, and what those cost."""

    shapes: str
    lines: tuple[str, ...]
    cost: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recording:
    """The recording of one overload, with its name in the schema (`lerp.Scalar`)."""

    name: str
    graph: Graph
    seen: tuple[CallSummary, ...] = ()
    left: tuple[NotRecorded, ...] = ()
    notes: tuple[str, ...] = field(default=())
    loop_form: LoopForm | None = None  # of the first call


def encode_recordings(recordings: tuple[Recording, ...]) -> str:
    """The recordings as JSON."""
    return codec.encode(recordings, tuple[Recording, ...])


def decode_recordings(text: str) -> tuple[Recording, ...]:
    """What `encode_recordings` was given."""
    recordings: tuple[Recording, ...] = codec.decode(text, tuple[Recording, ...])
    return recordings
