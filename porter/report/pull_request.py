"""The text of a pull request for a port: what moves, what changes for users, and how it was tested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from porter.plan.plan import Plan

if TYPE_CHECKING:
    from porter.verdict.result import Verdict


def pull_request(plan: Plan, verdict: Verdict | None) -> str:
    """The title, a blank line and the body, in Markdown."""
    return "\n".join([f"[MPS] Migrate {plan.op} to Metal", "", *_body(plan, verdict)])


def group_pull_request(family: str, lines: int, ports: Sequence[tuple[Plan, Verdict | None]]) -> str:
    """The same for several ports of a family that are reviewed together, with the command that writes them."""
    names = [plan.op for plan, _ in ports]
    title = f"[MPS] Migrate {len(names)} operators of {family} to Metal"
    how = f"Made by `porter migrate {' '.join(names)} --write`; changes {lines} lines."
    parts = (line for plan, verdict in ports for line in ("", f"## {plan.op}", "", *_body(plan, verdict)))
    return "\n".join([title, "", how, *parts])


def _body(plan: Plan, verdict: Verdict | None) -> Iterator[str]:
    moved = [e.name for e in plan.entries if e.before != e.after]
    stubs = ", ".join(f"`{s.stub}`" for s in plan.stubs)
    yield f"Moves {_named(moved)} from MPSGraph to a Metal kernel behind {stubs}."
    yield ""
    yield from (f"- `{f.name}_functor` in `{f.file}`, from {f.origin}" for f in plan.functors)
    yield from (f"- `{c.list}`: `{c.entry}` {c.outcome}" for c in plan.lists if not c.is_kept)
    yield from (f"- not ported: {u.reason} ({u.code}, {u.place})" for u in plan.unported)
    yield from (f"- needs a decision: {note}" for note in plan.notes)
    if verdict is None:
        yield "\nNot verified."
    else:
        yield from _changes(verdict)
        yield from _checked(verdict)


def _changes(verdict: Verdict) -> Iterator[str]:
    if verdict.old_path is None:
        return
    yield "\n### User-facing changes\n"
    yield from (f"- {line}" for line in verdict.old_path.changes or ("none in the OpInfo samples",))


def _checked(verdict: Verdict) -> Iterator[str]:
    from porter.report.verdict import summary

    yield f"\n### Test plan\n\n{summary(verdict)}"
    if not verdict.dtypes:
        return
    counts = {c.dtype: c for c in verdict.old_path.counts} if verdict.old_path else {}
    yield "\n| dtype | tests passed | kernel calls | max ULP | CPU max ULP | samples matching CPU: before | after |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in verdict.dtypes:
        count = counts.get(row.dtype)
        ratios = (f"{count.old}/{count.samples}", f"{count.new}/{count.samples}") if count else ("", "")
        ulps = ("" if ulp is None else f"{ulp:.2f}" for ulp in (row.max_ulp, row.cpu_ulp))
        cells = (row.dtype, f"{row.passed}/{row.passed + row.failed}", str(row.kernel_calls), *ulps, *ratios)
        yield f"| {' | '.join(cells)} |"


def _named(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "nothing"
