"""From a row that moves and the stub it leads to, to what the stub's kernel has to compute."""

from __future__ import annotations

from collections.abc import Callable

from porter.aten.meta import TypeRule, type_rules
from porter.aten.operator import Migration, Operator, ServedFunction
from porter.aten.stubs import StubCall
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.cpu.kernels import cpu_kernel
from porter.metal.families import family_for
from porter.metal.kernel import KernelSpec
from porter.mpsgraph.graph import Graph
from porter.mpsgraph.source_reader.evaluator import read_graph

# The graph that runs of a row's old implementation show, asked for where its source is not read.
RecordedGraph = Callable[[ServedFunction], Graph | None]


def no_recording(_row: ServedFunction) -> Graph | None:
    """Nothing is recorded."""
    return None


def read_spec(
    checkout: Checkout, operator: Operator, move: Migration, call: StubCall, recorded: RecordedGraph
) -> KernelSpec:
    """What the kernel of a stub has to compute. Raises what reading the meta function and the CPU kernel raises."""
    rule = find_type_rule(checkout, operator, move, call)
    cpu = cpu_kernel(checkout, call.stub.name, lambda dtype: rule.result(dtype) or dtype)
    graph, notes = _read_old_graph(checkout, move.served, rule, recorded)
    return KernelSpec(move.served.function, call, rule, cpu, graph, notes)


def find_type_rule(checkout: Checkout, operator: Operator, move: Migration, call: StubCall) -> TypeRule:
    """The row's type rule for the arguments under which it calls this stub. Raises PTR075 and PTR076."""
    rules = type_rules(checkout, operator.functional_name(move.served.function), move.target.kernel)
    return next((rule for rule in rules if rule.when == call.when), rules[0])


def check_portable(checkout: Checkout, operator: Operator, move: Migration) -> None:
    """Raises what is certain to stop the port of a row, without reading any kernel: PTR018, PTR075 or PTR076."""
    for call in move.stubs:
        find_type_rule(checkout, operator, move, call)
        family_for(move.served.function, call)


def _read_old_graph(
    checkout: Checkout, row: ServedFunction, rule: TypeRule, recorded: RecordedGraph
) -> tuple[Graph | None, tuple[str, ...]]:
    """The old graph, as far as it is read, and a note where its source is not: then its runs may have it."""
    if row.implementation is None or not row.builds_graph:
        return None, ()
    try:
        return read_graph(checkout, row.implementation, row.function, lambda dtype: rule.result(dtype) or dtype), ()
    except PorterError as error:
        graph = recorded(row)
        how = "the graph is that of its runs" if graph else "its runs are not recorded"
        return graph, (f"the source was not read as a graph, {how}: {error.place}: {error.code} {error.what}",)
