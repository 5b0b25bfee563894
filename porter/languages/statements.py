"""The statements of a function's body, with exact spans: of C++ and Objective-C++ alike, by their brackets alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from porter.languages.lexer import Token, TokenKind
from porter.languages.patterns import Found, find_code
from porter.languages.source import Source

_WITH_HEAD = frozenset(("if", "for", "while", "switch"))
POOL = "autoreleasepool"
DISPATCH = "dispatch"
_RETURN = "return"
_OF_LAMBDAS = ("(", "->", "::", "<", ">", "*", "&", ",")  # before a lambda's body, besides names
_MACRO = "AT_DISPATCH_"  # how ATen's macros begin that run a lambda for an element type


@dataclass(frozen=True)
class Statement:
    """A statement. `keyword` is `if`, `for`, `while`, `switch`, `do`, `autoreleasepool`, `dispatch`, `{`, or empty for
    others. A `dispatch` is a macro that runs the lambda which is its last argument for an element type.

    `head` is the span within the parentheses after the keyword, of a `dispatch` as far as the lambda's body. `body` and
    `otherwise` (of an `else`) are the statements within, `inner` is the span between the braces, if there are any.
    """

    keyword: str
    start: int
    end: int
    head: tuple[int, int] | None = None
    body: tuple[Statement, ...] = ()
    otherwise: tuple[Statement, ...] = ()
    inner: tuple[int, int] | None = None

    def walk(self) -> Iterator[Statement]:
        """Yields the statement, then those within, in order."""
        yield self
        for each in (*self.body, *self.otherwise):
            yield from each.walk()


def read_statements(text: str) -> tuple[Statement, ...]:
    """The statements of a text, such as that between the braces of a body. Raises PTR030 where brackets do not pair."""
    source = Source.parse("", text)
    return tuple(_Reader(source).read(0, len(source.code)))


def walk_statements(text: str) -> Iterator[Statement]:
    """Yields all statements of a text, each before those within it. Raises PTR030 where brackets do not pair."""
    for statement in read_statements(text):
        yield from statement.walk()


def find_returns(text: str) -> Iterator[Found]:
    """Yields the `return` statements of a text with their `value`, none of its lambdas and blocks."""
    lambdas = list(list_lambdas(text)) if _RETURN in text else []
    for leaving in find_code(text, f"{_RETURN} $$value;"):
        if not any(each.start < leaving.start < each.end for each in lambdas):
            yield leaving


@dataclass(frozen=True)
class Lambda:
    """A lambda or a block of a text, from its capture on, and the names of its parameters."""

    start: int
    end: int
    parameters: frozenset[str]


def list_lambdas(text: str) -> Iterator[Lambda]:
    """Yields the lambdas and blocks of a text, each before those within it."""
    source = Source.parse("", text)
    code, partners = source.code, source.partners
    for at, token in enumerate(code):
        before = code[at - 1] if at else None
        is_operand = before is not None and (before.kind is not TokenKind.PUNCTUATION or before.text in (")", "]"))
        if token.text not in ("[", "^") or (is_operand and before and before.text != _RETURN):
            continue
        first = after = partners[at] + 1 if token.text == "[" else at + 1
        while after < len(code) and (code[after].kind is TokenKind.IDENTIFIER or code[after].text in _OF_LAMBDAS):
            after = partners[after] + 1 if code[after].text == "(" else after + 1
        if after < len(code) and code[after].text == "{":
            pairs = pairwise(code[first:after])
            names = (name.text for name, behind in pairs if name.kind is TokenKind.IDENTIFIER and behind.text in ",)")
            yield Lambda(token.start, code[partners[after]].end, frozenset(names))


def name_tokens(text: str) -> Iterator[Token]:
    """The identifiers of a text that are no member's and not qualified: those that may be local names."""
    code = Source.parse("", text).code
    for at, token in enumerate(code):
        before = code[at - 1].text if at else ""
        if token.kind is TokenKind.IDENTIFIER and before not in (".", "->", "::"):
            yield token


@dataclass(frozen=True)
class _Reader:
    source: Source

    def read(self, at: int, stop: int) -> Iterator[Statement]:
        while at < stop:
            statement, at = self._statement(at, stop)
            yield statement

    def _statement(self, at: int, stop: int) -> tuple[Statement, int]:
        """The statement that starts at a token, and the index of the token after it."""
        code = self.source.code
        first = code[at]
        if first.text == "{":
            return self._braced("{", first.start, at)
        if first.text == "@" and at + 1 < stop and code[at + 1].text == POOL:
            return self._braced(POOL, first.start, at + 2)
        if first.text == "do" and at + 1 < stop and code[at + 1].text == "{":
            made, _ = self._braced("do", first.start, at + 1)
            end = self._simple_end(at, stop)
            return Statement("do", made.start, code[end - 1].end, None, made.body, (), made.inner), end
        if first.text in _WITH_HEAD:
            return self._headed(at, stop)
        end = self._simple_end(at, stop)
        lambda_end = self._find_lambda_end(at, end)
        if lambda_end is not None:
            made, _ = self._braced(DISPATCH, first.start, self.source.partners[lambda_end])
            assert made.inner is not None
            return replace(made, end=code[end - 1].end, head=(code[at + 1].end, made.inner[0] - 1)), end
        return Statement("", first.start, code[end - 1].end), end

    def _find_lambda_end(self, at: int, end: int) -> int | None:
        """The index of the brace that ends the last argument of a dispatch macro; None of another statement."""
        code = self.source.code
        if not code[at].text.startswith(_MACRO) or end - at < 4 or code[at + 1].text != "(":
            return None
        last = self.source.partners[at + 1] - 1
        return last if code[last].text == "}" and self.source.partners[at + 1] == end - 2 else None

    def _braced(self, keyword: str, start: int, brace: int) -> tuple[Statement, int]:
        code, close = self.source.code, self.source.partners[brace]
        body = tuple(self.read(brace + 1, close))
        inner = (code[brace].end, code[close].start)
        return Statement(keyword, start, code[close].end, None, body, (), inner), close + 1

    def _headed(self, at: int, stop: int) -> tuple[Statement, int]:
        code = self.source.code
        keyword, opener = code[at].text, at + 1
        if code[opener].text == "constexpr":
            opener += 1
        close = self.source.partners[opener]
        head = (code[opener].end, code[close].start)
        then, after = self._statement(close + 1, stop)
        end = then.end
        otherwise: tuple[Statement, ...] = ()
        if keyword == "if" and after < stop and code[after].text == "else":
            other, after = self._statement(after + 1, stop)
            end, otherwise = other.end, _within(other)
        return Statement(keyword, code[at].start, end, head, _within(then), otherwise, then.inner), after

    def _simple_end(self, at: int, stop: int) -> int:
        """The index after the semicolon that ends a statement."""
        while at < stop and self.source.code[at].text != ";":
            at = self.source.partners.get(at, at) + 1
        return min(at + 1, stop)


def _within(statement: Statement) -> tuple[Statement, ...]:
    return statement.body if statement.keyword == "{" else (statement,)
