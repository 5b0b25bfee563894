"""What a person reads: the diff, then a short summary. Plain text when colour is off, so that `git apply` takes it as
printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from porter.plan.plan import Loser, Plan

_RESET = "\033[0m"
_COLOURS = {"+": "\033[32m", "-": "\033[31m", "@": "\033[36m"}
_BOLD = "\033[1m"


def diff_text(diff: str, colour: bool) -> str:
    """The unified diff, coloured by line where asked for."""
    if not colour:
        return diff
    return "".join(_painted(line) for line in diff.splitlines(keepends=True))


def _painted(line: str) -> str:
    body = line.rstrip("\n")
    end = line[len(body) :]
    if body.startswith(("diff ", "--- ", "+++ ")):
        return f"{_BOLD}{body}{_RESET}{end}"
    paint = _COLOURS.get(body[:1])
    return f"{paint}{body}{_RESET}{end}" if paint else line


def summary(plan: Plan, losers: Sequence[Loser] = ()) -> str:
    """What moved, which dtypes are registered, where the functor came from and what it was preferred to, which
    entries go, what is left to decide.
    """
    return "\n".join(_summary(plan, losers))


def _summary(plan: Plan, losers: Sequence[Loser]) -> Iterator[str]:
    yield f"{plan.op}"
    yield from _rows("moved", (f"{e.name}: {e.before} -> {e.after}" for e in plan.entries if e.before != e.after))
    yield from _rows("stays", (f"{e.name}: {e.after}" for e in plan.entries if e.before == e.after))
    yield from _rows("stub", (f"{s.stub} -> {s.function} ({s.file})" for s in plan.stubs))
    for functor in plan.functors:
        pairs = [f"{r.input}->{r.output}" for r in plan.registrations if r.functor == functor.name]
        yield from _rows("dtypes", [f"{functor.name}: {' '.join(pairs)}"])
        yield from _rows("functor", [f"{functor.name}: from {functor.origin}"])
    yield from _rows("not", (f"{each.functor}: from {each.source}: {_told(each)}" for each in losers))
    yield from _rows("removed", (f"{r.symbol} ({r.file})" for r in plan.removed))
    yield from _rows("lists", (f"{c.list}: {c.entry} {c.outcome}" for c in plan.lists))
    yield from _rows("unported", (f"{u.place}: {u.code} {u.reason}" for u in plan.unported))
    yield from _rows("decide", plan.notes)


def _told(loser: Loser) -> str:
    kinds = ", ".join(kind.value for kind in loser.kinds)
    return f"wrong for {kinds} elements in {loser.failed} tests: {loser.reason}"


def _rows(label: str, values: Iterable[str]) -> Iterator[str]:
    for at, value in enumerate(values):
        yield f"  {label if at == 0 else '':<9}{value}"
