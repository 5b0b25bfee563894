"""Compares the old path with the new one, sample by sample, and lists what changes for users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from porter.verdict.errors import Refusal, refusal_in


class Status(Enum):
    """The outcome of a sample, compared with the CPU."""

    AGREES = "agrees"
    DIFFERS = "differs"
    REFUSED = "refused"
    UNKNOWN = "unknown"  # the stand-in for MPSGraph cannot run it
    COMPUTED_ALONE = "computed alone"  # the CPU raises an error
    REFUSED_TOO = "refused too"


_CPU_REFUSES = {Status.COMPUTED_ALONE, Status.REFUSED_TOO}
_DIFFERENCES = (
    (True, "NaN results did not match the CPU's"),
    (False, "values did not match the CPU's"),
)
_SMALLEST_ULP = 1.0  # ULP: users do not notice a smaller difference


@dataclass(frozen=True)
class SampleResult:
    """One sample in one dtype (torch name), and how it compares with the CPU.

    `nan` is true if only one of the two results has a NaN; `ulp` is the largest error against float64.
    """

    dtype: str
    sample: str
    status: Status
    message: str = ""
    nan: bool = False
    ulp: float | None = None


@dataclass(frozen=True)
class PathCount:
    """How many samples of one dtype match the CPU on the old path and on the new one, and the old path's error."""

    dtype: str
    samples: int
    old: int
    new: int
    old_ulp: float | None = None


@dataclass(frozen=True)
class Behavior:
    """Counts for both paths, and one line for each change in behavior.

    Among these, `lost` take something away, `gained` add something, and `unknown` are not compared.
    """

    counts: tuple[PathCount, ...]
    changes: tuple[str, ...]
    lost: tuple[str, ...] = ()
    gained: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def status_of_error(message: str, alone: bool = True) -> Status:
    """The status of a sample that raised this error; not `alone` if the CPU raised one too."""
    if refusal_in(message) is Refusal.NOT_MODELED:
        return Status.UNKNOWN
    return Status.REFUSED if alone else Status.REFUSED_TOO


def compare_paths(old: Sequence[SampleResult], new: Sequence[SampleResult]) -> Behavior:
    """Compares both paths on the samples they share."""
    before = {(each.dtype, each.sample): each for each in old}
    pairs = [(before[each.dtype, each.sample], each) for each in new if (each.dtype, each.sample) in before]
    counts, lines = [], dict[str, list[str]]()
    kinds: dict[str, set[str]] = {"lost": set(), "gained": set(), "unknown": set()}
    for dtype in dict.fromkeys(each.dtype for _, each in pairs):
        every = [(a, b) for a, b in pairs if b.dtype == dtype]
        beside = [(a, b) for a, b in every if not _CPU_REFUSES & {a.status, b.status}]
        known = [(a, b) for a, b in beside if Status.UNKNOWN not in (a.status, b.status)]
        refused = [pair for pair in every if pair not in beside]
        unknown, lost = [*_unknown(beside)], [*_losses(known), *_losses_beyond(refused)]
        gained, beyond = [*_gains(known)], [*_gains_beyond(refused)]
        for line in (*unknown, *lost, *gained, *_changes(known), *beyond):
            lines.setdefault(line, []).append(dtype)
        for kind, of_kind in (("lost", lost), ("gained", [*gained, *beyond]), ("unknown", unknown)):
            kinds[kind].update(of_kind)
        if known:
            old_count, new_count = (
                sum(path.status == Status.AGREES for path in side) for side in zip(*known, strict=True)
            )
            errors = [before.ulp for before, _ in known if before.ulp is not None]
            counts.append(PathCount(dtype, len(known), old_count, new_count, max(errors, default=None)))
    written = {line: f"{', '.join(dtypes)}: {line}" for line, dtypes in lines.items()}
    sorted_out = {kind: tuple(text for line, text in written.items() if line in of) for kind, of in kinds.items()}
    return Behavior(tuple(counts), tuple(written.values()), **sorted_out)


def find_lost(old: Sequence[SampleResult], new: Sequence[SampleResult]) -> tuple[SampleResult, ...]:
    """The samples that the new path refuses, though the CPU computes them and the old path agreed with it."""
    agreed = {(each.dtype, each.sample) for each in old if each.status == Status.AGREES}
    return tuple(each for each in new if each.status == Status.REFUSED and (each.dtype, each.sample) in agreed)


def find_worse(old: Sequence[SampleResult], new: Sequence[SampleResult]) -> tuple[SampleResult, ...]:
    """The samples of which the new path computes other values than the CPU, though the old path agreed with it."""
    agreed = {(each.dtype, each.sample) for each in old if each.status == Status.AGREES}
    return tuple(each for each in new if each.status == Status.DIFFERS and (each.dtype, each.sample) in agreed)


Pairs = Sequence[tuple[SampleResult, SampleResult]]  # of one dtype, on the old path and on the new one


def _unknown(pairs: Pairs) -> Iterator[str]:
    unknown = [each for pair in pairs for each in pair if each.status == Status.UNKNOWN]
    return _say("not compared", unknown, pairs, " ({message})")


def _gains(pairs: Pairs) -> Iterator[str]:
    """What the port adds."""
    gained = [a for a, b in pairs if a.status == Status.REFUSED and b.status != Status.REFUSED]
    return _say("now supported", gained, pairs, " (before: {message})")


def _changes(pairs: Pairs) -> Iterator[str]:
    """The changes in values."""
    for of_nan, what in _DIFFERENCES:
        better = [a for a, b in pairs if (a.status, a.nan, b.status) == (Status.DIFFERS, of_nan, Status.AGREES)]
        yield from _say(what, better, pairs, " and now do: {message}")
    worse = [b for a, b in pairs if a.status == Status.AGREES and b.status == Status.DIFFERS]
    yield from _say("values matched the CPU's and no longer do", worse, pairs, ": {message}")
    measured = [(a.ulp, b.ulp) for a, b in pairs if a.ulp is not None and b.ulp is not None]
    if measured:
        before, now = (max(side) for side in zip(*measured, strict=True))
        if abs(before - now) > _SMALLEST_ULP:
            yield f"max error {before:.1f} ULP before, {now:.1f} now"


def _losses(pairs: Pairs) -> Iterator[str]:
    """What the port takes away."""
    lost = [b for a, b in pairs if b.status == Status.REFUSED and a.status != Status.REFUSED]
    return _say("no longer supported", lost, pairs, " ({message})")


def _losses_beyond(pairs: Pairs) -> Iterator[str]:
    """What the port takes away where the CPU raises an error."""
    lost = [b for a, b in pairs if (a.status, b.status) == (Status.COMPUTED_ALONE, Status.REFUSED_TOO)]
    return _say("no longer supported", lost, pairs, ", nor is it on the CPU")


def _gains_beyond(pairs: Pairs) -> Iterator[str]:
    """What the port adds where the CPU raises an error."""
    gained = [a for a, b in pairs if (a.status, b.status) == (Status.REFUSED_TOO, Status.COMPUTED_ALONE)]
    return _say("now supported", gained, pairs, ", unlike on the CPU")


def _say(what: str, samples: Sequence[SampleResult], pairs: Pairs, end: str) -> Iterator[str]:
    """A line about some samples, with the share that they are of all and the message of the first; none about none."""
    if samples:
        share = "" if len(samples) == len(pairs) else f" in {len(samples)} of {len(pairs)} samples"
        yield f"{what}{share}{end.format(message=samples[0].message)}"
