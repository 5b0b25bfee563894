"""Reads old implementations twice, from the source and by running them, and prints whether the readings agree.

    python benchmarks/readings.py FORK [OP ...] [--save FILE]

One line a row: calls on which both agree, or how they differ, or why one reading is missing. Without operators: every
base name that `porter status` calls MPSGraph.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from porter.aten.native_functions import NativeFunctions
from porter.checkout import Checkout
from porter.errors import PorterError
from porter.mpsgraph.agreement import Agreement, agreement
from porter.objcpp.implementations import Written
from porter.readings import recordings_of, source_graph
from porter.rows import Row, is_shared, mps_row

Line = tuple[str, ...]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fork", type=Path)
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    checkout = Checkout(options.fork.resolve(), "named")
    functions = NativeFunctions.read(checkout)
    rows = [row for entry in functions.entries if (row := mps_row(checkout, entry)) and row.written is Written.MPSGRAPH]
    found: list[Line] = []
    for base in options.ops or dict.fromkeys(row.entry.base for row in rows):
        started = time.monotonic()
        for line in (line for row in rows if row.entry.base == base for line in _both(checkout, row)):
            print(*line, f"{time.monotonic() - started:.1f} s", sep="\t", flush=True)
            found.append(line)
    print(dict(Counter(line[1] for line in found)), file=sys.stderr)
    if options.save:
        options.save.write_text(json.dumps(found, indent=1))
    return 0


def _both(checkout: Checkout, row: Row) -> Iterator[Line]:
    name = row.entry.name
    try:
        source, stopped = source_graph(checkout, row), ""
    except PorterError as error:
        source, stopped = None, f"source: {error.code}. "
    alone = "source only" if source and source.cases else "neither"
    try:
        recorded = recordings_of(checkout, row)
    except PorterError as error:
        yield name, alone, f"{stopped}run: {error.code} {error.what[:160]}"
        return
    if not recorded:
        yield name, alone, f"{stopped}run: no sample calls it"
    for each in recorded:
        left = "; ".join(f"{one.dtype}: {one.code} {one.reason}" for one in each.left)[:300]
        if not each.seen:
            yield name, alone, f"{stopped}run: {left}"
        elif source is None or not source.cases:
            yield name, "run only", f"{stopped}{len(each.seen)} calls, {len(each.graph.cases)} cases. {left}"
        else:
            yield name, *_compared(agreement(source, each, is_shared(row.line))), left


def _compared(judged: Agreement) -> tuple[str, str]:
    kind = "differ" if judged.differences else "agree" if judged.calls else "nothing in common"
    return kind, str(judged)


if __name__ == "__main__":
    sys.exit(main())
