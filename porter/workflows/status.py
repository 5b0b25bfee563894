"""`porter status`: the operators that MPS has, what each is written in and if it can be ported; and those it lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from porter.aten.declarations import MPS_KEY
from porter.aten.implementations import Language
from porter.aten.lacking import Lack, NeedsFamily, find_lacks
from porter.aten.native_functions import NativeFunctions
from porter.aten.operator import Operator, ServedFunction, is_shared
from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.layout import NATIVE_FUNCTIONS
from porter.plan.addition import find_obstacle
from porter.plan.dialect import OldDialect
from porter.plan.routes import Route, RowRoute, read_routes
from porter.report.status import MissingOperator, OperatorStatus, Reason, RowStatus, State

IS_NATIVE = "PTR013"
_MARKS = "*?["  # what makes a name a pattern
_NATIVE = Reason(IS_NATIVE, "already native")
_FORWARDS = Reason(IS_NATIVE, "its MPS code only calls other operators: nothing to migrate")
_SHARES = Reason("PTR032", "no MPS kernel was found behind the code it shares with the CPU")


@dataclass(frozen=True)
class Filters:
    """Selects operators that match a pattern, if any, and are portable or blocked; both flags select either."""

    patterns: tuple[str, ...] = ()
    portable: bool = False
    blocked: bool = False

    def accept(self, operator: OperatorStatus) -> bool:
        """Whether the operator has a requested state; true if none is requested."""
        if not self.portable and not self.blocked:
            return True
        return (self.portable and operator.portable) or (self.blocked and operator.blocked)


EVERY = Filters()


def operators(checkout: Checkout, filters: Filters = EVERY) -> tuple[OperatorStatus, ...]:
    """The operators with an MPS implementation, in file order, without readings.

    Raises PTR012 if a pattern matches no operator.
    """
    return tuple(_classify(checkout, filters))


def status(checkout: Checkout, filters: Filters = EVERY) -> tuple[OperatorStatus, ...]:
    """The operators by name, with the readings of their rows on MPSGraph. Raises as `operators` does."""
    from porter.recording.readings import list_readings  # what it imports is for verdicts

    found = _classify(checkout, filters)
    old = [row for rows in found.values() for row in rows if row.builds_graph]
    readings = dict(zip((row.function.name for row in old), list_readings(checkout, old), strict=True))
    return tuple(replace(one, rows=_with_readings(one.rows, readings)) for one in sorted(found, key=_sort_key))


def missing(checkout: Checkout, patterns: Sequence[str] = ()) -> tuple[MissingOperator, ...]:
    """The operators that MPS lacks, and what keeps porter from adding them. Raises as `operators` does."""
    bases = _match_bases(NativeFunctions.read(checkout), patterns)
    lacking = (_describe_missing(checkout, lack) for lack in find_lacks(checkout) if lack.name in bases)
    return tuple(sorted(lacking, key=_sort_key))


def _sort_key(operator: OperatorStatus | MissingOperator) -> tuple[str, str]:
    """By the name as a person looks it up: `_softmax` is under s."""
    return operator.name.lstrip("_"), operator.name


def name_operators(checkout: Checkout, asked: Sequence[str], served: bool = True) -> tuple[str, ...]:
    """The operators that names and shell patterns mean, each once; a name stands for itself.

    A pattern means operators with a row on MPSGraph that porter would port, or all with an implementation for MPS if
    `served`. Raises PTR012 for a pattern that means none.
    """
    named = dict[str, None]()
    for pattern in asked:
        if not any(mark in pattern for mark in _MARKS):
            named[pattern] = None
            continue
        matching = [operator.name for operator in operators(checkout, Filters((pattern,), portable=not served))]
        if not matching:
            what = f"no operator that matches {pattern} has " + ("an MPS implementation" if served else "a port")
            hint = f"`porter status '{pattern}'` says what there is instead."
            raise PorterError("PTR012", what, Place(NATIVE_FUNCTIONS), hint)
        named |= dict.fromkeys(matching)
    return tuple(named)


def _describe_missing(checkout: Checkout, lack: Lack) -> MissingOperator:
    error = find_obstacle(checkout, Operator.read(checkout, lack.name))
    if error is None:
        return MissingOperator(lack.name, lack.family.value, None)
    cause = error.cause if isinstance(error, NeedsFamily) else error.what
    return MissingOperator(lack.name, lack.family.value, Reason(error.code, error.what), cause)


def portable(checkout: Checkout) -> tuple[str, ...]:
    """The base names, in file order, of operators with a row on MPSGraph that a stub serves.

    Of those too for which no kernel can be written, as where the fork has no file for it: `migrate --all` says why. Not
    of a fork that predates the dialect, where that is so for all.
    """
    found = ((base, row) for base, _, routes in _read_routes(checkout) for row in routes if row.served.builds_graph)
    return tuple(dict.fromkeys(base for base, row in found if _is_served(row)))


def _is_served(row: RowRoute) -> bool:
    is_old = isinstance(row.error, OldDialect)
    return row.route in (Route.SHARED, Route.OWN) or (row.has_stub and not is_old)


def recordable(checkout: Checkout) -> tuple[str, ...]:
    """The base names, in file order, of operators with a row on MPSGraph that is ported from runs of it."""
    rows = ((each.name, row) for each in operators(checkout, Filters(portable=True)) for row in each.rows)
    return tuple(dict.fromkeys(name for name, row in rows if row.state.builds_graph and row.route is Route.RUNS))


def _classify(checkout: Checkout, filters: Filters) -> dict[OperatorStatus, list[ServedFunction]]:
    described = {}
    for base, operator, found in _read_routes(checkout, filters.patterns):
        routes = {row.served.function.name: row for row in found}
        rows = tuple(_describe_row(served, routes.get(served.function.name)) for served in operator.served)
        described[OperatorStatus(base, rows)] = list(operator.served)
    return {operator: rows for operator, rows in described.items() if filters.accept(operator)}


def _read_routes(
    checkout: Checkout, patterns: Sequence[str] = ()
) -> Iterator[tuple[str, Operator, tuple[RowRoute, ...]]]:
    """The operators with a row for MPS, by base name in file order, and the routes of their rows."""
    functions = NativeFunctions.read(checkout)
    bases = _match_bases(functions, patterns)
    for base in dict.fromkeys(each.base for each in functions.all if each.base in bases and each.entry_for(MPS_KEY)):
        operator = Operator.read(checkout, base)
        yield base, operator, read_routes(checkout, operator)


def _with_readings(rows: Sequence[RowStatus], readings: dict[str, str]) -> tuple[RowStatus, ...]:
    return tuple(replace(row, reading=readings.get(row.name, "")) for row in rows)


def _match_bases(functions: NativeFunctions, patterns: Sequence[str]) -> frozenset[str]:
    bases = {entry.base for entry in functions.all}
    for pattern in patterns:
        if not any(fnmatchcase(base, pattern) for base in bases):
            near = functions.suggest(pattern)
            hint = f"Did you mean {', '.join(near)}?" if near else "Use shell patterns, such as 'log*'."
            raise PorterError("PTR012", f"no operator matches {pattern}", Place(NATIVE_FUNCTIONS), hint)
    return frozenset(b for b in bases if not patterns or any(fnmatchcase(b, pattern) for pattern in patterns))


def _describe_row(served: ServedFunction, row: RowRoute | None) -> RowStatus:
    """A row with its route; one that builds no graph and does not move says what there is instead."""
    state = name_state(served)
    route = row.route if row else Route.NONE
    reason = _describe_error(row.error) if row and row.error else None
    if not state.builds_graph and not route.is_port:
        reason = _describe_error(served.error) if served.error else _explain_other(served, state)
    return RowStatus(served.function.name, served.entry.kernel, state, route, reason)


def _describe_error(error: PorterError) -> Reason:
    """A code and why; of the age of a fork without what it lacks, which `migrate` lists."""
    is_old = isinstance(error, OldDialect)
    return Reason(error.code, "this fork predates the functor dialect" if is_old else error.what)


def name_state(row: ServedFunction) -> State:
    """What the code of a row is written in."""
    if row.language is Language.METAL:
        return State.STUB if is_shared(row.entry) else State.METAL
    return State[row.language.name]


def _explain_other(served: ServedFunction, state: State) -> Reason:
    """Why a row without a graph is left alone: it has kernels, forwards to other rows, or has none behind it."""
    if state is not State.OTHER:
        return _NATIVE
    return _FORWARDS if served.implementation is not None else _SHARES
