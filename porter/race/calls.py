"""The calls of a race: a table of operators, what a folder of recorded launches holds, and what timing them gives."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import yaml

from porter.core.errors import PorterError
from porter.core.files import read_named, read_regular, write_whole

CALLS = Path(__file__).with_name("calls.yaml")
LAUNCHES, HEADERS = "launches.json", "inc"
PORT, PERSON, TORCH, RESULT = "port", "person", "torch", "out"
INDICES, BYTES = "indices", "bytes"
DTYPES = {
    "float": torch.float32, "half": torch.float16, "bfloat": torch.bfloat16, "complex": torch.complex64,
    INDICES: torch.int64, BYTES: torch.uint8,
}  # fmt: skip
MOST_ERROR = {"float": 1e-4, "half": 4e-3, "bfloat": 3e-2, "complex": 1e-4}  # of the norm of the result
_HINT = "Record it again: porter bench OP --folder FOLDER."


@dataclass(frozen=True)
class Launch:
    """One kernel of a Metal file; `memory` are the bytes of its threadgroup arguments.

    Arguments are names of tensors, `{"tensor": NAME, "offset": BYTES}` for a part of one, or `{"bytes": HEX}` for what
    the host copied: a number, or what a pointer to constants gets.
    """

    file: str
    kernel: str
    arguments: tuple[Any, ...]
    threads: tuple[int, ...]
    group: tuple[int, ...]
    memory: tuple[int, ...] = ()


@dataclass(frozen=True)
class Call:
    """A call of an operator: its tensors as shapes (`out` is the result), torch's own call, and launches by who wrote
    them. `moves` are bytes at least; `types` are of tensors that have another than `dtype`,
    and `ends` are above the greatest index that those of indices hold.
    """

    operator: str
    label: str
    dtype: str
    tensors: Mapping[str, Sequence[int]]
    torch: str
    moves: int
    sides: Mapping[str, Sequence[Launch]]
    types: Mapping[str, str]
    ends: Mapping[str, int]


@dataclass(frozen=True)
class Row:
    """Milliseconds by side, torch's, the share of a copy's speed that each has, and relative errors."""

    operator: str
    label: str
    dtype: str
    times: Mapping[str, float]
    shares: Mapping[str, float]
    errors: Mapping[str, float]

    @property
    def wrong(self) -> tuple[str, ...]:
        """The sides whose result is not torch's."""
        return tuple(side for side, error in self.errors.items() if not error <= MOST_ERROR[self.dtype])


@dataclass(frozen=True)
class Timings:
    """What a GPU made of a folder: its name, the bytes a millisecond of a copy, rows, and calls that failed and why."""

    device: str
    copy: float
    rows: tuple[Row, ...]
    failures: Mapping[str, str]

    def find_ratios(self, other: str) -> dict[str, tuple[float, float, int]]:
        """By operator: how many times as fast the port is as another side, as geometric mean, the least, and of how
        many calls.
        """
        ratios: dict[str, list[float]] = {}
        for row in self.rows:
            if {PORT, other} <= row.times.keys():
                ratios.setdefault(row.operator, []).append(row.times[other] / row.times[PORT])
        return {
            operator: (math.exp(statistics.fmean(map(math.log, values))), min(values), len(values))
            for operator, values in ratios.items()
        }


def read_table() -> dict[str, Any]:
    """The table of calls: shapes, and of each operator how torch calls it."""
    table: dict[str, Any] = yaml.safe_load(read_regular(CALLS))
    return table


def read_calls(folder: Path) -> list[Call]:
    """The calls whose launches a folder holds. Raises PTR302 where it holds none."""
    try:
        entries = json.loads(read_named(folder / LAUNCHES, "PTR302", _HINT))
        calls = []
        for fields in entries:
            sides = {side: tuple(Launch(**launch) for launch in launches) for side, launches in fields["sides"].items()}
            calls.append(Call(**{**fields, "sides": sides}))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise PorterError("PTR302", f"{folder / LAUNCHES} has no launches: {error}", hint=_HINT) from None
    return calls


def write_timings(timings: Timings, path: Path) -> None:
    """Keeps timings in a file that `read_timings` reads."""
    write_whole(path, json.dumps(asdict(timings), indent=1))


def read_timings(path: Path) -> Timings:
    """What `write_timings` kept."""
    fields = json.loads(read_regular(path))
    return Timings(**{**fields, "rows": tuple(Row(**row) for row in fields["rows"])})
