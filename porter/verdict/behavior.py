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


_CPU_REFUSES = {Status.COMPUTED_ALONE, Status.REFUSED_TOO}
_DIFFERENCES = (
    (True, "NaN where the CPU has none, or none where it has one"),
    (False, "values differed from the CPU's"),
)
_SMALLEST_ULP = 1.0  # ULP: a smaller difference is nothing that a user sees


@dataclass(frozen=True)
class SampleResult:
    """One sample in one type (torch name): as on the CPU, or how not. `nan` where one alone has a NaN; `ulp` is the
    largest error against float64.
    """

    dtype: str
    sample: str
    status: Status
    message: str = ""
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


def status_of_error(message: str, alone: bool = True) -> Status:
    """The status of a sample that an error with this text ended, alone or as on the CPU."""
    if refusal_in(message) is Refusal.NOT_MODELED:
        return Status.UNKNOWN
    return Status.REFUSED if alone else Status.REFUSED_TOO


def compare_paths(old: Sequence[SampleResult], new: Sequence[SampleResult]) -> Behavior:
    """What the same samples show of both paths."""
    before = {(each.dtype, each.sample): each for each in old}
    pairs = [(before[each.dtype, each.sample], each) for each in new if (each.dtype, each.sample) in before]
    counts, lines = [], dict[str, list[str]]()
    for dtype in dict.fromkeys(each.dtype for _, each in pairs):
        every = [(a, b) for a, b in pairs if b.dtype == dtype]
        beside = [(a, b) for a, b in every if not _CPU_REFUSES & {a.status, b.status}]
        known = [(a, b) for a, b in beside if Status.UNKNOWN not in (a.status, b.status)]
        refused = [pair for pair in every if pair not in beside]
        for line in (*_unknown(beside), *_changes(known), *_changes_beyond(refused)):
            lines.setdefault(line, []).append(dtype)
        if known:
            agreeing = [sum(path.status == Status.AGREES for path in side) for side in zip(*known, strict=True)]
            counts.append(PathCount(dtype, len(known), *agreeing))
    return Behavior(tuple(counts), tuple(f"{', '.join(dtypes)}: {line}" for line, dtypes in lines.items()))


def _unknown(pairs: Sequence[tuple[SampleResult, SampleResult]]) -> Iterator[str]:
    found = [each for pair in pairs for each in pair if each.status == Status.UNKNOWN]
    if found:
        yield f"not compared{_describe_share(found, pairs)} ({found[0].message})"


def _changes(pairs: Sequence[tuple[SampleResult, SampleResult]]) -> Iterator[str]:
    """The changes of one type."""
    gained = [a for a, b in pairs if a.status == Status.REFUSED and b.status != Status.REFUSED]
    lost = [b for a, b in pairs if b.status == Status.REFUSED and a.status != Status.REFUSED]
    if gained:
        yield f"was refused{_describe_share(gained, pairs)} ({gained[0].message}), is computed now"
    if lost:
        yield f"was computed, is refused now{_describe_share(lost, pairs)} ({lost[0].message})"
    for of_nan, what in _DIFFERENCES:
        found = [a for a, b in pairs if (a.status, a.nan, b.status) == (Status.DIFFERS, of_nan, Status.AGREES)]
        if found:
            yield f"{what}{_describe_share(found, pairs)}: {found[0].message}; as the CPU now"
    worse = [b for a, b in pairs if a.status == Status.AGREES and b.status == Status.DIFFERS]
    if worse:
        yield f"values were the CPU's and differ now{_describe_share(worse, pairs)}: {worse[0].message}"
    yield from _precision(pairs)


def _changes_beyond(pairs: Sequence[tuple[SampleResult, SampleResult]]) -> Iterator[str]:
    """The changes of one type where the CPU refuses."""
    lost = [b for a, b in pairs if (a.status, b.status) == (Status.COMPUTED_ALONE, Status.REFUSED_TOO)]
    gained = [a for a, b in pairs if (a.status, b.status) == (Status.REFUSED_TOO, Status.COMPUTED_ALONE)]
    if lost:
        yield f"was computed where the CPU refuses, is refused now{_describe_share(lost, pairs)}"
    if gained:
        yield f"was refused as on the CPU{_describe_share(gained, pairs)}, is computed now"


def _precision(pairs: Sequence[tuple[SampleResult, SampleResult]]) -> Iterator[str]:
    measured = [(a.ulp, b.ulp) for a, b in pairs if a.ulp is not None and b.ulp is not None]
    if measured:
        before, now = (max(side) for side in zip(*measured, strict=True))
        if abs(before - now) > _SMALLEST_ULP:
            yield f"at most {before:.1f} ULP before, {now:.1f} now"


def _describe_share(found: Sequence[SampleResult], pairs: Sequence[object]) -> str:
    return "" if len(found) == len(pairs) else f" in {len(found)} of {len(pairs)} samples"
