"""A plan as text: the diff, then a short summary. `git apply` accepts the plain diff."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from porter.aten.skip_lists import Change
from porter.core.change_set import Hunk, split_hunks
from porter.core.dtypes import ALL, BY_METAL, Kind
from porter.languages.identifiers import find_words
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


# A plan's diff with the reason for each hunk behind its `@@`, where `git apply` reads nothing.


_LEAST = 12  # characters of a line that says whose it is: a brace does not
_INCLUDE = re.compile(r"^#include [<\"]([^>\"]+)", re.M)
_CHANGES = {Change.REMOVED: "leaves", Change.NARROWED: "is for fewer types in", Change.ADDED: "joins"}


def explain_hunks(plan: Plan) -> str:
    """The diff of a plan, with the reason behind the `@@` of each hunk. It applies as the plain diff does."""
    parts = (
        head + "".join(hunk.explained(explain(plan, hunk)) for hunk in hunks)
        for head, hunks in split_hunks(plan.changes)
    )
    return "".join(parts)


def explain(plan: Plan, hunk: Hunk) -> str:
    """Why a hunk is in the plan, in one line."""
    reasons = list(dict.fromkeys(_list_reasons(plan, hunk)))
    return printable("; ".join(reasons or [_describe_place(plan, hunk.file)]))


def _list_reasons(plan: Plan, hunk: Hunk) -> Iterator[str]:
    removed, added = hunk.removed, hunk.added
    for entry in plan.entries:
        if entry.before != entry.after and _mentions(removed, str(entry.before)) and _mentions(added, str(entry.after)):
            yield f"{entry.name}: {entry.after} serves MPS now, not {entry.before.kernel}"
    for functor in plan.functors:
        if functor.file == hunk.file and _shares_line(functor.source, added):
            yield f"{functor.name} computes it, written from {_origin(plan, functor.name, functor.origin)}"
    for name in dict.fromkeys(each.functor for each in plan.registrations):
        rows = [each for each in plan.registrations if each.functor == name and each.macro in added]
        if rows:
            types = dict.fromkeys(BY_METAL[each.input].torch for each in rows)
            yield f"registers {name} for {', '.join(types)}"
    for stub in plan.stubs:
        if stub.file == hunk.file and _mentions(added, stub.function):
            yield f"{stub.function} launches it for {stub.stub}"
    if includes := _INCLUDE.findall(added):
        yield f"what is added needs {', '.join(includes)}"
    symbols = [each.symbol.splitlines()[0] for each in plan.removed if each.file == hunk.file]
    if unused := [symbol for symbol in symbols if symbol in removed]:
        yield f"nothing uses {', '.join(unused)} any more"
    for change in plan.lists:
        if change.file == hunk.file and not change.is_kept and _mentions(removed + added, change.entry):
            yield f"{change.entry} {_CHANGES[change.change]} {change.list}: {change.why}"
    for entry in plan.entries:
        if entry.before == entry.after and _mentions(hunk.text, entry.after.kernel):
            yield f"{entry.after.kernel}, which serves {entry.name}, launches a kernel and builds no graph"


def _origin(plan: Plan, name: str, origin: str) -> str:
    """Where a functor came from; a kernel that no line registers came from runs."""
    is_functor = any(each.functor == name for each in plan.registrations)
    return origin if is_functor else "recorded runs of the MPSGraph code"


def _shares_line(source: str, added: str) -> bool:
    """Whether a line that says something is in both."""
    lines = {line.strip() for line in source.splitlines()}
    return any(len(line.strip()) >= _LEAST and line.strip() in lines for line in added.splitlines())


def _mentions(text: str, name: str) -> bool:
    """Whether the words of a name stand in a text, one after another."""
    words, wanted = find_words(text), find_words(name)
    return any(words[at : at + len(wanted)] == wanted for at in range(len(words) - len(wanted) + 1))


def _describe_place(plan: Plan, file: str) -> str:
    """What a hunk that no part of the plan names does there."""
    name = PurePosixPath(file)
    if name.parts[0] in ("test", "torch"):
        return f"tests of {plan.op}: what they expect on MPS is what the port does"
    if name.suffix in (".metal", ".h"):
        return f"Metal that the kernels of {plan.op} need"
    return f"host code around the kernels of {plan.op}"
