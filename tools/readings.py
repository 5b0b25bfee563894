"""Reads old implementations twice, from the source and by running them, and prints whether the readings agree.

    python tools/readings.py FORK [OP ...] [--save FILE]

One line a row: whether both agree; by type `recorded` or the code of why not; calls on which they agree, how they
differ, or why one reading is missing. Then the counts. Without operators: every base name that `porter status` calls
MPSGraph. They run in one library of the fork, a process each. Ends with 1 where readings differ or a process died.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from porter.aten.implementations import Language
from porter.aten.native_functions import NativeFunctions
from porter.aten.operator import ServedFunction, find_served, is_shared
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.mpsgraph.agreement import Agreement, compare_readings
from porter.mpsgraph.graph import Recording
from porter.recording import record
from porter.recording.readings import find_recorded_overloads, is_recording_of, read_source_graph
from porter.server import worker
from porter.verdict.backends import host
from porter.verdict.errors import raising_porter_errors
from porter.verdict.result import HOST
from shared.arguments import fork_parser
from shared.isolation import run_isolated
from shared.whole_fork import build_whole, load_whole

Line = tuple[str, ...]
TYPES = ("float32", "float16", "int32", "bool")


def main() -> int:
    parser = fork_parser(__doc__)
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    checkout = Checkout(options.fork.resolve(), "named")
    rows = [row for e in NativeFunctions.read(checkout).all if (row := find_served(checkout, e)) and _is_old(row)]
    bases = options.ops or list(dict.fromkeys(row.function.base for row in rows))
    unknown = sorted({*bases} - {row.function.base for row in rows})
    if unknown or not bases:
        sys.exit(f"no row on MPSGraph: {', '.join(unknown) or 'in the whole fork'}")
    worker.preload(HOST)
    selections = {base: host.select_opinfos(base) for base in bases}
    load_whole(build_whole(checkout))
    found: list[Line] = []
    for base in bases:
        of_base = [row for row in rows if row.function.base == base]
        through = (*selections[base].forward, *selections[base].backward)
        died: Line = (base, "died", "PTR137", "the process died")
        for line in run_isolated(partial(_both, checkout, base, of_base, through), died):
            print(*line, sep="\t", flush=True)
            found.append(line)
    print(dict(Counter(line[1] for line in found)), file=sys.stderr)
    if options.save:
        options.save.write_text(json.dumps(found, indent=1))
    return int(any(line[1] in ("differ", "died") for line in found))


def _is_old(row: ServedFunction) -> bool:
    return row.language is Language.MPSGRAPH and row.implementation is not None


def _both(checkout: Checkout, base: str, rows: Sequence[ServedFunction], through: Sequence[str]) -> Iterator[Line]:
    try:
        with raising_porter_errors():
            recorded: tuple[Recording, ...] = record.record(
                base, through, tuple(find_recorded_overloads(checkout, rows))
            )
        missing = "no sample calls it"
    except PorterError as error:
        recorded, missing = (), f"{error.code} {error.what[:160]}"
    for row in rows:
        yield from _of_row(checkout, row, [each for each in recorded if is_recording_of(checkout, each, row)], missing)


def _of_row(checkout: Checkout, row: ServedFunction, recorded: Sequence[Recording], missing: str) -> Iterator[Line]:
    name = row.function.name
    try:
        source, stopped = read_source_graph(checkout, row), ""
    except PorterError as error:
        source, stopped = None, f"source: {error.code}. "
    alone = "source only" if source and source.cases else "neither"
    if not recorded:
        yield name, alone, "-", f"{stopped}run: {missing}"
    for each in recorded:
        left = "; ".join(f"{one.dtype}: {one.code} {one.reason}" for one in each.left)[:300]
        if not each.seen:
            yield name, alone, _by_type(each), f"{stopped}run: {left}"
        elif source is None or not source.cases:
            yield (
                name,
                "run only",
                _by_type(each),
                f"{stopped}{len(each.seen)} calls, {len(each.graph.cases)} cases. {left}",
            )
        else:
            agreed = compare_readings(source, each, is_shared(row.entry))
            yield name, _kind(agreed), _by_type(each), f"{agreed}. {left}"


def _by_type(recording: Recording) -> str:
    seen = {each.dtype.torch for each in recording.seen}
    left = {each.dtype.torch: each.code for each in reversed(recording.left)}
    words = ("recorded" if name in seen else left.get(name, "no sample") for name in TYPES)
    return ", ".join(f"{name}: {word}" for name, word in zip(TYPES, words, strict=True))


def _kind(agreed: Agreement) -> str:
    return "differ" if agreed.differences else "agree" if agreed.calls else "nothing in common"


if __name__ == "__main__":
    sys.exit(main())
