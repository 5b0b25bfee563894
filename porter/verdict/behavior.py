"""The old path against the new one: what each does with every sample, and what changes for users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from porter.verdict.refusals import Refusal, refusal_in


class Status(Enum):
    """What a sample did beside the CPU."""

    AGREES = "agrees"
    DIFFERS = "differs"
    REFUSED = "refused"
    UNKNOWN = "unknown"  # the stand-in for MPSGraph cannot run it
    COMPUTED_ALONE = "computed alone"  # where the CPU refuses
    REFUSED_TOO = "refused too"


_BEYOND = {Status.COMPUTED_ALONE, Status.REFUSED_TOO}
_DIFFERENCES = (
    (True, "NaN where the CPU has none, or none where it has one"),
    (False, "values differed from the CPU's"),
)
_FINER = 1.0  # ULP: a smaller difference is nothing that a user sees


@dataclass(frozen=True)
class SampleResult:
    """One sample in one type (torch name): as on the CPU, or how not. `nan` where one alone has a NaN; `ulp` is the
    largest error against float64.
    """

    dtype: str
    sample: str
    status: Status
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
class Behavior:
    """Both paths in numbers, and the behavior that changes, a line each."""

    counts: tuple[PathCount, ...]
    changes: tuple[str, ...]


def status_of_error(told: str, alone: bool = True) -> Status:
    """The status of a sample that an error with this text ended, alone or as on the CPU."""
    if refusal_in(told) is Refusal.NOT_MODELED:
        return Status.UNKNOWN
    return Status.REFUSED if alone else Status.REFUSED_TOO


def compare_paths(old: Sequence[SampleResult], new: Sequence[SampleResult]) -> Behavior:
    """What the same samples show of both paths."""
    before = {(each.dtype, each.sample): each for each in old}
    pairs = [(before[each.dtype, each.sample], each) for each in new if (each.dtype, each.sample) in before]
    counts, lines = [], dict[str, list[str]]()
    for dtype in dict.fromkeys(each.dtype for _, each in pairs):
        every = [(a, b) for a, b in pairs if b.dtype == dtype]
        beside = [(a, b) for a, b in every if not _BEYOND & {a.status, b.status}]
        known = [(a, b) for a, b in beside if Status.UNKNOWN not in (a.status, b.status)]
        beyond = [pair for pair in every if pair not in beside]
        for line in (*_unknown(beside), *_changes(known), *_changes_beyond(beyond)):
            lines.setdefault(line, []).append(dtype)
        if known:
            right = [sum(path.status == Status.AGREES for path in side) for side in zip(*known, strict=True)]
            counts.append(PathCount(dtype, len(known), *right))
    return Behavior(tuple(counts), tuple(f"{', '.join(dtypes)}: {line}" for line, dtypes in lines.items()))


def _unknown(pairs: Sequence[tuple[SampleResult, SampleResult]]) -> Iterator[str]:
    found = [each for pair in pairs for each in pair if each.status == Status.UNKNOWN]
    if found:
        yield f"not compared{_some(found, pairs)} ({found[0].told})"


def _changes(pairs: Sequence[tuple[SampleResult, SampleResult]]) -> Iterator[str]:
    """The changes of one type."""
    gained = [a for a, b in pairs if a.status == Status.REFUSED and b.status != Status.REFUSED]
    lost = [b for a, b in pairs if b.status == Status.REFUSED and a.status != Status.REFUSED]
    if gained:
        yield f"was refused{_some(gained, pairs)} ({gained[0].told}), is computed now"
    if lost:
        yield f"was computed, is refused now{_some(lost, pairs)} ({lost[0].told})"
    for of_nan, what in _DIFFERENCES:
        found = [a for a, b in pairs if (a.status, a.nan, b.status) == (Status.DIFFERS, of_nan, Status.AGREES)]
        if found:
            yield f"{what}{_some(found, pairs)}: {found[0].told}; as the CPU now"
    worse = [b for a, b in pairs if a.status == Status.AGREES and b.status == Status.DIFFERS]
    if worse:
        yield f"values were the CPU's and differ now{_some(worse, pairs)}: {worse[0].told}"
    yield from _precision(pairs)


def _changes_beyond(pairs: Sequence[tuple[SampleResult, SampleResult]]) -> Iterator[str]:
    """The changes of one type where the CPU refuses."""
    lost = [b for a, b in pairs if (a.status, b.status) == (Status.COMPUTED_ALONE, Status.REFUSED_TOO)]
    gained = [a for a, b in pairs if (a.status, b.status) == (Status.REFUSED_TOO, Status.COMPUTED_ALONE)]
    if lost:
        yield f"was computed where the CPU refuses, is refused now{_some(lost, pairs)}"
    if gained:
        yield f"was refused as on the CPU{_some(gained, pairs)}, is computed now"


def _precision(pairs: Sequence[tuple[SampleResult, SampleResult]]) -> Iterator[str]:
    measured = [(a.ulp, b.ulp) for a, b in pairs if a.ulp is not None and b.ulp is not None]
    if measured:
        before, now = (max(side) for side in zip(*measured, strict=True))
        if abs(before - now) > _FINER:
            yield f"at most {before:.1f} ULP before, {now:.1f} now"


def _some(found: Sequence[SampleResult], pairs: Sequence[object]) -> str:
    return "" if len(found) == len(pairs) else f" in {len(found)} of {len(pairs)} samples"
