"""What became of mutants, kept in a file: a run goes on where the last one ended."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mutation.subjects import Mutant
from mutation.trial import Fate
from porter.core.cache import digest

_WEIGHT = 100  # of a mutant of the same slip
_TEST = re.compile(r"\btest_\w+")
WITHOUT = "run without a mutant"


@dataclass(frozen=True)
class Entry:
    """A mutant and its fate; `by` is the test or error that caught it, `seconds` what that took."""

    key: str
    op: str
    region: str
    slip: str
    told: str
    fate: str
    by: str
    seconds: float = 0.0


class Ledger:
    """The entries of a file of JSON lines; the last one of a mutant counts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path.is_file() else []
        self.entries = {entry.key: entry for entry in (Entry(**json.loads(line)) for line in lines)}

    def add(self, mutant: Mutant, fate: Fate, by: str, seconds: float = 0.0) -> None:
        entry = Entry(
            key(mutant), mutant.op, mutant.region, mutant.slip, mutant.told, fate.value, by, round(seconds, 2)
        )
        self._write(entry)

    def count_kills(self, mutant: Mutant) -> Counter[str]:
        """How many mutants of an operator each test has caught, by its method; those of the same slip first of all."""
        kills = Counter[str]()
        for entry in self.entries.values():
            if (entry.op, entry.fate) == (mutant.op, Fate.CAUGHT.value):
                for test in _TEST.findall(entry.by)[:1]:
                    kills[test] += _WEIGHT if entry.slip == mutant.slip else 1
        return kills

    def failing(self, op: str, stage: str, find: Callable[[], Sequence[str]]) -> tuple[str, ...]:
        """What fails without a mutant in a stage of an operator, or in a test of it, found once."""
        known = self.entries.get(f"{op}, {stage}")
        if known is None:
            known = Entry(f"{op}, {stage}", op, "", "", stage, WITHOUT, " ".join(find()))
            self._write(known)
        return tuple(known.by.split())

    def knows(self, op: str, stage: str) -> bool:
        return f"{op}, {stage}" in self.entries

    def _write(self, entry: Entry) -> None:
        self.entries[entry.key] = entry
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(entry)) + "\n")


def key(mutant: Mutant) -> str:
    return digest(mutant.op, mutant.file, mutant.text)


def summarize(entries: Iterable[Entry]) -> tuple[str, float]:
    """A text that counts fates and lists survivors, and the share that is caught of those that change something."""
    entries = list(entries)
    without = dict.fromkeys(test for entry in entries if entry.fate == WITHOUT for test in entry.by.split())
    failing = [f"fails without a mutant: {test}" for test in without]
    entries = [entry for entry in entries if entry.fate != WITHOUT]
    count = {fate: sum(entry.fate == fate.value for entry in entries) for fate in Fate}
    counted = count[Fate.CAUGHT] + count[Fate.SURVIVED]
    share = count[Fate.CAUGHT] / counted if counted else 1.0
    lines = [*failing]
    lines += [f"survived: {e.op}: {e.region}, {e.slip}: {e.told}" for e in entries if e.fate == Fate.SURVIVED.value]
    told = ", ".join(f"{number} {fate.value}" for fate, number in count.items())
    lines.append(f"{len(entries)} mutants of {len({e.op for e in entries})} operators: {told}")
    lines.append(f"caught {count[Fate.CAUGHT]} of {counted} that change a result: {share:.2%}")
    return "\n".join(lines), share
