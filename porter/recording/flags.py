"""Splits calls by what sets known cases apart, so that each part may join the case of its own flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from porter.mpsgraph.graph import Value

Facts = Mapping[str, Value]


def split_by_flags(group: Sequence[Facts], cases: Sequence[Sequence[Facts]]) -> list[list[int]]:
    """The places of calls that agree in every fact which all calls of a case share, and by which cases differ."""
    flags = _list_flags(cases)
    parts: dict[str, list[int]] = {}
    for i, facts in enumerate(group):
        parts.setdefault(repr([facts.get(name) for name in flags]), []).append(i)
    return list(parts.values())


def order_cases(call: Facts, cases: Sequence[Sequence[Facts]]) -> list[int]:
    """The places of cases, those first that share most of the flags of a call: arguments, then what these are like."""
    flags = _list_flags(cases)
    shared = [[name for name in flags if case[0].get(name) == call.get(name)] for case in cases]
    return sorted(range(len(cases)), key=lambda i: (-sum(map(str.isidentifier, shared[i])), -len(shared[i])))


def _list_flags(cases: Sequence[Sequence[Facts]]) -> list[str]:
    names = dict.fromkeys(name for case in cases for name in case[0])
    return [name for name in names if _is_flag(name, cases)]


def _is_flag(name: str, cases: Sequence[Sequence[Facts]]) -> bool:
    """Whether the calls of each case agree in a fact, and those of all cases do not."""
    firsts = [repr(case[0].get(name)) for case in cases]
    if len(set(firsts)) == 1:
        return False
    return all(repr(facts.get(name)) == first for case, first in zip(cases, firsts, strict=True) for facts in case)
