"""Counts the rows of a fork that have a program: loop nests whose numbers are expressions of the call's arguments.

    python tools/programs.py FORK FOLDER [OP ...] [--seconds N] [--table]

Records each operator with a row that `porter status` calls MPSGraph and that is not elementwise (docs/coverage.md), at
sizes of porter's own, in a process of its own. What came of it is a JSON file in FOLDER; operators that have one are
not recorded again, and none is begun after --seconds. Then prints the rows by what blocks them; --table records none.
A row is whole if its overload has programs and no call is left without.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from time import monotonic, process_time

from porter.aten.implementations import Language
from porter.aten.lacking import is_elementwise
from porter.aten.native_functions import NativeFunctions
from porter.aten.operator import Operator, ServedFunction, find_served
from porter.core.checkout import Checkout
from porter.loops.program import Programs
from porter.recording.readings import serves
from porter.server import worker
from porter.verdict.backends import host
from porter.verdict.result import HOST
from shared.arguments import fork_parser
from shared.isolation import run_isolated
from shared.whole_fork import build_whole, load_whole

_SECONDS = 240.0  # of one operator, which others on the machine may delay
_LIBRARY = ("atrixMultiplication", "convolution", "Convolution", "LSTM", "FFT", "Fourier", "AttentionWith", "inverseOf")
Record = dict[str, object]  # of an overload: its name, cases, numbers, and why other calls have no program


def main() -> int:
    options = _parse()
    checkout = Checkout(options.fork.resolve(), "named")
    rows = _list_rows(checkout)
    options.folder.mkdir(parents=True, exist_ok=True)
    if not options.table:
        bases = options.ops or list(dict.fromkeys(row.function.base for row in rows))
        _record_all(checkout, options, [each for each in bases if not _file(options, each).exists()])
    found = {each.stem: json.loads(each.read_text()) for each in sorted(options.folder.glob("*.json"))}
    _print_table(checkout, [row for row in rows if row.function.base in found], found)
    return 0


def _parse() -> Namespace:
    parser = fork_parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--table", action="store_true")
    return parser.parse_args()


def _list_rows(checkout: Checkout) -> list[ServedFunction]:
    """The rows on MPSGraph that are not elementwise."""
    served = [row for each in NativeFunctions.read(checkout).all if (row := find_served(checkout, each))]
    graphs = [row for row in served if row.language is Language.MPSGRAPH and row.implementation]
    read = {base: Operator.read(checkout, base) for base in dict.fromkeys(row.function.base for row in graphs)}
    return [row for row in graphs if not is_elementwise(checkout, read[row.function.base], row.function)]


def _file(options: Namespace, base: str) -> Path:
    return Path(options.folder / f"{base}.json")


def _record_all(checkout: Checkout, options: Namespace, bases: Sequence[str]) -> None:
    until = monotonic() + options.seconds
    worker.preload(HOST)
    selections = {base: host.select_opinfos(base) for base in bases}
    load_whole(build_whole(checkout))
    for base in bases:
        if monotonic() > until:
            return
        through = (*selections[base].forward, *selections[base].backward)
        died: Record = {"name": base, "cases": 0, "numbers": [], "left": [("died", "")]}
        lines = list(run_isolated(partial(_record, base, through), died, _SECONDS))
        _file(options, base).write_text(json.dumps(lines, indent=1))
        print(base, *(f"{each['name']} {each['cases']} {each['left']}"[:300] for each in lines), sep="\t", flush=True)


def _record(base: str, through: Sequence[str]) -> Iterator[Record]:
    from porter.recording.programs import record_programs

    begun = process_time()
    for each in record_programs(base, through):
        programs = each if isinstance(each, Programs) else Programs(each.name, ())
        numbers = [str(number) for case in programs.cases for number in case.numbers]
        left = [(error.code, error.what) for error in programs.left]
        taken = round(process_time() - begun, 1)
        cases = len(each.cases) if isinstance(each, Programs) else 1
        yield {"name": each.name, "cases": cases, "numbers": numbers, "left": left, "seconds": taken}


def _print_table(
    checkout: Checkout, rows: Sequence[ServedFunction], found: dict[str, list[dict[str, list[tuple[str, str]]]]]
) -> None:
    by_row = {row.function.name: _find_state(checkout, row, found[row.function.base]) for row in rows}
    for row, state in sorted(by_row.items(), key=lambda each: each[1]):
        print(f"{state}\t{row}")
    counts = Counter(by_row.values())
    library = counts["library"]
    print(f"{counts['whole']} of {len(rows) - library} rows whole, besides {library} of library calls", file=sys.stderr)
    print("; ".join(f"{state}: {count}" for state, count in counts.most_common()), file=sys.stderr)


def _find_state(checkout: Checkout, row: ServedFunction, found: list[dict[str, list[tuple[str, str]]]]) -> str:
    """What came of a row: whole, library, no call, or the codes of the calls that have no program."""
    mine = [
        each for each in found if str(each["name"]) == row.function.base or serves(checkout, str(each["name"]), row)
    ]
    left = [(code, what) for each in mine for code, what in each["left"]]
    if any(code == "died" for each in found for code, _ in each["left"]):
        return "died"
    if any(word in what for each in found for _, what in each["left"] for word in _LIBRARY):
        return "library"
    if not mine:
        return "no call"
    codes = "+".join(sorted({code for code, _ in left}))
    return codes if codes else "whole" if any(each["cases"] for each in mine) else "no graph"


if __name__ == "__main__":
    sys.exit(main())
