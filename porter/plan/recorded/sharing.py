"""One function for what ports write more than once: functions of a file whose bodies differ in names of kernels alone.

A helper that many operators share becomes a body of its own in each row that is ported. Where another port has written
that body already, both call one function with it, to which the names are passed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache, reduce
from itertools import pairwise

from porter.aten.implementations import list_host_sources
from porter.core.checkout import Checkout
from porter.core.edits import Edit, replace_spans
from porter.core.formatting import format_block
from porter.languages.identifiers import contains_identifier, is_word
from porter.languages.inlining import Parameter, list_call_sites, read_parameters
from porter.languages.lexer import TokenKind
from porter.languages.patterns import has_code, match_code
from porter.languages.source import Function, Source, parse_source
from porter.languages.statements import Statement, find_returns, read_statements
from porter.plan.recorded.literals import (
    OneBody,
    fill_body,
    is_string_parameter,
    list_plain,
    merge_bodies,
    read_shape,
)
from porter.plan.recorded.target import read_body

LAUNCHES = "getPipelineStateForFunc"
_SHORTEST = 15  # lines of a body that are worth a function of their own
_STRUCTURED = "TORCH_IMPL_FUNC"  # which returns nothing
_RETURNED = re.compile(r"(?:static\s+|inline\s+)*((?:const\s+)?[\w:]+(?:<.*>)?\s*[&*]?)\s*\Z", re.S)
_RETURN = "return $$value;"
_MADE = re.compile(r"(\s*(?:using namespace [\w:]+;)?)\s*((?:Tensor|auto) (\w+) = at::\w+\([^;]*\);)")
_REFERENCE = "Tensor&"


@dataclass(frozen=True)
class Member:
    """A function and what it does, as if it returned nothing where all that it returns is its `result`.

    The result is a parameter, or else the variable that `made` declares. If the function is a call of a `helper`, its
    body is that of the helper, with what it is passed. `whole` is the body with what it makes and returns.
    """

    function: Function
    body: str
    result: str = ""
    made: str = ""
    helper: Function | None = None
    whole: str = ""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that the body names; the variable that is made is one."""
        made = (Parameter(_REFERENCE, self.result),) if self.made else ()
        named = (*(_read_named(self.function) or ()), *made)
        return tuple(Parameter(each.type, each.name) for each in named if contains_identifier(self.body, each.name))

    def returning(self) -> Member:
        """The same with the result in its body, made and returned."""
        return replace(self, body=self.whole, result="", made="")


@dataclass(frozen=True)
class Kind:
    """What functions need to have in common to call one: all but the literals of their bodies, and checks of types."""

    shape: tuple[str, ...]
    returned: str
    parameters: frozenset[tuple[str, str]]


def list_launching(fork: Checkout, file: str) -> list[Function]:
    """The functions of a file that launch kernels, in more than a few lines."""
    source = parse_source(file, fork.read(file))
    bodies = ((each, read_body(source, each)) for each in source.functions())
    return [each for each, body in bodies if LAUNCHES in body and body.strip().count("\n") + 1 >= _SHORTEST]


def list_members(source: Source, launching: Sequence[Function]) -> Iterator[Member]:
    """The functions, but for those that others only pass names to: these stand for them."""
    for function in launching:
        yield from _list_callers(source, function) or (_read_member(source, function, read_body(source, function)),)


def _read_member(source: Source, function: Function, body: str, helper: Function | None = None) -> Member:
    whole = Member(function, body, helper=helper, whole=body)
    type_, returns = _read_returned(source, function), {each["value"] for each in find_returns(body)}
    result = returns.pop() if len(returns) == 1 else ""
    if not is_word(result):
        return whole
    bare = replace_spans(body, ((each.start, each.end, "return;") for each in find_returns(body)))
    if bare.rstrip().endswith("return;"):
        bare = f"{bare.rstrip().removesuffix('return;').rstrip()}\n"
    if type_ == _REFERENCE and Parameter(_REFERENCE, result) in (_read_named(function) or ()):
        return replace(whole, body=bare, result=result)
    made = _MADE.match(bare)
    if type_ != "Tensor" or not made or made[3] != result or has_code(bare[made.end() :], f"{result} ="):
        return whole
    return replace(whole, body=made[1] + bare[made.end() :], result=result, made=made[2])


def _list_callers(source: Source, helper: Function) -> tuple[Member, ...]:
    """The functions that are no more than a call of a static one, if only they use that and a port named it so."""
    references = source.references(helper.name) if helper.static and not helper.wrapper else ()
    users = [each.start for each in references if not helper.start <= each.start < helper.body_start]
    callers = [each for each in source.functions() if any(each.body_start < at < each.body_end for at in users)]
    found = [_read_caller(source, helper, each) for each in callers]
    members = tuple(each for each in found if each)
    is_made = bool(members) and helper.name in list_shared_names([each.function.name for each in members])
    return members if is_made and len(members) == len(found) == len(users) else ()


def _read_caller(source: Source, helper: Function, function: Function) -> Member | None:
    """A function that is no more than a call of a helper, which it passes its own parameters and plain literals.

    It may make the result before and return it behind.
    """
    body = read_body(source, function)
    site, parameters = next(list_call_sites(body, helper.name), None), _read_named(helper)
    if site is None or site.types or parameters is None or site.statement not in read_statements(body):
        return None
    names = [each.name for each in parameters]
    passed = dict(zip(names, site.arguments, strict=True)) if len(names) == len(site.arguments) else {}
    strings = {each.name: passed.get(each.name, "") for each in parameters if is_string_parameter(each.type)}
    literals = list(list_plain(strings.values()))
    rest = [name for name in names if name not in strings]
    if not passed or len(literals) != len(strings) or any(passed[name] != name for name in rest):
        return None
    before, behind = body[: site.statement.start], body[site.statement.end :].strip()
    filled = fill_body(read_body(source, helper), strings)
    if not before.strip() and not behind:
        return _read_member(source, function, filled, helper)
    made, returned = _MADE.fullmatch(before.rstrip()), match_code(behind, _RETURN)
    if returned is None or (before.strip() and (made is None or made[3] != returned["value"])):
        return None
    return Member(function, filled, returned["value"], made[2] if made else "", helper)


def _read_named(function: Function) -> tuple[Parameter, ...] | None:
    """The parameters of a function; None if it has one without a name."""
    parameters = read_parameters(function)
    return parameters if all(each.name for each in parameters) else None


def read_kind(source: Source, member: Member) -> Kind | None:
    """What a function needs to have in common with others; None of one that cannot call another in its place."""
    returned = _read_returned(source, member.function)
    if returned is None or _read_named(member.function) is None:
        return None
    types = {_REFERENCE: f"const {_REFERENCE}"}  # a tensor can be passed as one that is constant
    named = frozenset((types.get(each.type, each.type), each.name) for each in member.parameters)
    type_ = "void" if member.result else returned
    return Kind(read_shape(without_checks(member.body)), type_, named)


def _read_returned(source: Source, function: Function) -> str | None:
    """The type that a function returns; None where that is not plain to see."""
    head = source.text[function.start : function.body_start].strip()
    if function.wrapper:
        return "void" if function.wrapper == _STRUCTURED else None
    before = head[: len(head) - len(function.params) - 2].rstrip()
    if not head.endswith(")") or not before.endswith(function.name):
        return None
    returned = _RETURNED.fullmatch(before.removesuffix(function.name))
    return " ".join(returned[1].split()).replace(" &", "&") if returned else None


def read_scope(source: Source, offset: int) -> tuple[str, ...]:
    """The namespaces, and the conditions of the preprocessor, that a place of a file is within."""
    conditions = list[str]()
    for token in source.tokens:
        if token.start >= offset:
            break
        if token.kind is TokenKind.DIRECTIVE:
            text = token.text[1:].strip()
            if text.startswith("if"):
                conditions.append(text)
            elif text.startswith("el"):
                conditions[-1:] = [f"{conditions[-1]} {text}"] if conditions else []
            elif text.startswith("endif"):
                conditions[-1:] = []
    return (*source.list_scopes(offset), *conditions)


_MARKS = ("mps", "impl", "template")  # of what a function is, not of what it computes
_DIRECTIONS = ("forward", "backward", "out")
_ENDINGS = ("_mps_impl", "_mps_template")
_WORD = re.compile(r"\d+d(?![a-z0-9])|[a-zA-Z0-9]+?(?=\d+d(?![a-z0-9])|_|$)")


def list_shared_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names for what these functions call, the best first."""
    heads = [_list_words(name) for name in names]
    shared = reduce(_keep_common, heads)
    words = (word for word in shared if word not in _DIRECTIONS)
    if not any(one.islower() and other.islower() for word in words for one, other in pairwise(word)):
        # The words that tell a function from others, and count no dimensions.
        telling = ([word for word in head if word not in shared and not _counts_dimensions(word)] for head in heads)
        own = dict.fromkeys(map(_join, telling))
        shared = [*own, *shared]
    base = _join(shared)
    return tuple(f"{base}{ending}" for ending in _ENDINGS) if base[:1].islower() else ()


def _list_words(name: str) -> list[str]:
    words = [word for word in _WORD.findall(name) if word not in _MARKS]
    return [*(word for word in words if word not in _DIRECTIONS), *(word for word in _DIRECTIONS if word in words)]


def _counts_dimensions(word: str) -> bool:
    return word.endswith("d") and word[:-1].isdecimal()


def _keep_common(one: list[str], other: list[str]) -> list[str]:
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return [word for block in blocks for word in one[block.a : block.a + block.size]]


def _join(words: Sequence[str]) -> str:
    """Words as one name, in which a number of dimensions follows its word at once."""
    return "".join(word if not at or _counts_dimensions(word) else f"_{word}" for at, word in enumerate(words))


_CHECK = (
    "TORCH_CHECK($one.scalar_type() == $other.scalar_type(), $$words, $other.scalar_type(), $$but, $one.scalar_type());"
)


@lru_cache(maxsize=1024)
def without_checks(body: str) -> str:
    """A body without checks that two tensors have one type."""
    for each in reversed(_list_checks(body)):
        body = body[: each.start].rstrip() + body[each.end :]
    return body


def level_checks(bodies: Sequence[str]) -> list[str] | None:
    """Bodies that are the same without checks, with all that the one with the most has.

    None if another has one that this lacks.
    """
    checks = [[" ".join(body[each.start : each.end].split()) for each in _list_checks(body)] for body in bodies]
    most = max(range(len(bodies)), key=lambda at: len(checks[at]))
    if any(each not in checks[most] for listed in checks for each in listed):
        return None
    model = bodies[most]
    places = [(_count_tokens(model[: each.start]), each) for each in _list_checks(model)]
    return [
        body if checks[at] == checks[most] else _add(without_checks(body), model, places)
        for at, body in enumerate(bodies)
    ]


def _add(body: str, model: str, places: Sequence[tuple[int, Statement]]) -> str:
    """A body with the checks of another, each before the token that it has that place before."""
    for before, check in places:
        code = Source.parse("", body).code
        at = code[before].start if before < len(code) else len(body)
        body = f"{body[:at]}{model[check.start : check.end]}\n  {body[at:]}"
    return body


def _count_tokens(text: str) -> int:
    return sum(
        each.kind not in (TokenKind.SPACE, TokenKind.COMMENT, TokenKind.DIRECTIVE)
        for each in Source.parse("", text).tokens
    )


def _list_checks(body: str) -> list[Statement]:
    """The checks that two tensors have one type, as ports write them."""
    listed = []
    for each in read_statements(body) if "TORCH_CHECK" in body else ():
        check = match_code(body[each.start : each.end], _CHECK)
        if check and check["words"] == f'"Expected {check["one"]} to have dtype "':
            listed.append(each)
    return listed


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
