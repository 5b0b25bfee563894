"""`porter status`: every operator with an MPS dispatch, what it is written in, and whether porter can port it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from porter.aten.implementations import Language
from porter.aten.native_functions import NativeFunctions
from porter.aten.operator import Blocked, Operator, ServedFunction, find_migrations, find_served, is_shared
from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.layout import NATIVE_FUNCTIONS
from porter.metal.kernel_spec import check_portable
from porter.plan.planner import require_dialect
from porter.recording.readings import which
from porter.report.status import OperatorStatus, Reason, RowStatus, State

_NATIVE = Reason("PTR013", "already native")
_FORWARDS = Reason("PTR013", "its MPS code only calls other operators: nothing to migrate")
_SHARES = Reason("PTR032", "no MPS kernel was found behind the code it shares with the CPU")
_STATES = {
    Language.MPSGRAPH: State.MPSGRAPH,
    Language.MIXED: State.MIXED,
    Language.OTHER: State.OTHER,
    Language.UNKNOWN: State.UNKNOWN,
}


@dataclass(frozen=True)
class Filters:
    """Which operators are wanted: those whose name matches one of the patterns, if any, and who can be ported or have
    something that holds them back. With both, either will do.
    """

    patterns: tuple[str, ...] = ()
    portable: bool = False
    blocked: bool = False

    def accept(self, operator: OperatorStatus) -> bool:
        """Whether a state that is asked for is the operator's; any will do where none is."""
        if not self.portable and not self.blocked:
            return True
        return (self.portable and operator.portable) or (self.blocked and operator.blocked)


EVERY = Filters()


def operators(checkout: Checkout, filters: Filters = EVERY) -> tuple[OperatorStatus, ...]:
    """The operators that MPS serves, in the file's order, without their readings.

    Raises PTR012 for a pattern that no operator matches.
    """
    return tuple(_classified(checkout, filters))


def status(checkout: Checkout, filters: Filters = EVERY) -> tuple[OperatorStatus, ...]:
    """The operators with the readings of their rows on MPSGraph. Raises as `operators` does."""
    found = _classified(checkout, filters)
    old = [row for rows in found.values() for row in rows if row.builds_graph]
    readings = dict(zip((row.function.name for row in old), which(checkout, old), strict=True))
    return tuple(replace(each, rows=_with_readings(each.rows, readings)) for each in found)


def portable(checkout: Checkout) -> tuple[str, ...]:
    """The base names of the operators on MPSGraph that nothing known holds back, in the file's order."""
    return tuple(each.name for each in operators(checkout, Filters(portable=True)))


def _classified(checkout: Checkout, filters: Filters) -> dict[OperatorStatus, list[ServedFunction]]:
    functions = NativeFunctions.read(checkout)
    bases = _matching(functions, filters.patterns)
    served: dict[str, list[ServedFunction]] = {}
    for entry in functions.entries:
        if entry.base in bases and (row := find_served(checkout, entry)):
            served.setdefault(entry.base, []).append(row)
    older = _older(checkout)
    found = {
        OperatorStatus(base, tuple(_row(checkout, functions, row, older) for row in rows)): rows
        for base, rows in served.items()
    }
    return {operator: rows for operator, rows in found.items() if filters.accept(operator)}


def _with_readings(rows: Sequence[RowStatus], readings: dict[str, str]) -> tuple[RowStatus, ...]:
    return tuple(replace(row, reading=readings.get(row.name, "")) for row in rows)


def _matching(functions: NativeFunctions, patterns: Sequence[str]) -> frozenset[str]:
    bases = {entry.base for entry in functions.entries}
    for pattern in patterns:
        if not any(fnmatchcase(base, pattern) for base in bases):
            near = functions.near(pattern)
            hint = f"Did you mean {', '.join(near)}?" if near else "Use shell patterns, such as 'log*'."
            raise PorterError("PTR012", f"no operator matches {pattern}", Place(NATIVE_FUNCTIONS), hint)
    return frozenset(b for b in bases if not patterns or any(fnmatchcase(b, pattern) for pattern in patterns))


def _older(checkout: Checkout) -> Reason | None:
    """Why nothing of a fork that is older than the dialect can be ported; what it lacks `migrate` says."""
    try:
        require_dialect(checkout)
    except PorterError as error:
        return Reason(error.code, "this fork predates the functor dialect")
    return None


def _row(checkout: Checkout, functions: NativeFunctions, row: ServedFunction, older: Reason | None) -> RowStatus:
    state = _state(row)
    if state.builds_graph:
        reason = _held_back(checkout, functions, row) or older
    elif row.error:
        reason = Reason(row.error.code, row.error.what)
    else:
        reason = _other(row) if state is State.OTHER else _NATIVE
    return RowStatus(row.function.name, row.entry.kernel, state, reason)


def _state(row: ServedFunction) -> State:
    if row.language is Language.METAL:
        return State.STUB if is_shared(row.entry) else State.METAL
    return _STATES[row.language]


def _other(row: ServedFunction) -> Reason:
    """Why a row with neither a graph nor a kernel is left alone: no kernel is behind it, or it forwards to others'."""
    return _FORWARDS if row.implementation is not None else _SHARES


def _held_back(checkout: Checkout, functions: NativeFunctions, row: ServedFunction) -> Reason | None:
    operator = Operator(row.function.name, functions.family(row.function.name), (row,))
    [outcome] = find_migrations(checkout, operator)
    try:
        if isinstance(outcome, Blocked):
            raise outcome.error
        check_portable(checkout, operator, outcome)
    except PorterError as error:
        return Reason(error.code, error.what)
    return None
