"""A plan as text: the diff, then a short summary. `git apply` accepts the plain diff."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from porter.core.dtypes import ALL, Kind
from porter.plan.plan import Plan, RejectedCandidate
from porter.plan.promotion.planner import PromotionPlan
from porter.report.console import printable

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


def style_diff(diff: str) -> Text:
    """The unified diff with syntax highlighting, for a terminal."""
    from rich.syntax import Syntax

    return Syntax("", "diff", theme="ansi_dark").highlight(printable(diff, keep="\n\t"))


def summary(plan: Plan, rejected: Sequence[RejectedCandidate] = (), lost: Sequence[str] = ()) -> str:
    """The summary of a plan, first what is `lost` that the old path computed, for a person to decide.

    Then entries moved, dtypes registered, where the functor came from, rejected candidates, removed code and list
    entries, and other open decisions.
    """
    return "\n".join([plan.op, *(f"  {label:<9}{value}" for label, value in _rows(plan, rejected, lost))])


def style_summary(plan: Plan, rejected: Sequence[RejectedCandidate] = (), lost: Sequence[str] = ()) -> Table:
    """The same for a terminal, as wide as it is."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, show_header=False, title=Text(plan.op, "bold"), title_justify="left", padding=(0, 0, 0, 2))
    grid.add_column(width=7)
    grid.add_column(overflow="fold")
    for label, value in _rows(plan, rejected, lost):
        grid.add_row(Text(label, "cyan"), Text(value))
    return grid


def _rows(plan: Plan, rejected: Sequence[RejectedCandidate], lost: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Labels and values; only the first value of a label carries it."""
    yield from _label("decide", (*lost, *_offer(plan, rejected, lost)))
    yield from _label("moved", (f"{e.name}: {e.before} -> {e.after}" for e in plan.entries if e.before != e.after))
    yield from _label("stays", (f"{e.name}: {e.after}" for e in plan.entries if e.before == e.after))
    yield from _label("stub", (f"{s.stub} -> {s.function} ({s.file})" for s in plan.stubs))
    for functor in plan.functors:
        pairs = dict.fromkeys(f"{r.input}->{r.output}" for r in plan.registrations if r.functor == functor.name)
        if pairs:
            yield from _label("dtypes", [f"{functor.name}: {' '.join(pairs)}"])
        yield from _label("functor", [f"{functor.name}: from {functor.origin}"])
    yield from _label("not", (f"{each.functor}: from {each.source}: {_describe_rejection(each)}" for each in rejected))
    yield from _label("removed", (f"{r.symbol} ({r.file})" for r in plan.removed))
    yield from _label("lists", (f"{c.list}: {c.entry} {c.outcome}" for c in plan.lists))
    yield from _label("unported", (f"{u.place}: {u.code} {u.reason}" for u in plan.unported))
    yield from _label("decide", plan.notes)


def _offer(plan: Plan, rejected: Sequence[RejectedCandidate], lost: Sequence[str]) -> Iterator[str]:
    """What a person may have porter, or porter's reader, do about these."""
    integers = [dtype.torch for dtype in ALL if dtype.kind is Kind.INTEGRAL]
    if plan.registrations and any(name in line.partition(":")[0].split(", ") for line in lost for name in integers):
        yield "`--keep-dtypes` registers such integers too, computed in float"
    for candidate in (candidate for candidate in rejected if candidate.is_of_library):
        yield f"{candidate.source} gives wrong values: mend it there, and {candidate.functor} can call it"


def _describe_rejection(candidate: RejectedCandidate) -> str:
    kinds = ", ".join(kind.value for kind in candidate.kinds)
    tests = "1 test" if candidate.failed == 1 else f"{candidate.failed} tests"
    return f"fails {tests} for {kinds} dtypes: {candidate.reason}"


def _label(label: str, values: Iterable[str]) -> Iterator[tuple[str, str]]:
    for at, value in enumerate(values):
        yield label if at == 0 else "", printable(value, keep="\n\t")


def promotion_summary(plan: PromotionPlan) -> str:
    """The schema, the kernels, who runs the operator, and what is left to decide."""
    return "\n".join([plan.promotion.op, *(f"  {label:<9}{value}" for label, value in _promotion_rows(plan))])


def _promotion_rows(plan: PromotionPlan) -> Iterator[tuple[str, str]]:
    promotion = plan.promotion
    yield "schema", str(promotion.schema)
    names = ("_".join((promotion.op, *each)) for each in promotion.kernel.instances)
    yield "kernels", " ".join(names) if promotion.kernel.parameters else promotion.op
    yield "CPU", "; ".join(promotion.cpu) if promotion.cpu else "none"
    yield from _label("decide", map(str, plan.decisions))
