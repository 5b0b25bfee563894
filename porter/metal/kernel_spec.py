"""From a row that moves and the stub it leads to, to what the stub's kernel has to compute."""

from __future__ import annotations

from collections.abc import Callable

from porter.aten.implementations import Language
from porter.aten.meta import TypeRule, read_type_rules
from porter.aten.operator import Migration, Operator, ServedFunction
from porter.aten.stubs import StubCall
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.cpu.kernels import read_cpu_kernel
from porter.metal.families import find_family
from porter.metal.kernel import KernelSpec
from porter.mpsgraph.graph import Graph
from porter.mpsgraph.source_reader.evaluator import read_graph

# The graph that runs of a row's old implementation show, asked for where its source is not read.
RecordedGraph = Callable[[ServedFunction], Graph | None]


def no_recording(_served: ServedFunction) -> Graph | None:
    """Nothing is recorded."""
    return None


def read_spec(
    checkout: Checkout, operator: Operator, migration: Migration, call: StubCall, recorded: RecordedGraph
) -> KernelSpec:
    """What the kernel of a stub has to compute. Raises what reading the meta function and the CPU kernel raises."""
    rule = find_type_rule(checkout, operator, migration, call)
    cpu = read_cpu_kernel(checkout, call.stub.name, lambda dtype: rule.result(dtype) or dtype)
    graph, notes = _read_old_graph(checkout, migration.served, rule, recorded)
    return KernelSpec(migration.served.function, call, rule, cpu, graph, notes)


def find_type_rule(checkout: Checkout, operator: Operator, migration: Migration, call: StubCall) -> TypeRule:
    """The row's type rule for the arguments under which it calls this stub. Raises PTR075 and PTR076."""
    rules = read_type_rules(checkout, operator.functional_name(migration.served.function), migration.target.kernel)
    return next((rule for rule in rules if rule.when == call.when), rules[0])


def check_portable(checkout: Checkout, operator: Operator, migration: Migration) -> None:
    """Raises what is certain to stop the port of a row, without reading any kernel: PTR018, PTR075 or PTR076."""
    for call in migration.stubs:
        find_type_rule(checkout, operator, migration, call)
        find_family(migration.served.function, call)


def _read_old_graph(
    checkout: Checkout, served: ServedFunction, rule: TypeRule, recorded: RecordedGraph
) -> tuple[Graph | None, tuple[str, ...]]:
    """The old graph, as far as it is read, and a note where its source is not: then its runs may have it."""
    if served.implementation is None or served.language is not Language.MPSGRAPH:
        return None, ()
    try:
        return read_graph(
            checkout, served.implementation, served.function, lambda dtype: rule.result(dtype) or dtype
        ), ()
    except PorterError as error:
        graph = recorded(served)
        how = "the graph is that of its runs" if graph else "its runs are not recorded"
        return graph, (f"the source was not read as a graph, {how}: {error.place}: {error.code} {error.what}",)
