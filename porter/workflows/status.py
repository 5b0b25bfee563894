"""`porter status`: the operators that MPS has, what each is written in and if it can be ported; and those it lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from porter.aten.implementations import Language
from porter.aten.lacking import Lack, find_lacks
from porter.aten.native_functions import NativeFunctions
from porter.aten.operator import Blocked, Operator, ServedFunction, find_migrations, find_served, is_shared
from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.layout import NATIVE_FUNCTIONS
from porter.metal.families import find_family
from porter.metal.kernel_spec import check_portable
from porter.plan.addition import find_obstacle
from porter.plan.planner import require_dialect
from porter.report.missing import MissingOperator
from porter.report.status import OperatorStatus, Reason, RowStatus, State

IS_NATIVE = "PTR013"
_NATIVE = Reason(IS_NATIVE, "already native")
_FORWARDS = Reason(IS_NATIVE, "its MPS code only calls other operators: nothing to migrate")
_SHARES = Reason("PTR032", "no MPS kernel was found behind the code it shares with the CPU")
_STATES = {
    Language.MPSGRAPH: State.MPSGRAPH,
    Language.MIXED: State.MIXED,
    Language.OTHER: State.OTHER,
    Language.UNKNOWN: State.UNKNOWN,
}


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
    """The operators with the readings of their rows on MPSGraph. Raises as `operators` does."""
    from porter.recording.readings import list_readings  # what it imports is for verdicts

    found = _classify(checkout, filters)
    old = [row for rows in found.values() for row in rows if row.builds_graph]
    readings = dict(zip((row.function.name for row in old), list_readings(checkout, old), strict=True))
    return tuple(replace(each, rows=_with_readings(each.rows, readings)) for each in found)


def missing(checkout: Checkout, patterns: Sequence[str] = ()) -> tuple[MissingOperator, ...]:
    """The operators that MPS lacks, and what keeps porter from adding them. Raises as `operators` does."""
    bases = _match_bases(NativeFunctions.read(checkout), patterns)
    return tuple(_describe_missing(checkout, each) for each in find_lacks(checkout) if each.name in bases)


def _describe_missing(checkout: Checkout, lack: Lack) -> MissingOperator:
    error = find_obstacle(checkout, Operator.read(checkout, lack.name))
    return MissingOperator(lack.name, lack.family.value, Reason(error.code, error.what) if error else None)


def portable(checkout: Checkout) -> tuple[str, ...]:
    """The base names of the MPSGraph operators that can be ported, in file order."""
    return tuple(each.name for each in operators(checkout, Filters(portable=True)))


def _classify(checkout: Checkout, filters: Filters) -> dict[OperatorStatus, list[ServedFunction]]:
    functions = NativeFunctions.read(checkout)
    bases = _match_bases(functions, filters.patterns)
    served: dict[str, list[ServedFunction]] = {}
    for entry in functions.all:
        if entry.base in bases and (row := find_served(checkout, entry)):
            served.setdefault(entry.base, []).append(row)
    dialect = _find_dialect_reason(checkout)
    found = {
        OperatorStatus(base, tuple(_row(checkout, functions, row, dialect) for row in rows)): rows
        for base, rows in served.items()
    }
    return {operator: rows for operator, rows in found.items() if filters.accept(operator)}


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


def _find_dialect_reason(checkout: Checkout) -> Reason | None:
    """The reason if the fork predates the functor dialect; `migrate` lists what is missing."""
    try:
        require_dialect(checkout)
    except PorterError as error:
        return Reason(error.code, "this fork predates the functor dialect")
    return None


def _row(checkout: Checkout, functions: NativeFunctions, row: ServedFunction, dialect: Reason | None) -> RowStatus:
    state = _state(row)
    if state.builds_graph:
        reason = _find_blocker(checkout, functions, row, dialect)
    elif row.error:
        reason = Reason(row.error.code, row.error.what)
    else:
        reason = _explain_other(row) if state is State.OTHER else _NATIVE
    return RowStatus(row.function.name, row.entry.kernel, state, reason)


def _state(row: ServedFunction) -> State:
    if row.language is Language.METAL:
        return State.STUB if is_shared(row.entry) else State.METAL
    return _STATES[row.language]


def _explain_other(row: ServedFunction) -> Reason:
    """Why a row with neither a graph nor a kernel is left alone: no kernel is behind it, or it forwards to others'."""
    return _FORWARDS if row.implementation is not None else _SHARES


def _find_blocker(
    checkout: Checkout, functions: NativeFunctions, row: ServedFunction, dialect: Reason | None
) -> Reason | None:
    """Why a row has no port by its stubs. That there is no `dialect` comes last."""
    operator = Operator(row.function.name, functions.find_overloads(row.function.name), (row,))
    [outcome] = find_migrations(checkout, operator)
    try:
        if isinstance(outcome, Blocked):
            raise outcome.error
        check_portable(checkout, operator, outcome)
    except PorterError as error:
        return Reason(error.code, error.what)
    return dialect if any(find_family(row.function, call).FUNCTORS for call in outcome.stubs) else None
