"""What the evaluator does with operators and with messages, by the interface that its parts use.

Arithmetic on known values is done, and tests on arguments are kept; everything else is unknown. Functions of
OperationUtils and ATen are modeled, not interpreted. Queries return what they do in the canonical case: non-empty,
dense, contiguous tensors of one shape on the device, without aliasing, on the newest macOS.
Source: ATen/native/mps/OperationUtils.{h,mm}, c10/core/ScalarType.h.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from porter.core import dtypes
from porter.core.dtypes import DType, Kind, promote_types
from porter.core.errors import Place
from porter.languages import cpp
from porter.languages.objcpp_parser import Send
from porter.mpsgraph.graph import Call, Cast, Constant, Expr, Input, Scalar
from porter.mpsgraph.operations import Operation, by_selector
from porter.mpsgraph.source_reader.values import (
    EXPRESSIONS,
    GRAPH,
    Argument,
    Closure,
    GraphHandle,
    Paths,
    Record,
    Scope,
    TensorArg,
    Test,
    Unknown,
    format_value,
    make_unsupported_error,
    substitute,
)


class Interpreter(Protocol):
    """One run of an implementation: one element type, one path through the conditions on arguments."""

    paths: Paths
    results: list[tuple[str, Expr]]
    anonymous: int
    out: DType

    def value(self, expr: Any, scope: Scope) -> Any:
        """Returns the value of an expression."""

    def truth(self, value: Any, start: int) -> bool:
        """Returns a condition as a bool. One on an argument forks the evaluation."""

    def assign(self, target: Any, value: Any, scope: Scope) -> Any:
        """Assigns a value to a name, a record's field or a dictionary's key."""

    def call_closure(self, closure: Closure, values: Sequence[Any]) -> Any:
        """Calls a lambda or block."""

    def place(self, start: int) -> Place:
        """Returns the line of an offset into the text being interpreted."""


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "&": lambda a, b: a & b,
}


def apply(run: Interpreter, expr: cpp.Unary | cpp.Binary, scope: Scope) -> Any:
    """Returns the value of an operation. `&&` and `||` short-circuit; assignments change the scope."""
    if isinstance(expr, cpp.Unary):
        return _unary(run, expr, scope)
    if expr.op == "=":
        return run.assign(expr.left, run.value(expr.right, scope), scope)
    left = run.value(expr.left, scope)
    if expr.op in ("&&", "||"):
        return _logical(run, expr, left, scope)
    right = run.value(expr.right, scope)
    if expr.op in ("==", "!=") and not isinstance(left, Unknown) and not isinstance(right, Unknown):
        return _equal(run, expr.op, left, right)
    if expr.op == "==" and isinstance(left, Unknown) and isinstance(right, Unknown) and "::" in left.text:
        return left.text == right.text
    if isinstance(left, Argument) or isinstance(right, Argument):
        return Test(f"{format_value(left)} {expr.op} {format_value(right)}")
    if isinstance(left, DType) and expr.op == "&":
        return int(left.kind in (dtypes.Kind.FLOATING, dtypes.Kind.COMPLEX))
    if isinstance(left, (int, float)) and isinstance(right, (int, float)) and expr.op in _ARITHMETIC:
        return _ARITHMETIC[expr.op](left, right)
    if isinstance(left, str) and isinstance(right, str) and expr.op == "+":
        return left + right
    return (
        left
        if isinstance(left, str) and expr.op == "+"
        else Unknown(f"{format_value(left)} {expr.op} {format_value(right)}")
    )


def _logical(run: Interpreter, expr: cpp.Binary, left: Any, scope: Scope) -> Any:
    """Evaluates `&&` and `||`, which short-circuit."""
    decides = expr.op == "||"
    if isinstance(left, Unknown):
        right = run.value(expr.right, scope)
        if not isinstance(right, (Unknown, Test, Argument)) and bool(right) is decides:
            return decides
        return left
    if run.truth(left, expr.start) is decides:
        return decides
    right = run.value(expr.right, scope)
    return right if isinstance(right, Unknown) else run.truth(right, expr.start)


def _equal(run: Interpreter, op: str, left: Any, right: Any) -> Any:
    if isinstance(left, Argument) or isinstance(right, Argument):
        argument, other = (left, right) if isinstance(left, Argument) else (right, left)
        test = Test(f"{argument.name} == {format_value(other)}")
        return test if op == "==" else not run.paths.decide(test.text)
    return (left == right) is (op == "==")


def _unary(run: Interpreter, expr: cpp.Unary, scope: Scope) -> Any:
    value = run.value(expr.value, scope)
    if expr.op == "!":
        return value if isinstance(value, Unknown) else not run.truth(value, expr.start)
    if expr.op == "-" and isinstance(value, (int, float)):
        return -value
    if expr.op == "-" and isinstance(value, Argument):
        return Call("negative", (as_expr(value, value.dtype),), value.dtype)  # type: ignore[arg-type]
    return value


def send(run: Interpreter, expr: Send, scope: Scope) -> Any:
    """Returns the value of a message. A message to the graph creates a node."""
    receiver = run.value(expr.receiver, scope)
    if expr.selector in OBJECTIVE_C:
        return receiver
    if expr.selector == "new":
        return Record()
    if not isinstance(receiver, GraphHandle):
        return member(receiver, expr.selector)
    selector = expr.selector.removesuffix("name:").removesuffix(":")
    values = [run.value(argument, scope) for argument in expr.arguments]
    if selector.startswith("constantWithScalar"):
        return _node(run, values[0], values[-1], expr.start)
    if selector == "castTensor:toType":
        return cast(_operand(run, values[0], expr.start), values[1])
    if selector == "broadcastTensor:toShape":
        return _operand(run, values[0], expr.start)
    row = by_selector().get(selector)
    if row is None:
        raise make_unsupported_error(f"the MPSGraph operation {expr.selector}", run.place(expr.start))
    count = len(selector.split(":"))
    operands = tuple(_operand(run, value, expr.start) for value in values[:count])
    return Call(row.op, operands, _result(row, operands))


def _node(run: Interpreter, value: Any, dtype: Any, start: int) -> Expr:
    node = as_expr(value, dtype) if isinstance(dtype, DType) else None
    if node is None:
        raise make_unsupported_error(f"the constant {format_value(value)}", run.place(start))
    return node


def _operand(run: Interpreter, value: Any, start: int) -> Expr:
    if isinstance(value, EXPRESSIONS):
        return value
    raise make_unsupported_error(f"the operand {format_value(value)}", run.place(start))


def _result(row: Operation, operands: tuple[Expr, ...]) -> DType:
    if row.result is None:
        return dtypes.BOOL
    dtype = operands[row.result].dtype
    return dtype.real if row.takes_part else dtype


def _cached_graph(run: Interpreter, values: list[Any], start: int) -> Record:
    """`LookUpOrCreateCachedGraph<T>(key, instantiate)`: a new record, filled by the lambda."""
    record = Record()
    if not isinstance(values[-1], Closure):
        raise make_unsupported_error("a graph cache without a lambda", run.place(start))
    run.call_closure(values[-1], [GRAPH, record])
    return record


def _ranked_placeholder(run: Interpreter, values: list[Any], start: int) -> Expr:
    """`mpsGraphRankedPlaceHolder(graph, tensor)` or `(graph, type, shape)`; what is fed to the latter comes later."""
    if isinstance(values[1], TensorArg):
        return Input(values[1].name, values[1].dtype)
    dtype = get_dtype(values[1])
    if dtype is None:
        raise make_unsupported_error("a placeholder of an unknown type", run.place(start))
    run.anonymous += 1
    return Input(f"@{run.anonymous}", dtype)


def _placeholder(run: Interpreter, values: list[Any], start: int) -> Record:
    """`Placeholder(graphTensor, tensor, ...)`."""
    if len(values) < 2:
        return Record()
    return Record({"getMPSGraphTensor": values[0], "getMPSGraphTensorData": values[1]})


def _feeds(run: Interpreter, values: list[Any], start: int) -> Record:
    """`dictionaryFromPlaceholders(...)`."""
    return Record({v.fields.get("getMPSGraphTensor"): v.fields.get("getMPSGraphTensorData") for v in values})


def _run_graph(run: Interpreter, values: list[Any], start: int) -> None:
    """`runMPSGraph(stream, graph, feeds, outputs)`: the value of the output tensor, its placeholders fed."""
    feeds, outputs = values[2], values[3]
    known = {key: fed for key, value in _pairs(feeds) if (fed := _read_feed(key, value)) is not None}
    for expr, tensor in _pairs(outputs):
        if not isinstance(expr, EXPRESSIONS) or not isinstance(tensor, TensorArg):
            raise make_unsupported_error("the result of this graph", run.place(start))
        run.results.append((tensor.name, substitute(expr, known)))


def _pairs(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, tuple):
        return list(zip(value[::2], value[1::2], strict=False))
    if isinstance(value, Record) and "getMPSGraphTensor" in value.fields:
        return [(value.fields["getMPSGraphTensor"], value.fields["getMPSGraphTensorData"])]
    return list(value.fields.items()) if isinstance(value, Record) else []


def _read_feed(key: Any, value: Any) -> Expr | None:
    if not isinstance(key, EXPRESSIONS):
        return None
    if isinstance(value, TensorArg) and not value.wrapped:
        return Input(value.name, key.dtype)
    return as_expr(value, key.dtype)


def _cast(run: Interpreter, values: list[Any], start: int) -> Expr:
    """`castMPSTensor(graph, tensor, type)`."""
    dtype = get_dtype(values[2])
    if dtype is None or not isinstance(values[1], EXPRESSIONS):
        raise make_unsupported_error("a cast to an unknown type", run.place(start))
    return cast(values[1], dtype)


def _dtype(run: Interpreter, values: list[Any], start: int) -> Any:
    return get_dtype(values[0]) or Unknown("type")


def _scalar(run: Interpreter, values: list[Any], start: int) -> Any:
    """`getMPSScalar(scalar, type)` and `getMPSGraphTensorFromScalar(stream, scalar)`: the scalar itself."""
    return next(
        (v for v in values if isinstance(v, (Argument, *EXPRESSIONS, int, float)) and not isinstance(v, DType)), None
    )


def _promoted(run: Interpreter, values: list[Any], start: int) -> Any:
    found = [dtype for value in values if (dtype := get_dtype(value)) is not None]
    return promote_types(found[0], found[1]) if len(found) == 2 else Unknown("type")


def _wrapped(run: Interpreter, values: list[Any], start: int) -> Any:
    """`wrapped_scalar_tensor(scalar)`."""
    value = values[0]
    return TensorArg(value.name, value.dtype, wrapped=True) if isinstance(value, Argument) else Unknown("scalar tensor")


def _make_output(run: Interpreter, values: list[Any], start: int) -> Any:
    """`at::empty(...)`: an output, of the type named."""
    dtype = next((v for v in values if isinstance(v, DType)), None)
    like = next((v for v in values if isinstance(v, TensorArg)), None)
    if dtype is None and like is None:
        return TensorArg("out", run.out, output=True)
    return TensorArg("out", dtype or like.dtype, output=True)  # type: ignore[union-attr]


def _text(run: Interpreter, values: list[Any], start: int) -> Any:
    return values[0] if values and isinstance(values[0], str) else ""


def _optional(run: Interpreter, values: list[Any], start: int) -> Any:
    """`OptionalTensorRef(tensor)`, `OptionalScalarRef()`: what it holds, None for an empty one."""
    return values[0] if values else None


def _nothing(run: Interpreter, values: list[Any], start: int) -> Unknown:
    return Unknown("host code")


CALLS = {
    "LookUpOrCreateCachedGraph": _cached_graph,
    "mpsGraphRankedPlaceHolder": _ranked_placeholder,
    "mpsGraphUnrankedPlaceHolder": _ranked_placeholder,
    "mpsGraphScalarPlaceHolder": _ranked_placeholder,
    "Placeholder": _placeholder,
    "dictionaryFromPlaceholders": _feeds,
    "runMPSGraph": _run_graph,
    "castMPSTensor": _cast,
    "getMPSDataType": _dtype,
    "getMPSScalarType": _dtype,
    "getMPSScalar": _scalar,
    "getMPSGraphTensorFromScalar": _scalar,
    "promoteTypes": _promoted,
    "result_type": _promoted,
    "wrapped_scalar_tensor": _wrapped,
    "empty": _make_output,
    "empty_like": _make_output,
    "str": _text,
    "to_string": _text,
    "Scalar": lambda run, values, start: values[0],
    "OptionalScalarRef": _optional,
    "OptionalTensorRef": _optional,
    "getTensorsStringKey": _text,
    "getMPSTypeString": _text,
    "scalarToMetalTypeString": _text,
    "infer_size": _nothing,
    "getMPSShape": _nothing,
    "getCurrentMPSStream": _nothing,
    "checkAllSameGPU": _nothing,
    "mps_copy_": _nothing,
}


FACTS: dict[str, Any] = {
    "numel": 4,
    "dim": 1,
    "ndimension": 1,
    "nbytes": 16,
    "storage_offset": 0,
    "is_mps": True,
    "is_cpu": False,
    "is_same_size": True,
    "is_alias_of": False,
    "is_contiguous": True,
    "is_non_overlapping_and_dense": True,
    "is_view": False,
    "is_conj": False,
    "is_neg": False,
    "defined": True,
    "has_storage": True,
    "has_value": True,
    "is_set_to": False,
    "is_same": False,
}
"""Answers of a tensor's members that do not depend on its element type."""

QUERIES: dict[str, Any] = {
    "needsGather": False,
    "is_dense_in_storage": True,
    "is_macos_13_or_newer": True,
    "is_macos_at_least": True,
    "supportsComplex": True,
    "supportedFloatingOrComplexType": True,
    "is_empty_tensor": False,
    "infinity": float("inf"),
}
"""Answers of free functions that do not depend on the element type."""

OBJECTIVE_C = frozenset({"autorelease", "retain", "copy", "mutableCopy"})
QUIET = frozenset(
    {"C10_DIAGNOSTIC_PUSH_AND_IGNORED_IF_DEFINED", "C10_DIAGNOSTIC_POP", "alpha_check", "check_min_max_dims", "release"}
)
CHECKS = frozenset(
    {"TORCH_CHECK", "TORCH_CHECK_TYPE", "TORCH_CHECK_NOT_IMPLEMENTED", "TORCH_INTERNAL_ASSERT", "TORCH_CHECK_VALUE"}
)
CONSTANTS: dict[str, Any] = {"nil": None, "nullptr": None, "NULL": None, "nullopt": None, "true": True, "false": False}

_CONSTANT_DTYPES = {
    **dtypes.BY_MPS,
    **dtypes.BY_ATEN,
    **{f"k{name}": dtype for name, dtype in dtypes.BY_ATEN.items()},
}


def constant(path: str) -> Any:
    """Returns the value of a name that is not a variable; an Unknown if it does not matter to the graph."""
    last = path.rsplit("::", 1)[-1]
    if last in CONSTANTS:
        return CONSTANTS[last]
    return _CONSTANT_DTYPES.get(last, Unknown(path))


def get_dtype(value: Any) -> DType | None:
    """Returns the element type of a value, or None if it has none."""
    if isinstance(value, DType):
        return value
    return value.dtype if isinstance(value, (TensorArg, Argument, *EXPRESSIONS)) else None


def is_class(name: str, value: Any, include_bool: bool) -> bool | None:
    """Evaluates `isIntegralType(type, includeBool)` and similar functions; None for any other."""
    dtype = get_dtype(value)
    if dtype is None:
        return None
    kinds = {
        "isIntegralType": {Kind.INTEGRAL, Kind.BOOL} if include_bool else {Kind.INTEGRAL},
        "isFloatingType": {Kind.FLOATING},
        "isComplexType": {Kind.COMPLEX},
        "isReducedFloatingType": {Kind.FLOATING} if dtype.is_reduced else set[Kind](),
        "is_complex": {Kind.COMPLEX},
        "is_floating_point": {Kind.FLOATING},
        "isBoolean": {Kind.BOOL},
    }
    return dtype.kind in kinds[name] if name in kinds else None


def cast(value: Expr, dtype: DType) -> Expr:
    """Returns a `castTensor` of an expression, or the expression itself if it already has the type."""
    if value.dtype == dtype:
        return value
    return replace(value, dtype=dtype) if isinstance(value, Scalar) else Cast(value, dtype)


def as_expr(value: Any, dtype: DType) -> Expr | None:
    """Returns a number, argument or expression as a node of an element type."""
    if isinstance(value, (bool, int, float)):
        return Constant(value, dtype)
    if isinstance(value, Argument):
        return Scalar(value.name, dtype, value.wrapped)
    if isinstance(value, TensorArg) and value.wrapped:
        return Scalar(value.name, dtype, wrapped=True)
    return cast(value, dtype) if isinstance(value, EXPRESSIONS) else None


def member(value: Any, name: str) -> Any:
    """Returns the value of a member or of a message without arguments; an Unknown if it does not matter."""
    if isinstance(value, TensorArg):
        return _of_tensor(value, name)
    if isinstance(value, EXPRESSIONS):
        return value.dtype if name == "dataType" else Unknown(name)
    if isinstance(value, Argument):
        argument = value
        if name == "has_value":
            return Test(f"{argument.name}.has_value()") if argument.optional else True
        if name in ("value", "toDouble", "toFloat", "to", "value_or", "toInt", "toLong", "item", "get"):
            return argument
        if name in ("type", "dtype"):
            return argument.dtype
        if name in ("isComplex", "is_complex"):
            return argument.dtype.kind is Kind.COMPLEX
        return Unknown(f"{argument.name}.{name}")
    if isinstance(value, Record):
        return value.fields.get(name)
    if isinstance(value, (int, float, str)) and name in ("value", "toDouble", "toFloat", "to", "c_str"):
        return value
    if value is None and name in ("has_value", "has_storage", "defined"):
        return False
    return True if name == "has_value" and not isinstance(value, Unknown) else Unknown(name)


def _of_tensor(tensor: TensorArg, name: str) -> Any:
    if name in ("scalar_type", "dtype"):
        return tensor.dtype
    if name in ("contiguous", "clone", "detach", "view"):
        return tensor
    if tensor.wrapped and name in ("dim", "is_mps", "item"):
        return {"dim": 0, "is_mps": False, "item": Argument(tensor.name, "Scalar", tensor.dtype, wrapped=True)}[name]
    known = is_class(name, tensor, False)
    return known if known is not None else FACTS.get(name, Unknown(f"{tensor.name}.{name}"))
