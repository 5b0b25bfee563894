"""The table over every operator with an MPSGraph row: what its samples show, and why where they do not agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from porter.aten.native_functions import NativeFunctions
from porter.aten.operator import find_served
from porter.core.checkout import Checkout
from porter.parity.lines import AGREE, DIED, DIFFER, PRECISION, REFUSED, UNCOMPARED, UNDEFINED, Line
from porter.parity.reasons import Evidence, Reason
from porter.verdict.refusals import refusal_in

CLOSEST = 3


@dataclass(frozen=True)
class ServedFunction:
    """An operator and a kind of sample: through which OpInfos, graphs run, samples by verdict, differences by class."""

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
    """The operators with a row that is on MPSGraph, in the file's order."""
    rows = (row for entry in NativeFunctions.read(checkout).entries if (row := find_served(checkout, entry)))
    return tuple(dict.fromkeys(row.function.base for row in rows if row.builds_graph))


def table(bases: Iterable[str], lines: Sequence[Line], evidence: Evidence) -> Iterator[ServedFunction]:
    """A row for each operator and kind that reaches it, over the OpInfos of its name, else those with fewest others."""
    for base in bases:
        reaching = [line for line in lines if _reaches(line, base)]
        through = _through(base, reaching)
        mine = [line for line in lines if _tells(line, base, through)]
        for kind in dict.fromkeys(line.kind for line in mine):
            yield _row(base, kind, through, [line for line in mine if line.kind == kind], evidence)


def _reaches(line: Line, base: str) -> bool:
    return any(base in (name, name.rstrip("_")) for name in line.reached)


def _tells(line: Line, base: str, through: Sequence[str]) -> bool:
    """Whether a line says something of an operator: what died may have reached it."""
    return line.op in through and (_reaches(line, base) or DIED in line.counts)


def _through(base: str, reaching: Sequence[Line]) -> tuple[str, ...]:
    named = [line.op for line in reaching if base in line.names]
    others = sorted((len(line.reached), line.op) for line in reaching)
    return tuple(dict.fromkeys(named)) or tuple(dict.fromkeys(op for _, op in others))[:CLOSEST]


def _row(base: str, kind: str, through: tuple[str, ...], lines: Sequence[Line], evidence: Evidence) -> ServedFunction:
    counts: Counter[str] = Counter()
    classes: Counter[str] = Counter()
    why = ""
    for line in lines:
        counts.update(line.counts)
        for reason, count in _reasons(line, evidence):
            classes[reason.kind] += count
            why = why or f"{reason.kind}: {reason.evidence}"
    return ServedFunction(base, kind, through, sum(line.graphs for line in lines), counts, classes, why)


def _reasons(line: Line, evidence: Evidence) -> Iterator[tuple[Reason, int]]:
    for verdict, why, count in line.reasons:
        if verdict != UNCOMPARED or refusal_in(why) is not None:
            yield evidence.reason(verdict, why), count


def write(
    checkout: Checkout, lines: Sequence[Line], evidence: Evidence, absent: Mapping[str, str], out: TextIO
) -> None:
    """The table, what is not in it and why, and the totals over the samples of its OpInfos, each counted once."""
    bases = graph_bases(checkout)
    rows = list(table([base for base in bases if base not in absent], lines, evidence))
    for row in rows:
        print(row, file=out)
    reached = {row.base for row in rows}
    for base in bases:
        if base in absent:
            print(base, "-", absent[base], sep="\t", file=out)
        elif base not in reached:
            print(base, "-", "no sample that ran reaches it", sep="\t", file=out)
    _totals(rows, lines, evidence, out)


def _totals(rows: Sequence[ServedFunction], lines: Sequence[Line], evidence: Evidence, out: TextIO) -> None:
    """Over the table's own samples, and over all samples of the OpInfos that reach one of its operators."""
    through = {row.base: row.through for row in rows}
    mine = [line for line in lines if any(_tells(line, base, ops) for base, ops in through.items())]
    reaching = {line.op for line in lines if any(_reaches(line, base) for base in through)}
    print(f"{len(through)} operators through", _total(mine, evidence), file=out)
    print("all that reach one:", _total([line for line in lines if line.op in reaching], evidence), file=out)


def _total(lines: Sequence[Line], evidence: Evidence) -> str:
    counts: Counter[str] = Counter()
    classes: Counter[str] = Counter()
    for line in lines:
        counts.update(line.counts)
        for reason, count in _reasons(line, evidence):
            classes[reason.kind] += count
    total = sum(counts.values()) - counts[UNCOMPARED]
    defined = max(total - counts[UNDEFINED], 1)
    agreed = (counts[AGREE], counts[AGREE] + counts[PRECISION])
    shares = "{:.1f}% agree, {:.1f}% but for precision".format(*(100 * count / defined for count in agreed))
    infos = len({line.op for line in lines})
    return f"{infos} OpInfos: {total} samples; of those with defined values {shares}\n{dict(counts)} {dict(classes)}"
