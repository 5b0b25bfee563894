"""Functions that launch kernels, and what one needs to have in common with others to call one function with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from porter.core.checkout import Checkout
from porter.languages.identifiers import contains_identifier
from porter.languages.inlining import Parameter, list_call_sites, read_parameters
from porter.languages.lexer import TokenKind
from porter.languages.source import Function, Source, parse_source
from porter.languages.statements import read_statements
from porter.plan.native.sharing.checks import without_checks
from porter.plan.native.sharing.literals import fill_body, is_string_parameter, list_plain, read_shape
from porter.plan.native.sharing.names import list_shared_names
from porter.plan.native.target import read_body

LAUNCHES = "getPipelineStateForFunc"
_SHORTEST = 15  # lines of a body that are worth a function of their own
_STRUCTURED = "TORCH_IMPL_FUNC"  # which returns nothing
_RETURNED = re.compile(r"(?:static\s+|inline\s+)*((?:const\s+)?[\w:]+(?:<.*>)?\s*[&*]?)\s*\Z", re.S)
_RETURN = re.compile(r"\breturn\b\s*([^;]*?)\s*;")
_LAST_RETURN = re.compile(r"\s*\breturn\b[^;]*;\s*\Z")
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
    return [each for each in source.functions() if _is_long(read_body(source, each))]


def _is_long(body: str) -> bool:
    return LAUNCHES in body and body.strip().count("\n") + 1 >= _SHORTEST


def list_members(source: Source, launching: Sequence[Function]) -> Iterator[Member]:
    """The functions, but for those that others only pass names to: these stand for them."""
    for function in launching:
        yield from _list_callers(source, function) or (_read_member(source, function, read_body(source, function)),)


def _read_member(source: Source, function: Function, body: str, helper: Function | None = None) -> Member:
    whole = Member(function, body, helper=helper, whole=body)
    type_, returns = _read_returned(source, function), {each[1] for each in _RETURN.finditer(body)}
    result = returns.pop() if len(returns) == 1 else ""
    if not re.fullmatch(r"\w+", result):
        return whole
    bare = _LAST_RETURN.sub("\n", _RETURN.sub("return;", body))
    if type_ == _REFERENCE and Parameter(_REFERENCE, result) in (_read_named(function) or ()):
        return replace(whole, body=bare, result=result)
    made = _MADE.match(bare)
    if type_ != "Tensor" or not made or made[3] != result or re.search(rf"\b{result}\s*=(?!=)", bare[made.end() :]):
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
    if site is None or parameters is None or site.statement not in read_statements(body):
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
    made, returned = _MADE.fullmatch(before.rstrip()), _RETURN.fullmatch(behind)
    if returned is None or (before.strip() and (made is None or made[3] != returned[1])):
        return None
    return Member(function, filled, returned[1], made[2] if made else "", helper)


def _read_named(function: Function) -> tuple[Parameter, ...] | None:
    """The parameters of a function; None if it has one without a name."""
    parameters = read_parameters(function)
    return parameters if all(each.name for each in parameters) else None


def read_kind(source: Source, member: Member) -> Kind | None:
    """What a function needs to have in common with others; None of one that cannot call another in its place."""
    returned = _read_returned(source, member.function)
    if returned is None or _read_named(member.function) is None:
        return None
    named = frozenset((_read_type(each), each.name) for each in member.parameters)
    type_ = "void" if member.result else returned
    return Kind(read_shape(without_checks(member.body)), type_, named)


def _read_type(parameter: Parameter) -> str:
    """The type of a parameter; a tensor can be passed as one that is constant."""
    return f"const {_REFERENCE}" if parameter.type == _REFERENCE else parameter.type


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
