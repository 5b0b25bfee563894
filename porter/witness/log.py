"""Logs of replayed launches: read from a file, and set beside each other by kernel and element type."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import NoneType
from typing import Any, TypeAlias, get_args, get_type_hints

from porter.core.errors import Place, PorterError
from porter.core.files import read_named

FORMAT = 1
RAN = "ran"
OUTCOMES = (RAN, "not compiled", "refused", "failed", "skipped")
LARGEST = 1 << 26  # bytes of a log
Key: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True)
class Machine:
    """What a log was written on. Its `backend` is `mps` on a Mac, `host` beside the stand-in, or `cuda`."""

    backend: str
    gpu: str
    system: str
    virtual: bool
    torch: str

    def __str__(self) -> str:
        return f"{self.backend} ({self.gpu}, {self.system}, torch {self.torch})"


@dataclass(frozen=True)
class Launch:
    """What came of one launch of a kernel of a `subject`, an operator or a script, and why where it did not run.

    Of the `elements` that it or the host's launch wrote, `equal` have the host's bits, and `different` lie farther
    apart than two roundings of the type; `first` is one of these. `max_ulp` is the largest distance of those that agree
    in units in the last place. `seconds` is the median of some launches, each waited for.
    """

    subject: str
    kernel: str
    dtype: str
    outcome: str
    reason: str = ""
    elements: int = 0
    equal: int = 0
    different: int = 0
    max_ulp: int | None = None
    first: str = ""
    seconds: float | None = None


@dataclass(frozen=True)
class Log:
    """A log. One that is not `whole` ends early: the launch after its last one ended the process."""

    name: str
    machine: Machine
    launches: tuple[Launch, ...]
    whole: bool

    @property
    def counts(self) -> dict[str, int]:
        """How many launches came to each outcome."""
        counted = Counter(launch.outcome for launch in self.launches)
        return {outcome: counted[outcome] for outcome in OUTCOMES}


@dataclass(frozen=True)
class Cell:
    """What a log has of one kernel and element type. `outcomes` counts its launches, `reason` is the first's."""

    outcomes: Mapping[str, int]
    elements: int
    equal: int
    different: int
    max_ulp: int | None
    seconds: float | None
    first: str
    reason: str

    @property
    def ran(self) -> int:
        """How many launches ran."""
        return self.outcomes.get(RAN, 0)


@dataclass(frozen=True)
class Row:
    """One kernel and element type of a subject: a cell for each log, None where a log does not have it."""

    subject: str
    kernel: str
    dtype: str
    cells: tuple[Cell | None, ...]

    @property
    def is_one_sided(self) -> bool:
        """Whether the kernel ran on some machine and not on another."""
        return len({bool(cell and cell.ran) for cell in self.cells}) > 1


@dataclass(frozen=True)
class Comparison:
    """Logs side by side."""

    logs: tuple[Log, ...]
    rows: tuple[Row, ...]

    @property
    def agrees(self) -> bool:
        """Whether every log is whole, and no launch failed, or left other values than the host's."""
        cells = [cell for row in self.rows for cell in row.cells if cell]
        return all(log.whole for log in self.logs) and not any(
            cell.different or cell.outcomes.get("failed") for cell in cells
        )


def read_log(path: Path) -> Log:
    """The log in a file. Raises PTR195 for what is no log of this format."""
    lines = read_named(path, "PTR195", most=LARGEST).splitlines()
    records = [_parse(path, number, line) for number, line in enumerate(lines, 1)]
    if not records or records[0].get("record") != "machine" or records[0].get("format") != FORMAT:
        raise _refuse(path, 1, f"the first line names no machine, or another format than {FORMAT}")
    machine = _build(path, 1, Machine, records[0])
    launches = [(number, record) for number, record in enumerate(records, 1) if record.get("record") == "launch"]
    numbered = {number: _build(path, number, Launch, record) for number, record in launches}
    unknown = next((number for number, launch in numbered.items() if launch.outcome not in OUTCOMES), None)
    if unknown is not None:
        raise _refuse(path, unknown, f"an outcome is none of {', '.join(OUTCOMES)}")
    ended = records[-1].get("record") == "end"
    if ended and sum(_counts(path, len(records), records[-1])) != len(numbered):
        raise _refuse(path, len(records), "the counts at the end are not those of the lines before")
    return Log(path.name, machine, tuple(numbered.values()), ended)


def compare(logs: Sequence[Log]) -> Comparison:
    """Sets logs beside each other, in the order of their kernels in the first log that has them."""
    columns = [dict(_list_cells(log)) for log in logs]
    keys = dict.fromkeys(key for column in columns for key in column)
    return Comparison(tuple(logs), tuple(Row(*key, tuple(column.get(key) for column in columns)) for key in keys))


def _list_cells(log: Log) -> Iterator[tuple[Key, Cell]]:
    groups: dict[Key, list[Launch]] = {}
    for launch in log.launches:
        groups.setdefault((launch.subject, launch.kernel, launch.dtype), []).append(launch)
    for key, group in groups.items():
        yield (
            key,
            Cell(
                outcomes=Counter(launch.outcome for launch in group),
                elements=sum(launch.elements for launch in group),
                equal=sum(launch.equal for launch in group),
                different=sum(launch.different for launch in group),
                max_ulp=max((launch.max_ulp for launch in group if launch.max_ulp is not None), default=None),
                seconds=min((launch.seconds for launch in group if launch.seconds is not None), default=None),
                first=next((launch.first for launch in group if launch.first), ""),
                reason=next((launch.reason for launch in group if launch.reason), ""),
            ),
        )


def _parse(path: Path, number: int, line: str) -> Mapping[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _refuse(path, number, "a line is not JSON") from error
    if not isinstance(record, dict):
        raise _refuse(path, number, "a line is not a JSON object")
    return record


def _build(path: Path, number: int, kind: type[Any], record: Mapping[str, Any]) -> Any:
    """A value of a record, whose other keys are left to later formats."""
    hints = get_type_hints(kind)
    values = {field.name: record[field.name] for field in fields(kind) if field.name in record}
    for name, value in values.items():
        kinds = get_args(hints[name]) or (hints[name],)
        kinds = (*kinds, int) if float in kinds else kinds
        if type(value) not in kinds and not (value is None and NoneType in kinds):
            raise _refuse(path, number, f"`{name}` is {json.dumps(value)[:60]}")
    try:
        return kind(**values)
    except TypeError as error:
        raise _refuse(path, number, str(error).partition("() ")[2]) from error


def _counts(path: Path, number: int, record: Mapping[str, Any]) -> list[int]:
    counts = record.get("counts")
    if not isinstance(counts, dict) or not all(type(count) is int for count in counts.values()):
        raise _refuse(path, number, "`counts` is no object of numbers")
    return list(counts.values())


def _refuse(path: Path, number: int, what: str) -> PorterError:
    return PorterError(
        "PTR195", f"this is no log of a witness: {what}", Place(str(path), number),
        "Give a file that witness.py wrote, as `porter mac new` writes it.",
    )  # fmt: skip
