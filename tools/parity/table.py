"""The table of operators with an MPSGraph row: outcomes of their samples, and why they disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from parity.differences import Evidence, Reason
from parity.outcomes import AGREE, CRASHED, DIFFER, PRECISION, REFUSED, UNCOMPARED, UNDEFINED, OpInfoResult
from porter.aten.native_functions import NativeFunctions
from porter.aten.operator import find_served
from porter.core.checkout import Checkout
from porter.verdict.errors import refusal_in

CLOSEST = 3


@dataclass(frozen=True)
class TableRow:
    """An operator and a kind of sample: its OpInfos, graphs run, samples by verdict, differences by class."""

    base: str
    kind: str
    through: tuple[str, ...]
    graphs: int
    counts: Mapping[str, int]
    classes: Mapping[str, int]
    why: str

    def __str__(self) -> str:
        counts = [self.counts.get(verdict, 0) for verdict in (AGREE, UNDEFINED, PRECISION, DIFFER, REFUSED)]
        classes = ", ".join(f"{kind} {count}" for kind, count in sorted(self.classes.items()))
        through = "" if self.through == (self.base,) else f"through {', '.join(self.through)}"
        recorded = f"{self.graphs} graphs" if self.graphs else "no graph"
        return "\t".join((self.base, self.kind, recorded, *map(str, counts), classes, self.why, through)).rstrip()


def graph_bases(checkout: Checkout) -> tuple[str, ...]:
    """The operators with an MPSGraph row, in file order."""
    rows = (row for entry in NativeFunctions.read(checkout).all if (row := find_served(checkout, entry)))
    return tuple(dict.fromkeys(row.function.base for row in rows if row.builds_graph))


def table(bases: Iterable[str], results: Sequence[OpInfoResult], evidence: Evidence) -> Iterator[TableRow]:
    """A row for each operator and kind, from the OpInfos named for it, or else those that reach the fewest others."""
    for base in bases:
        reaching = [result for result in results if _reaches(result, base)]
        through = _through(base, reaching)
        mine = [result for result in results if _covers(result, base, through)]
        for kind in dict.fromkeys(result.kind for result in mine):
            yield _row(base, kind, through, [result for result in mine if result.kind == kind], evidence)


def _reaches(result: OpInfoResult, base: str) -> bool:
    return any(base in (name, name.rstrip("_")) for name in result.reached)


def _covers(result: OpInfoResult, base: str, through: Sequence[str]) -> bool:
    """Whether a result covers an operator; one that crashed may have reached it."""
    return result.op in through and (_reaches(result, base) or CRASHED in result.counts)


def _through(base: str, reaching: Sequence[OpInfoResult]) -> tuple[str, ...]:
    named = [result.op for result in reaching if base in result.names]
    others = sorted((len(result.reached), result.op) for result in reaching)
    return tuple(dict.fromkeys(named)) or tuple(dict.fromkeys(op for _, op in others))[:CLOSEST]


def _row(
    base: str, kind: str, through: tuple[str, ...], results: Sequence[OpInfoResult], evidence: Evidence
) -> TableRow:
    counts: Counter[str] = Counter()
    classes: Counter[str] = Counter()
    why = ""
    for result in results:
        counts.update(result.counts)
        for reason, count in _classify_differences(result, evidence):
            classes[reason.kind] += count
            why = why or f"{reason.kind}: {reason.evidence}"
    return TableRow(base, kind, through, sum(result.graphs for result in results), counts, classes, why)


def _classify_differences(result: OpInfoResult, evidence: Evidence) -> Iterator[tuple[Reason, int]]:
    for verdict, why, count in result.reasons:
        if verdict != UNCOMPARED or refusal_in(why) is not None:
            yield evidence.classify(verdict, why), count


def write(
    checkout: Checkout, results: Sequence[OpInfoResult], evidence: Evidence, absent: Mapping[str, str], out: TextIO
) -> None:
    """Writes the table, the operators not in it and why, and the totals, with each OpInfo counted once."""
    bases = graph_bases(checkout)
    rows = list(table([base for base in bases if base not in absent], results, evidence))
    for row in rows:
        print(row, file=out)
    reached = {row.base for row in rows}
    for base in bases:
        if base in absent:
            print(base, "-", absent[base], sep="\t", file=out)
        elif base not in reached:
            print(base, "-", "no sample reaches it", sep="\t", file=out)
    _write_totals(rows, results, evidence, out)


def _write_totals(rows: Sequence[TableRow], results: Sequence[OpInfoResult], evidence: Evidence, out: TextIO) -> None:
    """Writes totals over the table's samples, and over all samples of the OpInfos that reach its operators."""
    through = {row.base: row.through for row in rows}
    mine = [result for result in results if any(_covers(result, base, ops) for base, ops in through.items())]
    reaching = {result.op for result in results if any(_reaches(result, base) for base in through)}
    print(f"{len(through)} operators through", _format_total(mine, evidence), file=out)
    print(
        "all that reach one:",
        _format_total([result for result in results if result.op in reaching], evidence),
        file=out,
    )


def _format_total(results: Sequence[OpInfoResult], evidence: Evidence) -> str:
    counts: Counter[str] = Counter()
    classes: Counter[str] = Counter()
    for result in results:
        counts.update(result.counts)
        for reason, count in _classify_differences(result, evidence):
            classes[reason.kind] += count
    total = sum(counts.values()) - counts[UNCOMPARED]
    defined = max(total - counts[UNDEFINED], 1)
    agreed = (counts[AGREE], counts[AGREE] + counts[PRECISION])
    shares = "{:.1f}% agree, {:.1f}% but for precision".format(*(100 * count / defined for count in agreed))
    infos = len({result.op for result in results})
    return f"{infos} OpInfos: {total} samples; of those with defined values {shares}\n{dict(counts)} {dict(classes)}"
