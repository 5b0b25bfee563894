"""One function for what ports write more than once: functions of a file whose bodies differ in names of kernels alone.

A helper that many operators share becomes a body of its own in each row that is ported. Where another port has written
that body already, both call one function with it, to which the names are passed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from porter.aten.implementations import list_host_sources
from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.core.formatting import format_block
from porter.languages.identifiers import contains_identifier
from porter.languages.inlining import Parameter
from porter.languages.source import Function, Source, parse_source
from porter.plan.native.sharing.literals import OneBody, merge_bodies
from porter.plan.native.sharing.members import (
    Kind,
    Member,
    level_checks,
    list_launching,
    list_members,
    list_shared_names,
    read_kind,
    read_scope,
)


def share_bodies(fork: Checkout, file: str, before: str) -> Iterator[Edit]:
    """Makes functions call one that has their body, if a port has written one of them: `before` has no such text."""
    source = parse_source(file, fork.read(file))
    launching = list_launching(fork, file)
    written = [each for each in launching if source.text[each.start : each.end] not in before]
    if not written:
        return
    # A helper that a port has filled is not one more of its callers: they can call what other ports do without it.
    found = (
        each for each in list_members(source, launching) if each.function not in written or not each.function.static
    )
    for kind, several in _group(source, found):
        for members in _split(source, several):
            if len(members) > 1 and any(each.function in written for each in members):
                yield from _share(fork, source, kind, members)


def _group(source: Source, members: Iterable[Member]) -> Iterator[tuple[Kind, list[Member]]]:
    """Several functions of one kind each. If all make their results, the function that they call does."""
    groups: dict[Kind, list[Member]] = {}
    for member in members:
        if kind := read_kind(source, member):
            groups.setdefault(kind, []).append(member)
    for kind, found in groups.items():
        if all(each.made and each.whole for each in found):
            yield from _group(source, [each.returning() for each in found])
        elif len(found) > 1:
            yield kind, found


def _split(source: Source, members: Sequence[Member]) -> Collection[Sequence[Member]]:
    """The functions in each namespace, and under each condition, by themselves: one sees what another does."""
    scopes: dict[tuple[str, ...], list[Member]] = {}
    for each in members:
        scopes.setdefault(read_scope(source, each.function.start), []).append(each)
    return scopes.values()


def _share(fork: Checkout, source: Source, kind: Kind, members: Sequence[Member]) -> Iterator[Edit]:
    """Edits functions of one kind to be calls of one, which stands before the first of them."""
    file, first = source.path, min((each.function for each in members), key=lambda each: each.start)
    parameters = _list_parameters(members)
    bodies = level_checks([each.body for each in members])
    made = merge_bodies(bodies, {each.name for each in parameters}) if bodies else None
    helpers = {each.helper.start: each.helper for each in members if each.helper}
    name = _choose_name(fork, [each.function.name for each in members], [each.name for each in helpers.values()])
    if made is None or name is None or not all(_serves(source, each, members) for each in helpers.values()):
        return
    yield from _edit_helper(fork, source, first, list(helpers.values()), _write_helper(kind, name, parameters, made))
    passed = [each.name for each in parameters]
    for member, literals in zip(members, made.arguments, strict=True):
        function, call = member.function, f"{name}({', '.join((*passed, *literals))});"
        head = source.text[function.start : function.body_start]
        text = format_block(fork, file, f"{head}{{\n{_write_call(kind, member, call)}\n}}")
        if text != source.text[function.start : function.end]:
            yield Edit(file, function.start, function.end, text)


def _serves(source: Source, helper: Function, members: Sequence[Member]) -> bool:
    """Whether no other function calls a helper."""
    served = [each for each in members if each.helper == helper]
    return len(source.references(helper.name)) == len(served) + 1


def _list_parameters(members: Sequence[Member]) -> list[Parameter]:
    """The parameters of the function that members call: constant where those of one are."""
    found = [{each.name: each for each in member.parameters} for member in members]
    first = next((at for at, each in enumerate(members) if not each.made), 0)
    return [max((named[name] for named in found), key=lambda each: len(each.type)) for name in found[first]]


def _write_call(kind: Kind, member: Member, call: str) -> str:
    if member.result:
        return f"{member.made}\n{call}\nreturn {member.result};"
    return call if kind.returned == "void" else f"return {call}"


def _write_helper(kind: Kind, name: str, parameters: Sequence[Parameter], made: OneBody) -> str:
    declared = ", ".join((*(f"{each.type} {each.name}" for each in parameters), *made.parameters))
    return f"static {kind.returned} {name}({declared}) {{{made.text}}}"


def _edit_helper(
    fork: Checkout, source: Source, first: Function, helpers: Sequence[Function], written: str
) -> Iterator[Edit]:
    """Puts a function before another, in the place of those that had its body; one that stands there is edited."""
    file, text = source.path, format_block(fork, source.path, written)
    kept = next((each for each in helpers if each.start < first.start), None)
    if kept is None:
        yield Edit(file, first.leading, first.leading, f"{text}\n\n")
    elif text != source.text[kept.start : kept.end]:
        yield Edit(file, kept.start, kept.end, text)
    for each in helpers:
        if each is not kept:
            behind = source.text[each.end :]
            yield Edit(file, each.leading, each.end + len(behind) - len(behind.lstrip("\n")), "")


def _choose_name(fork: Checkout, functions: Sequence[str], helpers: Sequence[str]) -> str | None:
    """A name that no host file has, but for the functions that it is given to in the place of one that had it."""
    texts = [fork.read(path) for path in list_host_sources(fork)]
    for name in list_shared_names(functions):
        if name in helpers or not any(contains_identifier(text, name) for text in texts):
            return name
    return None
