"""The second reading of an old implementation: runs it over its OpInfo samples and records the graphs it builds.

Branches are really taken, and numbers are computed by the code itself. What the runs cannot show is reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

from porter.core import dtypes
from porter.core.dtypes import DType
from porter.core.errors import PorterError
from porter.loops.expressions import Buffer
from porter.loops.fusion import LoopNest, coalesce, fuse
from porter.loops.graph import ConcreteGraph, Tensor
from porter.loops.printing import name_buffers, nest_lines
from porter.mpsgraph.graph import CallSummary, Expr, Graph, LoopForm, NotRecorded, Recording
from porter.recording.calls import OpCall, capture_calls, pick_diverse_calls, read_arguments, vary_arguments
from porter.recording.cases import RecordedCall, build_cases, find_unknown_numbers
from porter.recording.concrete import read_concrete_graph
from porter.recording.cost import cost_lines, count_cost, count_graph_bytes
from porter.recording.expressions import build_expression
from porter.recording.runs import RecordedRun, check_flow, run_call
from porter.verdict.errors import raising_porter_errors

if TYPE_CHECKING:
    import torch

    from aten_overlay.apple.mpsgraph.recorder import GraphRun

_CODE = re.compile(r"(PTR\d{3}):? ")


def describe_loop_form(runs: Sequence[GraphRun], inputs: Mapping[str, torch.Tensor]) -> LoopForm:
    """The kernels of a call's graphs, with its tensors by name; a graph without loop form is a line with its code."""
    shapes = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in inputs.items())
    names = {tensor.data_ptr(): name for name, tensor in inputs.items()}
    lines, cost = zip(*(_describe_graph(run, names) for run in runs), strict=True) if runs else ((), ())
    return LoopForm(shapes, tuple(chain(*lines)), tuple(chain(*cost)))


def _describe_graph(run: GraphRun, names: Mapping[int, str]) -> tuple[list[str], list[str]]:
    """The lines of the kernels, and those of their cost."""
    try:
        with raising_porter_errors():
            graph = read_concrete_graph(run)
            nests = [coalesce(nest) for nest in fuse(graph)]
    except PorterError as error:
        return [f"{error.code} {error.what}"], []
    feeds = enumerate(run.feeds.items())
    given = {Buffer(ref.node, ref.output): names.get(address, f"in{i}") for i, (ref, address) in feeds}
    buffers = name_buffers(nests, given)
    return [line for nest in nests for line in nest_lines(nest, buffers)], list(_describe_cost(graph, nests, buffers))


def _describe_cost(graph: ConcreteGraph, nests: Sequence[LoopNest], names: Mapping[Buffer, str]) -> Iterator[str]:
    sizes = {
        buffer: graph.result(Tensor(buffer.node, buffer.output)).size for buffer in names if not buffer.is_temporary
    }
    try:
        yield from cost_lines(count_cost(nests, sizes), names)
    except PorterError as error:
        yield f"{error.code} {error.what}"
    operations, moved = count_graph_bytes(graph)
    yield f"the graph: {operations} operations, {moved} bytes moved if none are fused"


@dataclass
class _Readings:
    """The calls of an overload that one way of reading can read, and those it cannot."""

    observed: list[RecordedCall] = field(default_factory=list)
    left: list[NotRecorded] = field(default_factory=list)
    loop_form: LoopForm | None = None


_Calls = list[tuple[DType, OpCall]]  # ordered by type


def record(base: str, through: Sequence[str] = (), overloads: Sequence[str] = ()) -> tuple[Recording, ...]:
    """Records every overload of an operator that OpInfo samples call, and those of `overloads` that take the same
    arguments.

    Uses the OpInfos named for the operator and those with the full names `through`. Its host code must be loaded.
    Raises PTR136 if no sample calls it.
    """
    from porter.verdict.suite.dispatched import check_gradients

    check_gradients()
    made: dict[str, _Calls] = {}
    for dtype in dtypes.ALL:
        for op in find_opinfos(base, through):
            for call in capture_calls(op, base, dtype):
                made.setdefault(call.name, []).append((dtype, call))
    if not made:
        raise PorterError("PTR136", f"no OpInfo sample calls {base}", hint="Only the source reading is available.")
    tried = {name: _vary_calls(found) for name, found in made.items()}
    alike = {name: _adapt_calls(list(tried.values()), name) for name in overloads if name not in tried}
    return tuple(_recording(name, found) for name, found in sorted((tried | alike).items()) if found)


def _vary_calls(made: _Calls) -> _Calls:
    """A few calls of each dtype, and variations of the first."""
    varied: _Calls = []
    for dtype, group in groupby(made, key=lambda pair: pair[0]):
        first, *others = pick_diverse_calls([call for _, call in group])
        varied += [(dtype, call) for call in (*vary_arguments(first, dtype), *others)]
    return varied


def _adapt_calls(tried: Sequence[_Calls], name: str) -> _Calls:
    """Calls of an overload that no sample calls, adapted from the first one with matching arguments.

    The shape of out= tensors depends on the arguments, so calls with out= are not varied.
    """
    from porter.recording.varied_calls import adapt_call

    for each in tried:
        found = [(dtype, made) for dtype, call in each if (made := adapt_call(call, name))]
        if found:
            return found if found[0][1].out_names() else _vary_calls(found)
    return []


def find_opinfos(base: str, through: Sequence[str]) -> list[Any]:
    from porter.verdict.suite.made_opinfos import list_opinfos

    return list_opinfos((base,), through, ())


def _recording(name: str, made: _Calls) -> Recording:
    """Records elementwise if every graph allows it, else with all operations."""
    plain, whole = _read_both_ways(made)
    readings = plain if plain.observed and len(plain.left) <= len(whole.left) else whole
    tensors, scalars = _parameters(made[0][1])
    cases, taken = build_cases(readings.observed)
    unknown = sum(1 for case in cases for _ in find_unknown_numbers(case.expr))
    notes = (f"{unknown} numbers (`?`) match no known function of the arguments",) if unknown else ()
    calls = zip(readings.observed, taken, strict=True)
    seen = {repr((each.dtype, sorted(each.arguments.items()))): (each, case) for each, case in calls}
    return Recording(
        name,
        Graph(tensors, scalars, cases),
        tuple(CallSummary(each.dtype, each.arguments, case) for each, case in seen.values()),
        tuple(dict.fromkeys(readings.left)),
        notes,
        plain.loop_form,
    )


def _read_both_ways(made: _Calls) -> tuple[_Readings, _Readings]:
    """Reads every call elementwise, and with all operations."""
    plain, whole = _Readings(), _Readings()
    begun: set[DType] = set()
    for dtype, call in made:
        is_first = dtype not in begun
        begun.add(dtype)
        try:
            ran = run_call(call)
        except Exception as error:  # the fork's code or torch may raise anything
            if is_first:  # a varied call may have invalid arguments
                for each in (plain, whole):
                    code = _CODE.match(str(error))  # of the stand-in
                    first = (str(error).splitlines() or [type(error).__name__])[0]
                    each.left.append(NotRecorded(dtype, code[1] if code else "refused", _CODE.sub("", first)[:200]))
            continue
        plain.loop_form = plain.loop_form or describe_loop_form(ran.runs, call.tensors())
        for each, elementwise in ((plain, True), (whole, False)):
            try:
                with raising_porter_errors():
                    found = _read_expression(ran, elementwise)
                each.observed.append(RecordedCall(dtype, read_arguments(call), found))
            except PorterError as error:
                each.left.append(NotRecorded(dtype, error.code, error.what))
    return plain, whole


def _read_expression(ran: RecordedRun, elementwise: bool) -> Expr:
    """The expression that a call computes. Raises PTR135."""
    inputs = ran.call.tensors()
    if ran.others:
        before = {tensor.data_ptr(): ran.given[name] for name, tensor in inputs.items()}
        check_flow(ran.runs, before, ran.results)
    return build_expression(ran.runs, inputs, ran.given, ran.results, elementwise)


def _parameters(call: OpCall) -> tuple[tuple[str, ...], tuple[str, ...]]:
    tensors = tuple(call.tensors())
    named = {name.split("[")[0] for name in tensors}
    others = (a.name for a in call.overload._schema.arguments if a.name not in named)
    return tensors, tuple(others)
