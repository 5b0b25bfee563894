"""Groups the calls of an implementation into cases: what each computes, and under which condition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from porter.core.dtypes import DType
from porter.mpsgraph.graph import Case, Expr, UnknownValue, Value, leaves, nodes, replace_leaves, skeleton
from porter.recording.branches import find_distinguishing_conditions, split_calls
from porter.recording.complexes import merge_parts
from porter.recording.recovery import recover_expression

_MAX_DEPTH = 3  # splits of a group of calls


@dataclass(frozen=True)
class RecordedCall:
    """One recorded call: its arguments by name, and the expression it computed, with its own numbers."""

    dtype: DType
    arguments: Mapping[str, Value]
    expr: Expr


def build_cases(observed: Sequence[RecordedCall]) -> tuple[tuple[Case, ...], tuple[int, ...]]:
    """The cases of calls (ordered by dtype), and the index of each call's case."""
    cases: list[Case] = []
    taken: dict[int, int] = {}
    for dtype, found in groupby(observed, key=lambda each: each.dtype):
        groups = [part for group in _group_by_operations(list(found)) for part in _split_group(group, _MAX_DEPTH)]
        for group in groups:
            others = [each.arguments for other in groups if other is not group for each in other]
            when = find_distinguishing_conditions([each.arguments for each in group], others) if others else ()
            taken |= {id(each): len(cases) for each in group}
            cases.append(Case(dtype, when, _merge_calls(group)))
    return tuple(cases), tuple(taken[id(each)] for each in observed)


def find_unknown_numbers(expr: Expr) -> Iterator[UnknownValue]:
    """The unknown numbers of an expression."""
    return (node for node in nodes(expr) if isinstance(node, UnknownValue))


def _group_by_operations(observed: Sequence[RecordedCall]) -> list[list[RecordedCall]]:
    """Groups calls by the operations they ran, the largest group first."""
    groups: dict[str, list[RecordedCall]] = {}
    for each in observed:
        groups.setdefault(skeleton(each.expr), []).append(each)
    return sorted(groups.values(), key=len, reverse=True)


def _split_group(group: list[RecordedCall], depth: int) -> list[list[RecordedCall]]:
    """Splits a group by an option or a flag if that leaves fewer unknown numbers."""
    missing = _count_unknown(group)
    if not missing or not depth:
        return [group]
    for halves in split_calls(group, [each.arguments for each in group]):
        if sum(map(_count_unknown, halves)) < 2 * missing and max(map(_count_unknown, halves)) < missing:
            return [part for half in halves for part in _split_group(half, depth - 1)]
    return [group]


def _count_unknown(group: Sequence[RecordedCall]) -> int:
    return sum(1 for _ in find_unknown_numbers(_merge_calls(group)))


def _merge_calls(group: Sequence[RecordedCall]) -> Expr:
    """The expression the calls share, with numbers as functions of the arguments."""
    columns = zip(*(leaves(each.expr) for each in group), strict=True)
    arguments = [each.arguments for each in group]
    return merge_parts(replace_leaves(group[0].expr, (recover_expression(column, arguments) for column in columns)))
