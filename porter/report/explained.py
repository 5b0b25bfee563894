"""A plan's diff with the reason for each hunk behind its `@@`, where `git apply` reads nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from porter.aten.skip_lists import Change
from porter.core.dtypes import BY_METAL
from porter.core.hunks import Hunk, split_hunks
from porter.languages.identifiers import find_words
from porter.plan.plan import Plan
from porter.report.console import printable

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
        if entry.before != entry.after and _mentions(removed, entry.before) and _mentions(added, entry.after):
            yield f"{entry.name}: {entry.after} serves MPS now, not {entry.before.rpartition(': ')[2]}"
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
        name = entry.after.rpartition(": ")[2]
        if entry.before == entry.after and _mentions(hunk.text, name):
            yield f"{name}, which serves {entry.name}, launches a kernel and builds no graph"


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
