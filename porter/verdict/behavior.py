"""The old path against the new one: what each does with every sample, and what changes for users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from porter.core.errors import code_in

AGREES, DIFFERS, REFUSED, UNKNOWN = "agrees", "differs", "refused", "unknown"
ALONE, REFUSED_TOO = "computed alone", "refused too"
_BEYOND = {ALONE, REFUSED_TOO}  # where the CPU refuses
_LIMITS = ("PTR120", "PTR123", "PTR13")  # how the codes start that say that the stand-in cannot run a graph
_DIFFERENCES = (
    (True, "NaN where the CPU has none, or none where it has one"),
    (False, "values differed from the CPU's"),
)
_FINER = 1.0  # ULP: a smaller difference is nothing that a user sees


@dataclass(frozen=True)
class Sampled:
    """One sample in one type (torch name): as on the CPU, or how not. `nan` where one alone has a NaN; `ulp` is the
    largest error against float64. What the stand-in for MPSGraph cannot run is `UNKNOWN`.
    """

    dtype: str
    sample: str
    status: str
    told: str = ""
    nan: bool = False
    ulp: float | None = None


@dataclass(frozen=True)
class PathCount:
    """Of the samples of one type, how many the old and the new path compute as the CPU does."""

    dtype: str
    samples: int
    old: int
    new: int


@dataclass(frozen=True)
class Behaviour:
    """Both paths in numbers, and the behaviour that changes, a line each."""

    counts: tuple[PathCount, ...]
    changes: tuple[str, ...]

    @staticmethod
    def from_json(values: dict[str, Any]) -> Behaviour:
        """The inverse of `dataclasses.asdict`."""
        return Behaviour(tuple(PathCount(**count) for count in values["counts"]), tuple(values["changes"]))


def refusal(told: str, alone: bool = True) -> str:
    """The status of a sample that an error with this text ended, alone or as on the CPU."""
    if code_in(told).startswith(_LIMITS):
        return UNKNOWN
    return REFUSED if alone else REFUSED_TOO


def to_json(found: Sequence[Sampled]) -> list[dict[str, Any]]:
    return [asdict(each) for each in found]


def from_json(values: Sequence[dict[str, Any]]) -> list[Sampled]:
    return [Sampled(**each) for each in values]


def compared(old: Sequence[Sampled], new: Sequence[Sampled]) -> Behaviour:
    """What the same samples show of both paths."""
    before = {(each.dtype, each.sample): each for each in old}
    pairs = [(before[each.dtype, each.sample], each) for each in new if (each.dtype, each.sample) in before]
    counts, lines = [], dict[str, list[str]]()
    for dtype in dict.fromkeys(each.dtype for _, each in pairs):
        every = [(a, b) for a, b in pairs if b.dtype == dtype]
        beside = [(a, b) for a, b in every if not _BEYOND & {a.status, b.status}]
        known = [(a, b) for a, b in beside if UNKNOWN not in (a.status, b.status)]
        beyond = [pair for pair in every if pair not in beside]
        for line in (*_unknown(beside), *_changes(known), *_changes_beyond(beyond)):
            lines.setdefault(line, []).append(dtype)
        if known:
            right = [sum(path.status == AGREES for path in side) for side in zip(*known, strict=True)]
            counts.append(PathCount(dtype, len(known), *right))
    return Behaviour(tuple(counts), tuple(f"{', '.join(dtypes)}: {line}" for line, dtypes in lines.items()))


def _unknown(pairs: Sequence[tuple[Sampled, Sampled]]) -> Iterator[str]:
    found = [each for pair in pairs for each in pair if each.status == UNKNOWN]
    if found:
        yield f"not compared{_some(found, pairs)} ({found[0].told})"


def _changes(pairs: Sequence[tuple[Sampled, Sampled]]) -> Iterator[str]:
    """The changes of one type."""
    gained = [a for a, b in pairs if a.status == REFUSED and b.status != REFUSED]
    lost = [b for a, b in pairs if b.status == REFUSED and a.status != REFUSED]
    if gained:
        yield f"was refused{_some(gained, pairs)} ({gained[0].told}), is computed now"
    if lost:
        yield f"was computed, is refused now{_some(lost, pairs)} ({lost[0].told})"
    for of_nan, what in _DIFFERENCES:
        found = [a for a, b in pairs if (a.status, a.nan, b.status) == (DIFFERS, of_nan, AGREES)]
        if found:
            yield f"{what}{_some(found, pairs)}: {found[0].told}; as the CPU now"
    worse = [b for a, b in pairs if a.status == AGREES and b.status == DIFFERS]
    if worse:
        yield f"values were the CPU's and differ now{_some(worse, pairs)}: {worse[0].told}"
    yield from _precision(pairs)


def _changes_beyond(pairs: Sequence[tuple[Sampled, Sampled]]) -> Iterator[str]:
    """The changes of one type where the CPU refuses."""
    lost = [b for a, b in pairs if (a.status, b.status) == (ALONE, REFUSED_TOO)]
    gained = [a for a, b in pairs if (a.status, b.status) == (REFUSED_TOO, ALONE)]
    if lost:
        yield f"was computed where the CPU refuses, is refused now{_some(lost, pairs)}"
    if gained:
        yield f"was refused as on the CPU{_some(gained, pairs)}, is computed now"


def _precision(pairs: Sequence[tuple[Sampled, Sampled]]) -> Iterator[str]:
    measured = [(a.ulp, b.ulp) for a, b in pairs if a.ulp is not None and b.ulp is not None]
    if measured:
        before, now = (max(side) for side in zip(*measured, strict=True))
        if abs(before - now) > _FINER:
            yield f"at most {before:.1f} ULP before, {now:.1f} now"


def _some(found: Sequence[Sampled], pairs: Sequence[object]) -> str:
    return "" if len(found) == len(pairs) else f" in {len(found)} of {len(pairs)} samples"
