"""The OperationUtils and ATen functions that the evaluator models instead of interpreting them.

Source: ATen/native/mps/OperationUtils.{h,mm}.
"""

from __future__ import annotations

from typing import Any

from porter.core.dtypes import DType, promote_types
from porter.mpsgraph.graph import Expr, Input
from porter.mpsgraph.source_reader import leaves
from porter.mpsgraph.source_reader.interpreter import Interpreter
from porter.mpsgraph.source_reader.values import (
    EXPRESSIONS,
    GRAPH,
    Argument,
    Closure,
    Record,
    TensorArg,
    Unknown,
    make_unsupported_error,
    substitute,
)


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
    dtype = leaves.get_dtype(values[1])
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
    return leaves.as_expr(value, key.dtype)


def _cast(run: Interpreter, values: list[Any], start: int) -> Expr:
    """`castMPSTensor(graph, tensor, type)`."""
    dtype = leaves.get_dtype(values[2])
    if dtype is None or not isinstance(values[1], EXPRESSIONS):
        raise make_unsupported_error("a cast to an unknown type", run.place(start))
    return leaves.cast(values[1], dtype)


def _dtype(run: Interpreter, values: list[Any], start: int) -> Any:
    return leaves.get_dtype(values[0]) or Unknown("type")


def _scalar(run: Interpreter, values: list[Any], start: int) -> Any:
    """`getMPSScalar(scalar, type)` and `getMPSGraphTensorFromScalar(stream, scalar)`: the scalar itself."""
    return next(
        (v for v in values if isinstance(v, (Argument, *EXPRESSIONS, int, float)) and not isinstance(v, DType)), None
    )


def _promoted(run: Interpreter, values: list[Any], start: int) -> Any:
    found = [dtype for value in values if (dtype := leaves.get_dtype(value)) is not None]
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
