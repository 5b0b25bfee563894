"""The operators that `porter add` added, as a table for docs/added.md.

    porter add gcd lcm --json > results.json
    python tools/added.py results.json > docs/added.md

Each line of a results file is the plan and the verdict of one operator; of two lines for the same operator, the later
one counts. Exits with 1 if a verdict failed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.arguments import parser

TITLE = """\
# Operators that porter added

Made by `python tools/added.py RESULTS...` from what `porter add OP... --json` printed. ULP is the largest error of
the kernel against float64, beside that of ATen's CPU kernel, over the accuracy tests of floating types.
[What fails, and what upstream lacks](add.md#from-the-cpu-kernel).

"""
COLUMNS = ("operator", "verdict", "tests passed", "types", "ULP", "ATen's", "functor")


@dataclass(frozen=True)
class Added:
    """What came of adding an operator. The errors are None if no result is a floating number."""

    op: str
    ok: bool
    passed: int
    failed: int
    dtypes: int
    max_ulp: float | None
    cpu_ulp: float | None
    source: str

    @property
    def row(self) -> str:
        word = "PASS" if self.ok else f"FAIL ({self.failed})"
        errors = ("" if each is None else f"{each:.1f}" for each in (self.max_ulp, self.cpu_ulp))
        return _write_row((f"`{self.op}`", word, self.passed, self.dtypes, *errors, self.source))


def read_results(lines: Iterable[str]) -> Iterator[Added]:
    """Yields what came of each operator whose line has a verdict."""
    for line in lines:
        found = json.loads(line) if line.startswith("{") else {}
        if found.get("verdict"):
            yield _read(found["op"], found["verdict"], found.get("functor"))


def _read(op: str, verdict: Mapping[str, object], functor: Mapping[str, str] | None) -> Added:
    dtypes = verdict["dtypes"]
    assert isinstance(dtypes, Mapping)
    largest = None if verdict["max_ulp"] is None else float(str(verdict["max_ulp"]))
    cpu = max((float(ulp) for each in dtypes.values() if (ulp := each.get("cpu_ulp")) is not None), default=None)
    origin = functor["origin"] if functor else "none"
    numbers = (int(str(verdict["passed"])), int(str(verdict["failed"])), len(dtypes))
    return Added(op, bool(verdict["ok"]), *numbers, largest, cpu, origin)


def write_table(found: Iterable[Added]) -> str:
    """The page: how many operators passed, and a row for each."""
    rows = {each.op: each for each in found}
    passed = sum(each.ok for each in rows.values())
    head = _write_row(COLUMNS) + _write_row(["---"] * len(COLUMNS))
    return f"{TITLE}{passed} of {len(rows)} passed.\n\n{head}{''.join(each.row for each in rows.values())}"


def _write_row(cells: Sequence[object]) -> str:
    texts = (str(cell).replace("|", r"\|") for cell in cells)
    return f"| {' | '.join(texts)} |\n"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("results", nargs="+", type=Path, help="what `porter add OP... --json` printed")
    files = options.parse_args().results
    found = [each for file in files for each in read_results(file.read_text().splitlines())]
    print(write_table(found), end="")
    sys.exit(0 if all({each.op: each.ok for each in found}.values()) else 1)


if __name__ == "__main__":
    main()
