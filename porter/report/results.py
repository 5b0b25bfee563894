"""What came of the operators of a run, as a value that is written to a file and merged with that of other shares."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from porter.core import codec
from porter.core.errors import Place, PorterError
from porter.verdict.result import Verdict

T = TypeVar("T")
_WRITTEN = re.compile(r"([1-9]\d{0,5})/([1-9]\d{0,5})", re.ASCII)
VERSION = 2
LARGEST = 64 * 1024 * 1024  # bytes of a file: results of every operator of a fork have two million
PASS, FAIL = "PASS", "FAIL"
NO_VERDICT, NOT_PLANNED, LEFT_OUT = "no verdict", "not planned", "left out"
# In the order in which they are listed.
OUTCOMES = (PASS, FAIL, LEFT_OUT, NO_VERDICT, NOT_PLANNED)


@dataclass(frozen=True)
class UnportedRow:
    """A row that a plan leaves as it is: a code and why."""

    row: str
    code: str
    reason: str


@dataclass(frozen=True)
class OperatorResult:
    """What came of one operator: one of `OUTCOMES`, with a code and a reason unless it passed.

    `family` is the file with its old code, without folder and suffix, `rows` are those that move, `lines` are those of
    its diff that are added or removed.
    """

    op: str
    family: str
    outcome: str
    code: str = ""
    reason: str = ""
    rows: tuple[str, ...] = ()
    unported: tuple[UnportedRow, ...] = ()
    lines: int = 0
    verdict: Verdict | None = None

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise ValueError(f"{self.outcome} is no outcome")


@dataclass(frozen=True)
class Provenance:
    """What made results: the version of porter, its commit if it runs from a repository, and the version of torch.

    A commit ends in `-dirty` if files of it were changed. What is not known is empty.
    """

    porter: str
    commit: str
    torch: str

    def __str__(self) -> str:
        commit = f" at commit {self.commit}" if self.commit else ""
        return f"porter {self.porter}{commit}, torch {self.torch or 'not installed'}"


@dataclass(frozen=True)
class Results:
    """The results of a run or a share of it (`2/8`, empty for all), and a digest of the fork that it ran on.

    `date` is the day of the run, or of the last of its shares.
    """

    version: int
    made_by: Provenance
    fork: str
    digest: str
    shard: str
    operators: tuple[OperatorResult, ...]
    date: str = ""


@dataclass(frozen=True)
class Shard:
    """The share `number`, from 1, of `count`."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def select(self, every: Sequence[T]) -> tuple[T, ...]:
        """Every `count`-th of them, so that neighbors, which take about as long, go to different shares."""
        return tuple(every[self.number - 1 :: self.count])


def parse_shard(text: str) -> Shard:
    """Reads `2/8`. Raises PTR326."""
    match = _WRITTEN.fullmatch(text)
    if match is None or int(match[1]) > int(match[2]):
        raise PorterError("PTR326", f"{text} is no share of a run", hint="Write 2/8 for the second of eight.")
    return Shard(int(match[1]), int(match[2]))


def write_json(results: Results) -> str:
    """The text of a results file, as docs/json.md says."""
    return codec.encode(results, Results) + "\n"


def read_json(text: str, file: str) -> Results:
    """Reads a results file. Raises PTR327 for any other text.

    That the numbers are those of a run, or that one was made at all, no file can show.
    """
    try:
        results: Results = codec.decode(text, Results)
    except ValueError as error:
        raise PorterError("PTR327", "this is no file of results", Place(file), "Write one with --results.") from error
    if results.version != VERSION:
        what = f"these results have version {results.version}, not {VERSION}"
        raise PorterError("PTR327", what, Place(file), "Write them again with this porter.")
    return results


def merge(parts: Sequence[Results]) -> Results:
    """All results of the shares of a run.

    Raises PTR328 for different forks, porters or torches, or two results of one operator.
    """
    first = parts[0]
    seen: dict[str, str] = {}
    for part in parts:
        if part.digest != first.digest:
            what = f"results of different forks: {first.fork} and {part.fork}, or two states of one"
            raise PorterError("PTR328", what, hint="Merge the shares of one run.")
        if part.made_by != first.made_by:
            what = f"results of {first.made_by}, and of {part.made_by}"
            raise PorterError("PTR328", what, hint="Merge the shares of one run.")
        for each in part.operators:
            if each.op in seen:
                what = f"{each.op} has two results, in the shares {seen[each.op]} and {part.shard or 'of all'}"
                raise PorterError("PTR328", what, hint="Merge each share once.")
            seen[each.op] = part.shard or "of all"
    operators = sorted((each for part in parts for each in part.operators), key=lambda each: each.op)
    return Results(
        VERSION, first.made_by, first.fork, first.digest, "", tuple(operators), max(part.date for part in parts)
    )
