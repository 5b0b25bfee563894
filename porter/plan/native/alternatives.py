"""A helper that is called once for each result: one launch makes all, if its other code is the same for each call."""

from __future__ import annotations

from collections.abc import Collection

from porter.core.errors import PorterError
from porter.languages.lexer import TokenKind
from porter.languages.source import Source
from porter.metal.native.host_values import list_results
from porter.plan.native.body import replace_graph
from porter.plan.native.target import Target

_RESULT = "RESULT"  # in the place of all names of results
_COMMON = ("numel", "dim", "sizes", "scalar_type")  # what results have in common


def refuse_differing(target: Target, needed: Collection[str]) -> None:
    """Raises PTR405 for a helper whose code besides the graph depends on the result that it is called for."""
    bodies = (target.body, *target.alternatives)
    plain = {_normalize(replace_graph(each, target.place, needed).code, target) for each in bodies}
    if target.alternatives and (len(plain) > 1 or any(map(_asks_more, plain))):
        what = f"{target.function.name} calls a helper for each result, which does more than to run a graph"
        raise PorterError("PTR405", what, target.place, "See docs/errors/PTR405.md.")


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
