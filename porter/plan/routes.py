"""Chooses how each row of an operator is ported, for `migrate`, `status` and `explain` alike.

A row that can join a stub does; of the others, one with a function of its own for MPS is ported from runs of it. Only
these tell whether they do, once they are recorded. All else is decided here, and runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial

from porter.aten.implementations import Language, find_language, find_registration
from porter.aten.lacking import find_library_call
from porter.aten.operator import Blocked, Migration, Operator, ServedFunction, find_migrations, is_shared
from porter.aten.stubs import Stub, StubCall
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.metal.families import find_family
from porter.metal.host import NewDialect
from porter.metal.kernel import FIRST_CANDIDATES, CandidateChoice, Kernel, KernelSpec
from porter.metal.kernel_spec import no_recording, read_spec
from porter.plan.dialect import require_dialect, require_library
from porter.plan.plan import Draft
from porter.plan.recorded.port import also_without_stub
from porter.plan.recorded.result_functions import makes_results
from porter.plan.recorded.target import check_runs_graph


class Route(Enum):
    """How a row is ported, or that it is not."""

    SHARED = "shared row"  # MPS joins the entry of CPU or CUDA, or serves it already; the kernel is a stub's
    OWN = "own row"  # the function for MPS stays, and launches the kernel of a stub that another device's calls
    RUNS = "own row from runs"  # the function for MPS stays, with kernels that are written from runs of it
    LIBRARY = "library call"  # a library computes it, and stays
    NONE = "none"

    @property
    def is_port(self) -> bool:
        """Whether porter writes kernels for a row."""
        return self in (Route.SHARED, Route.OWN, Route.RUNS)


@dataclass(frozen=True)
class RowRoute:
    """A row and its route. `error` says why no stub serves it, and, of one that is not ported, why nothing else does.

    It is None if the row has the kernel of a stub. With `has_stub` it could join one, if the kernel can be written.
    """

    served: ServedFunction
    route: Route
    error: PorterError | None = None
    has_stub: bool = False

    def __post_init__(self) -> None:
        if (self.error is None) is not (self.route in (Route.SHARED, Route.OWN)):
            raise ValueError("only a row with the kernel of a stub has nothing to say about stubs")


@dataclass(frozen=True)
class Routes:
    """The kernels of an operator's stubs, and the route of each row that moves, keeps its function, or stays."""

    ported: PortDraft
    rows: tuple[RowRoute, ...]

    def list_blocked(self, *routes: Route) -> tuple[Blocked, ...]:
        """The rows with one of some routes that no stub serves, in order, each with its error."""
        return tuple(Blocked(row.served, row.error) for row in self.rows if row.error and row.route in routes)


def read_routes(checkout: Checkout, operator: Operator) -> tuple[RowRoute, ...]:
    """The routes of an operator's rows that build graphs, and of others that move with them, as far as no run tells.

    None for an operator of which no row builds a graph: there is nothing to migrate.
    """
    if not any(served.builds_graph for served in operator.served):
        return ()
    found = find_migrations(checkout, operator)
    try:
        require_library(checkout)
    except PorterError as error:
        return tuple(RowRoute(each.served, Route.NONE, error) for each in found)
    read = partial(read_spec, recorded=no_recording)
    rows = choose_routes(checkout, operator, found, read, FIRST_CANDIDATES).rows
    named = {row.served.function.name for row in rows}
    rest = (each for each in operator.served if each.builds_graph and each.function.name not in named)
    return (*rows, *(RowRoute(each, Route.OWN) for each in rest))  # these only call a function that stays


def choose_routes(
    checkout: Checkout, operator: Operator, found: Sequence[Migration | Blocked], read: ReadSpec,
    choice: CandidateChoice,
) -> Routes:  # fmt: skip
    """Writes the kernels of the stubs that rows join, and chooses a route for the rows that have none."""
    ported = port_functions(checkout, operator, found, read, choice)
    with_stub = frozenset(each.served for each in found if isinstance(each, Migration))
    rows = tuple(_choose_route(checkout, outcome, outcome.served in with_stub) for outcome in ported.outcomes)
    rows = tuple(_without_graph(checkout, rows))
    if not ported.kernels and not any(row.route is Route.RUNS for row in rows):
        rows = tuple(_left_alone(checkout, rows))
    return Routes(ported, rows)


def _choose_route(checkout: Checkout, outcome: Migration | Blocked, has_stub: bool) -> RowRoute:
    """The route of a row; of one that has a stub, whose kernel cannot be written, that is why no library is to stay."""
    served = outcome.served
    if isinstance(outcome, Migration):
        return RowRoute(served, Route.OWN if outcome.body else Route.SHARED, has_stub=True)
    stays = not served.builds_graph or is_shared(served.entry)
    if stays or outcome.error.of_checkout or isinstance(outcome.error, NewDialect):
        return RowRoute(served, Route.NONE, outcome.error, has_stub)
    if library := find_library_call(checkout, served):
        return (
            RowRoute(served, Route.NONE, outcome.error, True) if has_stub else RowRoute(served, Route.LIBRARY, library)
        )
    return RowRoute(served, Route.RUNS, outcome.error, has_stub)


def _without_graph(checkout: Checkout, rows: Sequence[RowRoute]) -> Iterator[RowRoute]:
    """The rows, where none of an operator has a function that is seen to run a graph: no launch can take its place.

    Of a row that has a stub, the reason stays why its kernel cannot be written: that is what a person can change.
    """
    runs = (row for row in rows if row.route is Route.RUNS)
    refusals = {row.served: _find_refusal(checkout, row) for row in runs}
    for row in rows:
        error = refusals.get(row.served)
        yield replace(row, route=Route.NONE, error=error) if error and all(refusals.values()) else row


def _find_refusal(checkout: Checkout, row: RowRoute) -> PorterError | None:
    """Why a row's own code cannot be ported, or why its stub cannot; None if its code may."""
    assert row.error is not None
    try:
        check_runs_graph(checkout, row.served)
    except PorterError as error:
        if makes_results(checkout, row.served):
            return None
        return row.error if row.has_stub else also_without_stub(error, row.error)
    return None


def _left_alone(checkout: Checkout, rows: Iterable[RowRoute]) -> Iterator[RowRoute]:
    """The rows of an operator without any kernel of its own: those that only call what stays, stay with it."""
    rows = tuple(rows)
    staying = next((row for row in rows if row.error), None)
    for row in rows:
        if staying is None or row.error:
            yield row
        elif library := find_library_call(checkout, row.served):
            yield replace(row, route=Route.LIBRARY, error=library)
        else:
            yield replace(row, route=Route.NONE, error=staying.error)


# Reads what the kernel of a stub has to compute, from a function that migrates and its call of the stub.
ReadSpec = Callable[[Checkout, Operator, Migration, StubCall], KernelSpec]


@dataclass(frozen=True)
class PortDraft:
    """The draft with the kernels written so far, and the outcome for each function: migrated or blocked."""

    draft: Draft
    outcomes: tuple[Migration | Blocked, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    stubs: frozenset[Stub] = frozenset()

    @property
    def migrated(self) -> tuple[Migration, ...]:
        return tuple(each for each in self.outcomes if isinstance(each, Migration))

    @property
    def blocked(self) -> tuple[Blocked, ...]:
        return tuple(each for each in self.outcomes if isinstance(each, Blocked))


def port_functions(
    checkout: Checkout,
    operator: Operator,
    found: Sequence[Migration | Blocked],
    read: ReadSpec,
    choice: CandidateChoice,
) -> PortDraft:
    """Ports each stub once. A function with a stub that cannot be ported is blocked and changes nothing."""
    ported = PortDraft(Draft(checkout))
    for migration in sorted(found, key=_most_tensors):
        outcome, before = migration, ported
        if isinstance(migration, Migration):
            try:
                for call in migration.stubs:
                    ported = _port_stub(ported, operator, migration, call, read, choice)
            except PorterError as error:
                outcome = Blocked(migration.served, error)
                ported = before
        ported = replace(ported, outcomes=(*ported.outcomes, outcome))
    in_order = sorted(ported.outcomes, key=lambda each: operator.functions.index(each.served.function))
    return replace(ported, outcomes=tuple(in_order))


def _port_stub(
    ported: PortDraft,
    operator: Operator,
    migration: Migration,
    call: StubCall,
    read: ReadSpec,
    choice: CandidateChoice,
) -> PortDraft:
    """Adds the kernel of a stub to the draft, unless it was already added or the stub is already native."""
    fork = ported.draft.fork
    if call.stub in ported.stubs or _is_native(fork, call.stub):
        return ported
    family = find_family(migration.served.function, call)
    if family.FUNCTORS:
        require_dialect(fork)
    kernels = family.write(fork, read(fork, operator, migration, call), choice)
    draft = ported.draft
    for step in (step for kernel in kernels for step in kernel.steps):
        draft = draft.apply(step(draft.fork))
    return replace(ported, draft=draft, kernels=(*ported.kernels, *kernels), stubs=ported.stubs | {call.stub})


def _is_native(fork: Checkout, stub: Stub) -> bool:
    registered = find_registration(fork, stub.name)
    return registered is not None and find_language(fork, registered) is Language.METAL


def _most_tensors(migration: Migration | Blocked) -> int:
    """A sort key that puts functions with more tensors first: they say more about the kernel than scalar overloads."""
    return -sum(argument.is_tensor for argument in migration.served.function.arguments)
