"""`porter explain`: each stage of the port of one operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import partial

from porter.aten.lacking import find_missing
from porter.aten.operator import Blocked, Operator, ServedFunction, find_additions, find_migrations
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.files import read_regular
from porter.core.installed import find_installed
from porter.core.progress import Progress, ignore
from porter.cpu.kernels import read_cpu_kernel
from porter.mpsgraph.graph import Graph, graph_lines
from porter.plan.addition import plan_addition
from porter.plan.plan import PlannedFunctor
from porter.plan.planner import plan_operator
from porter.plan.recorded.port import FROM_RECORDING
from porter.plan.routes import Route, RowRoute, read_routes
from porter.recording.readings import NEWEST, describe_recordings, read_source_graph
from porter.report.status import Stage
from porter.workflows.migrate import PortedOperator, take_decision
from porter.workflows.stacking import read_old_code


def explain(
    checkout: Checkout,
    op: str,
    record: bool = True,
    macos: str = NEWEST,
    cost: bool = False,
    progress: Progress = ignore,
) -> Iterator[Stage]:
    """Yields the stages of an operator. A stage that fails holds its error, and the next one follows.

    With `record`, also runs the old code as on a macOS release and compares both readings, and the kernels are those
    that `migrate` writes; without, a row that is ported from runs has kernels only where they are kept. With `cost`,
    counts what the fused kernels read and write. Raises PTR012 if the operator does not exist.
    """
    operator = Operator.read(checkout, op)
    rows = {row.function.name: row for row in operator.served}
    yield Stage("entries", tuple(f"{f.name:<28} {f.place}  {_served(rows.get(f.name))}" for f in operator.functions))
    for row in operator.served:
        if row.error:
            yield Stage("implementation", (str(row.error),))
        elif row.implementation and row.builds_graph:
            yield from _implementation(checkout, row, record, macos, cost, progress)
    yield from dict.fromkeys(_stubs(checkout, operator))
    for each in find_missing(checkout, operator):
        yield Stage("missing on MPS", (f"{each.name} needs a kernel of the {each.family.value} family",))
    if routes := read_routes(checkout, operator):
        yield Stage("port", tuple(_describe_routes(routes)))
    try:
        ported = _plan_port(checkout, op, record, progress) if operator.served else None
        plan, doubt = (ported.plan, ported.doubt) if ported else (plan_addition(checkout, op), "")
        for functor in plan.functors:
            if functor.schedule:
                yield Stage(f"schedule of {functor.name}", tuple(functor.schedule.describe()))
            yield Stage(_title_kernel(functor, doubt), tuple(functor.source.splitlines()))
        yield from (Stage("unported", (f"{u.place}: {u.code} {u.reason}",)) for u in plan.unported)
    except PorterError as error:
        yield Stage("no kernel", (str(error),))


def read_error_page(code: str) -> str:
    """The page of an error code, in Markdown. Raises PTR009 for a code that no page is about."""
    pages = {path.stem: path for path in find_installed("docs/errors").values()}
    if code not in pages:
        near = get_close_matches(code, pages)
        hint = f"Did you mean {', '.join(sorted(near))}?" if near else "Codes have three digits, as in PTR012."
        raise PorterError("PTR009", f"there is no error code {code}", hint=hint)
    return read_regular(pages[code]).decode()


def _describe_routes(routes: Sequence[RowRoute]) -> Iterator[str]:
    """How each row is ported, or why not; of one that is ported from runs, why no stub serves it."""
    for row in routes:
        said = [] if row.route is Route.NONE else [row.route.value]
        if row.error:
            said.append("no stub serves it: " * (row.route is Route.RUNS) + f"{row.error.code} {row.error.what}")
        yield f"{row.served.function.name}: {'; '.join(said)}"


def _plan_port(checkout: Checkout, op: str, record: bool, progress: Progress) -> PortedOperator:
    """The port that `migrate` makes: with the runs of old code, those that are kept or new ones if it may record."""
    old = read_old_code(checkout, run=record)
    recorded = old.graphs(progress)
    planner = partial(plan_operator, programs=old.programs(progress))
    return take_decision(checkout, planner(checkout, op, recorded=recorded), planner, recorded)


def _title_kernel(functor: PlannedFunctor, doubt: str) -> str:
    """What a kernel is, and where it comes from; with the doubt about it where a verdict may choose another."""
    shown = f": {doubt}" if doubt and any(origin.count > 1 for origin in functor.origins) else ""
    return f"{'kernel' if FROM_RECORDING in functor.origins else 'functor'}, from {functor.origin}{shown}"


def _stubs(checkout: Checkout, operator: Operator) -> Iterator[Stage]:
    """The stub that each MPSGraph row, or one that MPS lacks, can move to and its CPU kernel, or why there is none."""
    for move in find_migrations(checkout, operator) if operator.served else find_additions(checkout, operator):
        if isinstance(move, Blocked):
            yield Stage("stub", (str(move.error),))
            continue
        for call in move.stubs:
            called = f"called by {move.target.kernel} ({call.place})"
            yield Stage("stub", (f"{call.stub.name} ({call.stub.place}), {called}",))
            yield _cpu(checkout, call.stub.name)


def _served(row: ServedFunction | None) -> str:
    if row is None:
        return "no MPS dispatch of its own"
    return f"{', '.join(row.entry.keys)}: {row.entry.kernel} ({row.language.value})"


def _implementation(
    checkout: Checkout, row: ServedFunction, record: bool, macos: str, cost: bool, progress: Progress
) -> Iterator[Stage]:
    found = row.implementation
    assert found is not None
    yield Stage("implementation", (f"{found.symbol} at {found.place}, {found.shape}",))
    source: Graph | None = None
    try:
        source = read_source_graph(checkout, row)
        yield Stage("graph, read from the source", tuple(graph_lines(source)))
    except PorterError as error:
        yield Stage("graph", (str(error),))
    if record:
        yield from (Stage(*each) for each in describe_recordings(checkout, row, source, macos, cost, progress))


def _cpu(checkout: Checkout, stub: str) -> Stage:
    try:
        cpu = read_cpu_kernel(checkout, stub)
    except PorterError as error:
        return Stage("reference", (str(error),))
    return Stage("reference", (f"{cpu.function} at {cpu.place}, for {', '.join(map(str, cpu.dtypes))}",))
