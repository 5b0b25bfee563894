"""Finds the conditions under which an implementation takes each branch, from the arguments of its calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import TypeVar

from porter.aten.condition import Condition
from porter.mpsgraph.conditions import Arguments, Undecided, holds

T = TypeVar("T")
_MAX_CONDITIONS = 4
UNKNOWN_CONDITION = Condition("unknown condition", True)


def find_distinguishing_conditions(group: Sequence[Arguments], others: Sequence[Arguments]) -> tuple[Condition, ...]:
    """Finds a small set of conditions that all hold for every call of a group, and for no other call.

    Prefers options, flags and strings to numbers. UNKNOWN_CONDITION if there is no such set.
    """
    matching = [c for text in _list_questions([*group, *others]) if (c := _find_common_answer(text, group))]
    plain = [c for c in matching if not _compares_number(c.text)]
    return _find_fewest(plain, others) or _find_fewest(matching, others) or (UNKNOWN_CONDITION,)


def _find_fewest(matching: Sequence[Condition], others: Sequence[Arguments]) -> tuple[Condition, ...]:
    """Conditions that together exclude all other calls; empty if there are none."""
    chosen: list[Condition] = []
    left = list(others)
    while left and len(chosen) < _MAX_CONDITIONS:
        best = max(matching, key=lambda c: sum(not _is_true(c, call) for call in left), default=None)
        if best is None or all(_is_true(best, call) for call in left):
            return ()
        chosen.append(best)
        left = [call for call in left if _is_true(best, call)]
    return () if left else _simplify(chosen, matching, others)


def _simplify(
    chosen: Sequence[Condition], matching: Sequence[Condition], others: Sequence[Arguments]
) -> tuple[Condition, ...]:
    """Replaces each condition with the first on the same argument that still works: one with 0, if possible."""
    simplified = list(chosen)
    for at, condition in enumerate(chosen):
        beside = [call for call in others if all(_is_true(c, call) for i, c in enumerate(simplified) if i != at)]
        alike = (c for c in matching if c.text.split(" ")[0] == condition.text.split(" ")[0])
        simplified[at] = next(c for c in alike if not any(_is_true(c, call) for call in beside))
    return tuple(simplified)


def _compares_number(text: str) -> bool:
    return " < " in text or " > " in text or (" == " in text and '"' not in text)


def split_calls(items: Sequence[T], calls: Sequence[Arguments]) -> Iterator[tuple[list[T], list[T]]]:
    """Yields splits of the items (one per call) in two: by an optional argument, a flag or a string."""
    for text in _list_questions(calls):
        if _compares_number(text):
            continue
        try:
            answers = [holds(text, call) for call in calls]
        except Undecided:
            continue
        sides = tuple([each for each, a in zip(items, answers, strict=True) if a is side] for side in (True, False))
        if all(sides):
            yield sides[0], sides[1]


def _is_true(condition: Condition, arguments: Arguments) -> bool:
    try:
        return holds(condition.text, arguments) is condition.holds
    except Undecided:
        return False


def _find_common_answer(text: str, group: Sequence[Arguments]) -> Condition | None:
    try:
        found = {holds(text, call) for call in group}
    except Undecided:
        return None
    return Condition(text, found.pop()) if len(found) == 1 else None


def _list_questions(calls: Sequence[Arguments]) -> Iterator[str]:
    """The conditions to try: on arguments first, then on tensor properties; of arguments, on flags first.

    Which tensors are given may follow from a flag.
    """
    flags = {name for call in calls for name, value in call.items() if isinstance(value, bool)}
    flags -= {name for call in calls for name, value in call.items() if value is None}
    names = sorted({name for call in calls for name in call}, key=lambda name: ("." in name, name not in flags, name))
    for name in names:
        values = list(dict.fromkeys(call.get(name) for call in calls))
        if len(values) < 2:
            continue
        if None in values and "." not in name:  # a tensor property is never optional
            yield f"{name}.has_value()"
        given = [value for value in values if value is not None]
        if any(isinstance(value, bool) for value in given):
            yield name
        yield from (f'{name} == "{value}"' for value in given if isinstance(value, str))
        numbers = sorted({v for v in given if isinstance(v, (int, float)) and not isinstance(v, bool)}, key=abs)
        yield from (f"{name} == {value}" for value in numbers if value in numbers[:6] or not isfinite(value))
        yield from (f"{name} {sign} {v}" for v in numbers[:3] for sign in "<>")
