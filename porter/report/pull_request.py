"""The text of a pull request, in Markdown: for a reader who knows PyTorch and has never seen porter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from porter.core.dtypes import BY_METAL
from porter.plan.plan import Plan, PlannedFunctor, RejectedCandidate
from porter.report.console import printable, show_ulp
from porter.report.verdict import describe_backend, ran_on_apple
from porter.verdict.behavior import PathCount
from porter.verdict.result import DEFAULT, Verdict

_CODE = re.compile(r"\bPTR\d{3} ")  # of a message, which only a user of porter can look up
_VERIFIED = "How this was verified"
_MOST_FAILURES = 5
_MOST_REASONS = 8
_MOST_NAMES = 3  # of operators in a title
_AUTHOR = "Authored with porter, a program that wrote this code and this text from the old code and from runs of it."
_ARITHMETIC = "fused multiply-adds, flushed denormals, other orders of operations"


def pull_request(plan: Plan, verdict: Verdict | None, rejected: Sequence[RejectedCandidate] = ()) -> str:
    """The title, a blank line and the body."""
    body = _body(plan, verdict, rejected, "##")
    how = f"{_AUTHOR} `porter migrate {plan.op} --write` writes it again."
    return _finish([f"[MPS] Migrate {plan.op} to Metal", "", *body, "", how])


def group_pull_request(
    family: str, lines: int, ports: Sequence[tuple[Plan, Verdict | None, Sequence[RejectedCandidate]]]
) -> str:
    """The same for ports of a family that are reviewed together, with the command that writes them."""
    names = [plan.op for plan, _, _ in ports]
    operators = ", ".join(names) if len(names) <= _MOST_NAMES else f"{len(names)} operators of {family}"
    how = f"{_AUTHOR} `porter migrate {' '.join(names)} --write` writes it again. It changes {lines} lines."
    parts = (line for port in ports for line in ("", f"## {port[0].op}", "", *_body(*port, "###")))
    return _finish([f"[MPS] Migrate {operators} to Metal", "", how, *parts])


def _finish(lines: Iterable[str]) -> str:
    return _CODE.sub("", printable("\n".join(lines), keep="\n\t"))


def _body(plan: Plan, verdict: Verdict | None, rejected: Sequence[RejectedCandidate], heading: str) -> Iterator[str]:
    if verdict and not verdict.ok:
        tests = "1 test fails" if verdict.failed == 1 else f"{verdict.failed} tests fail"
        yield from (f"**Not ready: {tests}**, see {_VERIFIED}.", "")
    yield from _describe_move(plan)
    for title, lines in (
        ("New kernels", _list_kernels(plan, rejected)),
        ("Supported types and backward compatibility", _describe_types(plan, verdict)),
        ("Accuracy, old against new", _describe_accuracy(verdict)),
        (_VERIFIED, _describe_proof(verdict)),
        ("What was not verified", _list_unverified(verdict)),
        ("Test lists", _list_entries(plan, verdict)),
    ):
        if shown := [*lines]:
            yield from ("", f"{heading} {title}", "", *shown)


def _describe_move(plan: Plan) -> Iterator[str]:
    """Which rows leave MPSGraph, and what serves them now."""
    moved = [entry for entry in plan.entries if entry.before != entry.after]
    kept = [entry for entry in plan.entries if entry.before == entry.after]
    if moved:
        stubs = ", ".join(f"`{stub.stub}`" for stub in plan.stubs)
        behind = f" behind {stubs}" if stubs else ""
        names = ", ".join(f"`{e.name}`" for e in moved)
        yield f"Moves {names} from MPSGraph to a native Metal kernel{behind}."
        yield ""
        yield from (f"- `{e.name}`: `{e.before}` becomes `{e.after}`" for e in moved)
    for number, entry in enumerate(kept):
        if moved and not number:
            yield ""
        function = entry.after.kernel
        yield f"`{function}`, which serves `{entry.name}`, launches a native Metal kernel and builds no MPSGraph."
    if plan.unported:
        yield from ("", "Not moved:", "")
        yield from (f"- {each.reason} ({each.place})" for each in plan.unported)


def _list_kernels(plan: Plan, rejected: Sequence[RejectedCandidate]) -> Iterator[str]:
    for functor in plan.functors:
        # The types that a kernel is instantiated for: what it takes, and what it returns where that is another
        pairs = [
            (BY_METAL[r.input].torch, BY_METAL[r.output].torch) for r in plan.registrations if r.functor == functor.name
        ]
        shown = [given if given == returned else f"{given} to {returned}" for given, returned in pairs]
        types = ", ".join(list(dict.fromkeys(shown)) or list(functor.dtypes))
        is_kernel = not any(registered.functor == functor.name for registered in plan.registrations)
        name = functor.name if is_kernel else f"{functor.name}_functor"
        source = "recorded runs of the MPSGraph code" if is_kernel else _describe_origins(functor)
        yield f"- `{name}` in `{functor.file}`{f', for {types}' if types else ''}; written from {source}"
    if not plan.functors:
        yield "None: kernels that are there already serve it."
    for loser in rejected:
        yield f"- not {loser.source.for_reviewers}: it fails {_count(loser.failed, 'test')} ({loser.reason})"
        if loser.is_of_library:
            yield f"  Whoever prefers one function to two can mend it there, so that `{loser.functor}` calls it."


def _describe_origins(functor: PlannedFunctor) -> str:
    """The sources of the code, and for which elements where there are several."""
    kinds: dict[str, list[str]] = {}
    for origin in functor.origins:
        kinds.setdefault(origin.source.for_reviewers, []).extend(kind.value for kind in origin.kinds)
    if len(kinds) == 1:
        return next(iter(kinds))
    return "; ".join(f"{source} ({', '.join(of)} elements)" for source, of in kinds.items())


def _describe_types(plan: Plan, verdict: Verdict | None) -> Iterator[str]:
    paths = verdict.old_path if verdict else None
    if paths and paths.lost:
        yield "**Needs a decision**, as it breaks what works on MPS today:"
        yield from ("", *(f"- {line}" for line in paths.lost))
        yield ""
        yield "Either this is wanted (label `topic: bc breaking`), or the kernel has to take these types too."
    elif paths:
        yield f"No type or sample that worked is refused now, in the {_count_samples(paths.counts)} compared."
    else:
        yield "Not compared with the old implementation."
    if paths and paths.gained:
        yield from ("", "New on MPS:", "", *(f"- {line}" for line in paths.gained))
    if plan.notes:
        yield from ("", "Notes for review:", "", *(f"- {note}" for note in plan.notes))


def _describe_accuracy(verdict: Verdict | None) -> Iterator[str]:
    if verdict is None or not verdict.dtypes:
        return
    counts = {count.dtype: count for count in verdict.old_path.counts} if verdict.old_path else {}
    yield "| dtype | samples that match the CPU: MPSGraph | Metal | largest error in ULP: MPSGraph | Metal | CPU |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for row in verdict.dtypes:
        count = counts.get(row.dtype)
        ratios = (f"{count.old}/{count.samples}", f"{count.new}/{count.samples}") if count else ("", "")
        errors = (count.old_ulp if count else None, row.max_ulp, row.cpu_ulp)
        yield f"| {' | '.join((row.dtype, *ratios, *map(show_ulp, errors)))} |"
    yield ""
    yield (
        "Errors are against float64. Those of MPSGraph are of a model of its operations, computed on the CPU; Apple's "
        "own may differ."
    )
    if verdict.old_path:
        elsewhere = {*verdict.old_path.lost, *verdict.old_path.gained, *verdict.old_path.unknown}
        lines = [line for line in verdict.old_path.changes if line not in elsewhere]
        yield from ("", "Results that change:", "", *(f"- {line}" for line in lines)) if lines else (
            "", "No result changes by more than its rounding.",
        )  # fmt: skip


def _describe_proof(verdict: Verdict | None) -> Iterator[str]:
    if verdict is None:
        yield "Not verified."
        return
    tests = f"{verdict.passed} passed, {verdict.failed} failed, {verdict.skipped} skipped"
    yield f"The tests ran {describe_backend(verdict.backend)}"
    yield ""
    yield f"{tests}; {_count(verdict.kernel_calls, 'call')} of the new kernels."
    if verdict.dtypes:
        yield ""
        yield from ("| dtype | tests passed | failed | skipped | kernel calls |", "| --- | --- | --- | --- | --- |")
        for row in verdict.dtypes:
            yield f"| {row.dtype} | {row.passed} | {row.failed} | {row.skipped} | {row.kernel_calls} |"
    if verdict.failures:
        yield ""
        yield from (f"- fails: `{f.test}`: {_first_line(f.reason)}" for f in verdict.failures[:_MOST_FAILURES])
    if len(verdict.failures) > _MOST_FAILURES:
        yield f"- and {len(verdict.failures) - _MOST_FAILURES} more"
    if verdict.failed_before:
        yield ""
        yield "Failed before this change too, for the same reason, in values that no new kernel computes:"
        yield ""
        yield from (f"- `{f.test}`: {_first_line(f.reason)}" for f in verdict.failed_before)


def _list_unverified(verdict: Verdict | None) -> Iterator[str]:
    if verdict is None:
        return
    if not ran_on_apple(verdict.backend):
        yield "- that Apple's compiler takes the kernels, and that an Apple GPU computes the same values"
    yield "- speed: nothing was measured"
    if verdict.arithmetic == DEFAULT:
        yield f"- other arithmetic that a GPU may use: {_ARITHMETIC}"
    if verdict.old_path:
        yield from (f"- the old path on some samples: {line}" for line in verdict.old_path.unknown)
    for skip in verdict.skips[:_MOST_REASONS]:
        yield f"- {_count(skip.tests, 'test')} skipped: {_first_line(skip.reason)}"
    yield from (f"- note: {_first_line(note)}" for note in verdict.notes[:_MOST_REASONS])


def _list_entries(plan: Plan, verdict: Verdict | None) -> Iterator[str]:
    """What changes in the test lists, and the tests that prove it."""
    entries = [change for change in plan.lists if not change.is_kept]
    if entries and verdict and verdict.ok:
        yield f"The {_count(verdict.passed, 'test')} above passed with the lists as this change leaves them:"
        yield ""
    yield from (f"- `{each.list}`: `{each.entry}` {each.outcome} ({each.why})" for each in entries)


def _count_samples(counts: Sequence[PathCount]) -> str:
    return _count(sum(count.samples for count in counts), "sample")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
