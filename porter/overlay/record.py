"""The second reading of an old implementation: the graph that it builds when it runs, as the evaluator would write it.

Exact for the arguments it is run with: branches are taken for real. Scalar arguments appear as the constants they make.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from porter import dtypes
from porter.dtypes import DType
from porter.errors import PorterError
from porter.mpsgraph.graph import Call, Cast, Constant, Expr, Input
from porter.mpsgraph.selectors import by_selector

if TYPE_CHECKING:
    from aten_overlay.apple.mpsgraph.recorder import Node, Run

_BY_TORCH = {dtype.torch: dtype for dtype in dtypes.ALL}
# They move elements and change none: element by element they are what they are given.
_SHAPES = ("reshapeTensor", "broadcastTensor", "squeezeTensor", "expandDimsOfTensor", "identityWithTensor")


def recorded(call: Callable[[], Any], inputs: Mapping[str, Any]) -> Expr:
    """What one call computes, element by element, in terms of its tensor `inputs` by their names in the schema.

    Raises PTR135 when it ran no graph or more than one, or when the graph is not one of element-wise operations.
    """
    from porter.overlay import host

    runs: list[Run] = []
    recorder = host.recorder()
    recorder.ran = runs.append
    try:
        call()
    finally:
        recorder.ran = None
    if len(runs) != 1 or len(runs[0].targets) != 1:
        raise PorterError("PTR135", f"the call ran {len(runs)} graphs, not one", hint="Record its parts by themselves.")
    names = {tensor.data_ptr(): name for name, tensor in inputs.items()}
    return _expression(runs[0], runs[0].targets[0], names)


def _expression(run: Run, ref: Any, names: Mapping[int, str]) -> Expr:
    node = run.graph.nodes[ref.node]
    dtype = _dtype(node, ref.output)
    if ref in run.feeds:
        if run.feeds[ref] not in names:
            raise _beyond(node, "a placeholder that is no tensor argument")
        return Input(names[run.feeds[ref]], dtype)
    if node.selector.startswith("constantWithScalar"):
        value = node.arguments[0]
        assert isinstance(value, (bool, int, float))
        return Constant(value, dtype)
    tensors = [each for each in node.arguments if hasattr(each, "node")]
    operands = tuple(_expression(run, each, names) for each in tensors)
    if node.selector == "castTensor:toType":
        return Cast(operands[0], dtype)
    if node.selector.startswith(_SHAPES):
        return operands[0]
    row = by_selector().get(node.selector)
    if row is None:
        raise _beyond(node, f"`{node.selector}`")
    return Call(row.op, operands, dtype)


def _dtype(node: Node, output: int) -> DType:
    name = str(node.types[output]).removeprefix("torch.")
    if name not in _BY_TORCH:
        raise _beyond(node, f"elements of type {name}")
    return _BY_TORCH[name]


def _beyond(node: Node, what: str) -> PorterError:
    return PorterError("PTR135", f"the recorded graph has {what}", hint="It is not one of element-wise operations.")
