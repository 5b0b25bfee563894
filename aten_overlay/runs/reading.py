"""Reads what the processes of a program wrote down."""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aten_overlay.runs.journal import FINDING, KERNELS
from aten_overlay.runs.origin import OPERATOR, SHADER, Origin

_SLOT = struct.Struct("<Q1016s")  # struct Slot of aten_overlay/device/launches.cpp
_CODED = re.compile(r"(PTR\d{3}):? (.*)", re.DOTALL)
_REFUSED = "PTR106"  # a launch that the runtime refuses without a code of its own


@dataclass(frozen=True)
class Kernel:
    """A kernel that was compiled or launched: its origin, the file with its source, and how often it was launched.

    `operator` is the innermost operator that launched it, empty for none. `source` is the name of a file of the
    journal's folder of sources.
    """

    name: str
    origin: Origin
    source: str
    operator: str
    launches: int


@dataclass(frozen=True)
class Finding:
    """What is wrong with launches of a kernel: `origin` is where they were, `kernel_origin` who had it compiled, and
    `operators` ran then, outermost first.
    """

    code: str
    text: str
    kernel: str
    operators: tuple[str, ...]
    origin: Origin
    kernel_origin: Origin | None
    source: str
    count: int


@dataclass(frozen=True)
class Run:
    """What a program did in all of its processes."""

    processes: int
    compiled: int
    kernels: tuple[Kernel, ...]
    findings: tuple[Finding, ...]

    @property
    def launches(self) -> int:
        return sum(kernel.launches for kernel in self.kernels)


@dataclass(frozen=True)
class _Compiled:
    source: str
    origin: Origin


def read_run(folder: Path) -> Run:
    """Returns what the processes of a program wrote into a folder."""
    records = list(_read_records(folder))
    compiled = {
        (record["library"], name): _Compiled(record["source"], _read_origin(record["origin"]))
        for record in reversed(records)  # the first who had a kernel compiled counts
        if record["event"] == KERNELS
        for name in record["kernels"]
    }
    launches = _read_launches(folder)
    idle = [key for key in compiled if key not in {(library, name) for library, name, _ in launches}]
    kernels = [
        _describe(compiled.get((library, name)), name, operator, count)
        for (library, name, operator), count in launches.items()
    ]
    kernels += [_describe(compiled[key], key[1], "", 0) for key in idle]
    ordered = sorted(kernels, key=lambda k: (k.origin.producer, -k.launches, k.name, k.operator))
    return Run(len(_processes(folder)), len(compiled), tuple(ordered), _read_findings(records, compiled))


def _processes(folder: Path) -> set[str]:
    return {path.stem for path in folder.iterdir() if path.suffix in (".jsonl", ".launches")}


def _read_records(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.jsonl")):
        yield from map(json.loads, path.read_text().splitlines())


def _read_launches(folder: Path) -> Mapping[tuple[str, str, str], int]:
    """Launches by library, kernel and operator."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for path in sorted(folder.glob("*.launches")):
        with path.open("rb") as file:
            while (data := file.read(_SLOT.size)) and (slot := _SLOT.unpack(data))[0]:
                text = slot[1].split(b"\0", 1)[0].decode(errors="replace")
                library, name, operator = (*text.split("\n"), "", "", "")[:3]
                counts[library, name, operator] += slot[0]
    return counts


def _describe(compiled: _Compiled | None, name: str, operator: str, count: int) -> Kernel:
    """A kernel of which nobody noted the source is one that was compiled ahead, for an operator of the fork."""
    origin = compiled.origin if compiled else Origin(OPERATOR if operator else SHADER)
    return Kernel(name, origin, compiled.source if compiled else "", operator, count)


def _read_findings(records: list[dict[str, Any]], compiled: Mapping[tuple[str, str], _Compiled]) -> tuple[Finding, ...]:
    """Findings in the order of the first of each kind: one kernel, one code, one line of the program."""
    kinds: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for record in records:
        if record["event"] == FINDING:
            key = (record["library"], record["kernel"], _code(record["text"])[0], record["origin"]["place"])
            kinds.setdefault(key, []).append(record)
    findings = []
    for same in kinds.values():
        first = same[0]
        code, text = _code(first["text"])
        maker = compiled.get((first["library"], first["kernel"]))
        findings.append(
            Finding(
                code, text, first["kernel"], tuple(first["operators"]), _read_origin(first["origin"]),
                maker.origin if maker else None, maker.source if maker else "", len(same),
            )
        )  # fmt: skip
    return tuple(findings)


def _code(text: str) -> tuple[str, str]:
    match = _CODED.match(text)
    return (match[1], match[2]) if match else (_REFUSED, text)


def _read_origin(record: Mapping[str, Any]) -> Origin:
    return Origin(**{**record, "operators": tuple(record["operators"])})
