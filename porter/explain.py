"""`porter explain`: each stage of one operator, and how each was found."""

from __future__ import annotations

from collections.abc import Iterator

from porter.aten.implementations import Written
from porter.aten.operator import Held, Operator, Row, moves
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.cpu.kernels import cpu_kernel
from porter.mpsgraph.printing import graph_lines
from porter.plan.planner import plan_operator
from porter.recording.readings import NEWEST, recorded_lines, source_graph


def explanation(checkout: Checkout, op: str, record: bool = True, macos: str = NEWEST) -> Iterator[str]:
    """The lines of the explanation; a stage that fails says why, and the next one follows.

    With `record` the old code is run too, under a macOS release, and both readings are compared.
    """
    operator = Operator.read(checkout, op)
    yield "entries"
    served = {row.entry.name: row for row in operator.rows}
    for function in operator.functions:
        yield f"  {function.name:<28} {function.place}  {_served(served.get(function.name))}"
    for row in operator.rows:
        if row.implementation and row.written is Written.MPSGRAPH:
            yield from _implementation(checkout, row, record, macos)
    yield from dict.fromkeys(_stubs(checkout, operator))
    try:
        plan = plan_operator(checkout, op)
        for functor in plan.functors:
            yield f"functor, from {functor.origin}"
            yield from (f"  {line}" for line in functor.source.splitlines())
        for left in plan.unported:
            yield f"unported\n  {left.place}: {left.code} {left.reason}"
    except PorterError as error:
        yield f"functor\n  {error}"


def _stubs(checkout: Checkout, operator: Operator) -> Iterator[str]:
    """The stub that each row on MPSGraph can move to, with the CPU's kernel behind it, or why there is none."""
    for move in moves(checkout, operator):
        if isinstance(move, Held):
            yield f"stub\n  {move.error}"
            continue
        for call in move.stubs:
            yield f"stub\n  {call.stub.name} ({call.stub.place}), called by {move.target.kernel} ({call.place})"
            yield from _cpu(checkout, call.stub.name)


def _served(row: Row | None) -> str:
    if row is None:
        return "no MPS line of its own"
    return f"{', '.join(row.line.keys)}: {row.line.kernel} ({row.written.value})"


def _implementation(checkout: Checkout, row: Row, record: bool, macos: str) -> Iterator[str]:
    assert row.implementation is not None
    yield f"implementation\n  {row.implementation.symbol} at {row.implementation.place}, {row.implementation.shape}"
    source = None
    try:
        source = source_graph(checkout, row)
        yield "graph, read from the source"
        yield from (f"  {line}" for line in graph_lines(source))
    except PorterError as error:
        yield f"graph\n  {error}"
    if record:
        yield from recorded_lines(checkout, row, source, macos)


def _cpu(checkout: Checkout, stub: str) -> Iterator[str]:
    try:
        cpu = cpu_kernel(checkout, stub)
    except PorterError as error:
        yield f"reference\n  {error}"
        return
    yield f"reference\n  {cpu.function} at {cpu.place}, for {', '.join(map(str, cpu.dtypes))}"
