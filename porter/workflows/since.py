"""`porter status --since`: what became of the rows on MPS since a commit, or since another checkout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from porter.aten.declarations import MPS_KEY
from porter.aten.native_functions import NativeFunction, NativeFunctions
from porter.aten.operator import find_served
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.progress import Progress, ignore
from porter.report.status import Fate, RowFate, Since, State
from porter.review.change import Change
from porter.review.operators import find_touched_rows
from porter.workflows.status import name_state
from porter.workflows.verify import read_named

_NATIVE = (State.STUB, State.METAL)


def find_since(checkout: Checkout, named: str, patterns: Sequence[str] = (), progress: Progress = ignore) -> Since:
    """What became of each row whose code on MPS is another than in a commit or a folder.

    Raises PTR063 for neither, PTR012 for a pattern that no operator matches, and as `Checkout.read` does.
    """
    progress("reading the change")
    baseline = read_named(checkout, named)
    change = Change.between(baseline.fork, checkout, baseline.texts)
    for pattern in patterns:
        if not any(fnmatchcase(row.base, pattern) for rows in (change.rows, change.earlier_rows) for row in rows.all):
            hint = "Use shell patterns, such as 'log*'."
            raise PorterError("PTR012", f"no operator matches {pattern}", hint=hint)
    progress("finding rows")
    fates = (fate for fate in _list_fates(change) if not patterns or _matches(fate, patterns))
    return Since(baseline.origin, tuple(sorted(fates, key=lambda fate: (fate.name.lstrip("_"), fate.name))))


def _matches(fate: RowFate, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(fate.base, pattern) for pattern in patterns)


def _list_fates(change: Change) -> Iterator[RowFate]:
    """The rows that are written in something else than before, wherever that is said, or whose code is another."""
    if not change.files:
        return
    before, now = _list_rows(change.earlier_rows), _list_rows(change.rows)
    touched = find_touched_rows(change)
    for name, row in {**before, **now}.items():
        earlier = _find_state(change.before, before.get(name))
        current = _find_state(change.after, now.get(name))
        if earlier is not current or name in touched:
            touches = tuple(touch.value for touch in touched.get(name, ()))
            yield RowFate(name, row.base, _decide(earlier, current), earlier, current, touches)


def _list_rows(functions: NativeFunctions) -> dict[str, NativeFunction]:
    return {row.name: row for row in functions.all if row.entry_for(MPS_KEY)}


def _find_state(checkout: Checkout, row: NativeFunction | None) -> State | None:
    served = find_served(checkout, row) if row else None
    return name_state(served) if served else None


def _decide(before: State | None, now: State | None) -> Fate:
    if before is None:
        return Fate.APPEARED
    if now is None:
        return Fate.GONE
    if before.builds_graph and now in _NATIVE:
        return Fate.NATIVE
    return Fate.BACK if now.builds_graph and not before.builds_graph else Fate.CHANGED
