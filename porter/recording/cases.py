"""The cases of an implementation, told from its calls: which computed alike, what of, and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from porter.core.dtypes import DType
from porter.mpsgraph.graph import Case, Expr, UnknownValue, Value, nodes
from porter.mpsgraph.leaves import leaves, replace_leaves, skeleton
from porter.recording.branches import divided, told_apart
from porter.recording.complexes import whole
from porter.recording.recovery import recovered

_DEEPEST = 3  # divisions of calls that share their operations


@dataclass(frozen=True)
class Observed:
    """One call that was recorded: its arguments by name, and what it computed, with its own numbers."""

    dtype: DType
    arguments: Mapping[str, Value]
    expr: Expr


def cases_of(observed: Sequence[Observed]) -> tuple[tuple[Case, ...], tuple[int, ...]]:
    """The cases of calls that come ordered by element type, and for every call the case that it took."""
    cases: list[Case] = []
    taken: dict[int, int] = {}
    for dtype, found in groupby(observed, key=lambda each: each.dtype):
        groups = [part for group in _alike(list(found)) for part in _parts(group, _DEEPEST)]
        for group in groups:
            others = [each.arguments for other in groups if other is not group for each in other]
            when = told_apart([each.arguments for each in group], others) if others else ()
            taken |= {id(each): len(cases) for each in group}
            cases.append(Case(dtype, when, _together(group)))
    return tuple(cases), tuple(taken[id(each)] for each in observed)


def untold(expr: Expr) -> Iterator[UnknownValue]:
    """The numbers of an expression that nothing tells."""
    return (node for node in nodes(expr) if isinstance(node, UnknownValue))


def _alike(observed: Sequence[Observed]) -> list[list[Observed]]:
    """The calls by the operations that they ran, those of most calls first."""
    groups: dict[str, list[Observed]] = {}
    for each in observed:
        groups.setdefault(skeleton(each.expr), []).append(each)
    return sorted(groups.values(), key=len, reverse=True)


def _parts(group: list[Observed], deep: int) -> list[list[Observed]]:
    """The calls divided by an option or a flag where that tells more of their numbers."""
    missing = _untold_in(group)
    if not missing or not deep:
        return [group]
    for halves in divided(group, [each.arguments for each in group]):
        if sum(map(_untold_in, halves)) < 2 * missing and max(map(_untold_in, halves)) < missing:
            return [part for half in halves for part in _parts(half, deep - 1)]
    return [group]


def _untold_in(group: Sequence[Observed]) -> int:
    return sum(1 for _ in untold(_together(group)))


def _together(group: Sequence[Observed]) -> Expr:
    """What the calls compute, their numbers as functions of the arguments."""
    columns = zip(*(leaves(each.expr) for each in group), strict=True)
    arguments = [each.arguments for each in group]
    return whole(replace_leaves(group[0].expr, (recovered(column, arguments) for column in columns)))
