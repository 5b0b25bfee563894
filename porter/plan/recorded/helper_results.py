"""A result that another function of the file makes by a graph: its checks and its allocation go to the row's function.

The launch makes what the graph did, with the other results.
"""

from __future__ import annotations

from collections.abc import Collection

from porter.core.checkout import Checkout
from porter.core.edits import replace_spans
from porter.core.errors import Place, PorterError
from porter.languages.assignments import read_assignments
from porter.languages.identifiers import contains_identifier
from porter.languages.inlining import (
    complete_call,
    find_call_site,
    find_free_name,
    inline_call,
    list_locals,
    read_parameters,
    rename,
)
from porter.languages.lexer import TokenKind
from porter.languages.source import Source, parse_source
from porter.languages.statements import read_statements
from porter.loops.program import Programs
from porter.metal.codegen.host_values import Names, list_results
from porter.plan.recorded.corrections import create_results
from porter.plan.recorded.host_function import HostFunction, replace_graph
from porter.plan.recorded.target import RUN, Target, list_enumerators, reaches_graph, read_body, read_returned


def make_results(checkout: Checkout, target: Target, programs: Programs, names: Names) -> str:
    """The body of a target with the code of functions that make its results, but for their graphs. Raises PTR406."""
    source = parse_source(target.file, checkout.read(target.file))
    results, body = list_results(names.variables).values(), target.body
    for each in reversed(read_assignments(body)):
        called = each.value.partition("(")[0].rpartition("::")[2]
        if each.name in results and each.type in ("auto", "Tensor") and _runs_graph(source, called):
            text = _rename_returned(_inline(source, each.value, target), each.name, target.place)
            text = create_results(text, programs, names)
            host = replace_graph(text, target.place, {*names.variables.values(), each.name})
            text = _without_returns(host, each.name, target.place)
            before, behind = body[: each.statement.start], body[each.statement.end :]
            # Code whose variables do not hide, or collide with, those of the rest of the body
            rest = before + behind
            taken = (list_locals(text) & list_locals(rest)) - set({each.name})
            body = before + rename(text, {name: find_free_name(name, text + rest) for name in taken}).strip() + behind
    return body


def _runs_graph(source: Source, name: str) -> bool:
    return any(reaches_graph(source, function) for function in source.functions_by_name.get(name, ()))


def _inline(source: Source, call: str, target: Target) -> str:
    """The code that a call runs, as far as the graph."""
    text = f"return {call};"
    for _ in source.functions_by_name:
        if contains_identifier(text, RUN):
            return text
        made = next(filter(None, (_inline_one(source, text, name) for name in source.functions_by_name)), None)
        if made is None:
            break
        text = made
    raise _refuse(call, target.place)


def _inline_one(source: Source, text: str, name: str) -> str | None:
    """A text with a function in the place of its call, if what is returned is what that returns, of a graph."""
    site = find_call_site(text, name) if contains_identifier(text, name) else None
    for function in source.functions_by_name[name] if site and site.is_returned else ():
        assert site is not None
        call = complete_call(site, read_parameters(function))
        if call and reaches_graph(source, function):
            body, distinct = read_body(source, function), list_enumerators(source.text)
            return inline_call(text, call, body, read_parameters(function), distinct, function.name)
    return None


def _rename_returned(text: str, result: str, place: Place) -> str:
    """Code with the variable that it returns at its end called as the result. Raises PTR406."""
    returned = read_returned(text)
    if len(returned) != 1 or result in list_locals(text):
        raise _refuse(result, place)
    return rename(text, {returned[0]: result})


def _without_returns(host: HostFunction, result: str, place: Place) -> str:
    """Code that goes on where it returned its result, at its end or, filled, for no elements. Raises PTR406."""
    leave = f"return {result};"
    early = (each.kept for each in host.exits if each.leave == leave and "" not in each.empty)
    last = read_statements(host.text)[-1]
    spans = {(host.at, host.at + 1)}
    spans |= {(kept.start, kept.end) if kept.is_alone else kept.leave for kept in early if kept}
    spans |= {(last.start, last.end)} if host.text[last.start : last.end] == leave else set()
    text = replace_spans(host.text, ((start, end, "") for start, end in sorted(spans)))
    if contains_identifier(text, "return"):
        raise _refuse(result, place)
    return text


def _refuse(what: str, place: Place) -> PorterError:
    message = f"what makes `{what}` cannot be put in its place"
    return PorterError("PTR406", message, place, "`porter explain PTR406` says more.")


_RESULT = "RESULT"  # in the place of all names of results
_COMMON = ("numel", "dim", "sizes", "scalar_type")  # what results have in common


def refuse_differing(target: Target, needed: Collection[str]) -> None:
    """Raises PTR405 for a helper whose code besides the graph depends on the result that it is called for."""
    bodies = (target.body, *target.alternatives)
    plain = {_normalize(replace_graph(each, target.place, needed).text, target) for each in bodies}
    if target.alternatives and (len(plain) > 1 or any(map(_asks_more, plain))):
        what = f"{target.function.name} calls a helper for each result, which does more than to run a graph"
        raise PorterError("PTR405", what, target.place, "`porter explain PTR405` says more.")


def _normalize(body: str, target: Target) -> tuple[str, ...]:
    """The tokens of a body with one name for all results, and without what it returns and the words of its messages."""
    results, tokens = list_results(target.variables).values(), list[str]()
    for token in Source.parse("", body).code:
        if token.text == ";" or "return" not in tokens[-1:]:
            text = '""' if token.kind is TokenKind.STRING else token.text
            tokens.append(_RESULT if text in results else text)
    return tuple(tokens)


def _asks_more(tokens: tuple[str, ...]) -> bool:
    """Whether tokens say more of a result than what all of them have in common."""
    plain = [(".", member, "(", ")") for member in _COMMON]
    return any(token == _RESULT and tokens[at + 1 : at + 5] not in plain for at, token in enumerate(tokens))
