"""The functions, macros and macro uses of a C++ or Objective-C++ file, with exact spans.

General C++ grammars fail on over half of an Objective-C++ file, so this relies on bracket pairs and a few patterns.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import itemgetter

from porter.core.edits import common_start, find_line_ends
from porter.core.errors import Place, PorterError
from porter.languages.brackets import DEEPEST, too_deep
from porter.languages.directives import Include, Macro, find_includes, parse_macro
from porter.languages.lexer import CLOSERS, Token, TokenKind, lex


class UnbalancedBrackets(PorterError):
    """A bracket without a partner (PTR030)."""


@dataclass(frozen=True)
class MacroUse:
    """A macro use at file or namespace scope, with its semicolon: `CREATE_X(exp_out_mps, exponent)`."""

    name: str
    arguments: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Function:
    """A function definition. `wrapper` is the macro around its name (`TORCH_IMPL_FUNC`), or None.

    The name of a specialization has its template arguments. `start` to `end` is the definition, `name_start` where its
    name or wrapper begins, `params_end` behind the bracket of its parameters;
    `leading` is the start of the comment directly above it.
    """

    name: str
    wrapper: str | None
    signature: str
    params: str
    leading: int
    start: int
    end: int
    name_start: int
    params_end: int
    body_start: int
    body_end: int
    static: bool


_MACRO_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_WORD = re.compile(r"\b[A-Za-z_$\u0080-\U0010ffff][\w$]*")
_CLOSING = {close: opening for opening, close in CLOSERS.items()}
_BRACKETS = frozenset("()[]{}")
_STOPS = frozenset(";([{}")  # where a declaration may end or have a use
_IDENTIFIER, _PUNCTUATION, _DIRECTIVE = TokenKind.IDENTIFIER, TokenKind.PUNCTUATION, TokenKind.DIRECTIVE
_NO_CODE = frozenset({TokenKind.SPACE, TokenKind.COMMENT, TokenKind.DIRECTIVE})
_NOT_FUNCTIONS = frozenset({"if", "for", "while", "switch", "catch", "return", "sizeof", "alignas", "decltype"})
_START = itemgetter(2)  # of a token
_ANGLES = {"<": 1, "<<": 2, ">": -1, ">>": -2}
_SCOPES = frozenset({"namespace", "extern"})
_TYPES = frozenset({"struct", "class", "enum", "union", "@interface", "@implementation"})


@dataclass(frozen=True)
class Source:
    """A lexed file."""

    path: str
    text: str
    tokens: tuple[Token, ...]

    @staticmethod
    def parse(path: str, text: str) -> Source:
        """Lexes a file. Brackets are only paired on demand, so an unbalanced file can still be lexed."""
        return Source(path, text, tuple(lex(text)))

    def edit(self, text: str) -> Source:
        """The same file with another text, of which only what differs is lexed."""
        return Source(self.path, text, relex(self.text, self.tokens, text))

    def place(self, offset: int) -> Place:
        """Returns the line of an offset."""
        return Place(self.path, bisect_right(self._lines, offset))

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *(end + 1 for end in find_line_ends(self.text))]

    @cached_property
    def code(self) -> tuple[Token, ...]:
        """The tokens without spaces, comments and directives."""
        return tuple([token for token in self.tokens if token[0] not in _NO_CODE])

    @cached_property
    def is_readable(self) -> bool:
        """Whether functions and macro uses can be listed: brackets pair, and nest no deeper than is read."""
        try:
            self.functions()
        except PorterError:
            return False
        return True

    @cached_property
    def partners(self) -> dict[int, int]:
        """For each bracket of `code`, the index of its partner. Raises PTR030 where brackets do not pair."""
        return self._paired[0]

    @cached_property
    def _paired(self) -> tuple[dict[int, int], int]:
        """The partners, and how many brackets are open at most. Raises PTR030 where brackets do not pair."""
        if isinstance(self._pairs, PorterError):
            raise self._pairs
        return self._pairs

    @cached_property
    def _pairs(self) -> tuple[dict[int, int], int] | UnbalancedBrackets:
        """A file that does not pair is asked as often as one that does."""
        open_at: list[int] = []
        pairs: dict[int, int] = {}
        code, deepest = self.code, 0
        for at in self._brackets:
            text = code[at][1]
            if text in CLOSERS:
                open_at.append(at)
                if len(open_at) > deepest:
                    deepest = len(open_at)
                continue
            if not open_at or code[open_at[-1]][1] != _CLOSING[text]:
                return self._unbalanced(code[at])
            pairs[at] = open_at[-1]
            pairs[open_at.pop()] = at
        if open_at:
            return self._unbalanced(code[open_at[-1]])
        return pairs, deepest

    @cached_property
    def _brackets(self) -> list[int]:
        """The brackets of `code`, in order."""
        return [at for at, token in enumerate(self.code) if token[1] in _BRACKETS and token[0] is _PUNCTUATION]

    def _unbalanced(self, token: Token) -> UnbalancedBrackets:
        return UnbalancedBrackets(
            "PTR030", f"unmatched '{token.text}'", self.place(token.start), "Check that the file compiles."
        )

    def macros(self) -> tuple[Macro, ...]:
        """Returns every `#define`."""
        return tuple(self._macros())

    @cached_property
    def function_macros(self) -> tuple[Macro, ...]:
        """The `#define`s with parameters."""
        return tuple(macro for macro in self._macros() if macro.params is not None)

    def _macros(self) -> Iterator[Macro]:
        yield from filter(None, map(parse_macro, self._directives))

    def includes(self) -> tuple[Include, ...]:
        """Returns every `#include` and `#import`."""
        return tuple(find_includes(self._directives))

    @cached_property
    def _directives(self) -> tuple[Token, ...]:
        return tuple([token for token in self.tokens if token[0] is _DIRECTIVE])

    def functions(self) -> tuple[Function, ...]:
        """Returns the function definitions at file, namespace and class scope, in order."""
        return self._definitions[0]

    @cached_property
    def functions_by_name(self) -> Mapping[str, tuple[Function, ...]]:
        """All overloads of each function, in order."""
        found: dict[str, list[Function]] = {}
        for function in self.functions():
            found.setdefault(function.name, []).append(function)
        return {name: tuple(functions) for name, functions in found.items()}

    def find_again(self, function: Function) -> Function | None:
        """A function of an earlier text of this file, which edits may have moved; that of a macro by its name alone."""
        functions = self.functions_by_name.get(function.name, ())
        named = (other for other in functions if other.wrapper)
        return next(named, None) or next((other for other in functions if other.signature == function.signature), None)

    def macro_uses(self, name: str | None = None) -> tuple[MacroUse, ...]:
        """Returns the macro uses at file and namespace scope: a name in capitals with arguments and no body."""
        return tuple(use for use in self._definitions[1] if name in (None, use.name))

    @cached_property
    def _definitions(self) -> tuple[tuple[Function, ...], tuple[MacroUse, ...]]:
        functions: list[Function] = []
        uses: list[MacroUse] = []
        self._check_depth()
        self._scan(0, len(self.code), functions, uses)
        return tuple(functions), tuple(uses)

    def _check_depth(self) -> None:
        depth, code = 0, self.code
        if self._paired[1] <= DEEPEST:
            return
        for at in self._brackets:
            token = code[at]
            depth += 1 if token.text in CLOSERS else -1
            if depth > DEEPEST and token.text == "{":
                raise too_deep(self.place(token.start))

    def _scan(self, at: int, stop: int, functions: list[Function], uses: list[MacroUse]) -> None:
        """Scans the declarations between two tokens."""
        while at < stop:
            at = self._declaration(at, stop, functions, uses)

    def _declaration(self, first: int, stop: int, functions: list[Function], uses: list[MacroUse]) -> int:
        """Scans the declaration that starts at `first` and returns where the next one starts."""
        at, code, partners = first, self.code, self.partners
        while at < stop:
            text = code[at][1]
            if text not in _STOPS:
                at += 1
            elif text == ";":
                return at + 1
            elif text in ("(", "["):
                use = self._macro_use(first, at)
                if use:
                    uses.append(use)
                    after = partners[at] + 1
                    return after + (after < stop and code[after].text == ";")
                at = partners[at] + 1
            elif text == "{":
                return self._block(first, at, stop, functions, uses)
            else:
                return at + 1
        return stop

    def _block(self, first: int, brace: int, stop: int, functions: list[Function], uses: list[MacroUse]) -> int:
        end = self.partners[brace]
        head = self.code[first:brace]
        words = {token.text for token in head[:3]}
        if words & _SCOPES and all(token.text not in "()=" for token in head):
            self._scan(brace + 1, end, functions, uses)
            return end + 1
        params = self._params(first, brace)
        if params is not None and not any(token.text in _TYPES for token in head[:1]):
            functions.append(self._function(first, params, brace, end))
            return end + 1
        if any(token.text in _TYPES for token in head):
            self._scan(brace + 1, end, functions, uses)
        # The end of a declaration such as `x = {...}` or `struct S {...} s`, which ends at its semicolon
        following = end + 1
        if following < stop and self.code[following].text in (";", ",", "("):
            while following < stop and self.code[following].text != ";":
                following = self.partners.get(following, following) + 1
            return following + 1
        return following

    def _macro_use(self, first: int, bracket: int) -> MacroUse | None:
        if bracket != first + 1 or self.code[bracket].text != "(":
            return None
        name, end = self.code[first], self.partners[bracket]
        after = self.code[end + 1] if end + 1 < len(self.code) else None
        if name.kind is not _IDENTIFIER or not _MACRO_NAME.fullmatch(name.text):
            return None
        if after is not None and after.text in ("(", "{", "->"):
            return None
        stop = after.end if after is not None and after.text == ";" else self.code[end].end
        return MacroUse(name.text, self.arguments(bracket), name.start, stop)

    def arguments(self, bracket: int) -> tuple[str, ...]:
        """Returns the arguments in the bracket pair that opens at `bracket` of `code`."""
        code, partners = self.code, self.partners
        parts: list[str] = []
        start, at, end = code[bracket].end, bracket + 1, partners[bracket]
        while at < end:
            if code[at].text == ",":
                parts.append(self.text[start : code[at].start].strip())
                start = code[at].end
            at = partners.get(at, at) + 1
        last = self.text[start : code[end].start].strip()
        return (*parts, last) if parts or last else ()

    def _params(self, first: int, brace: int) -> int | None:
        """Returns the index of the bracket that opens the parameter list of a definition with its body at `brace`."""
        at, found = self._behind_templates(first, brace), None
        while at < brace:
            token = self.code[at]
            if token.text == "=" and self.code[at - 1].text != "operator":
                return None
            if token.text == "(":
                before = self.code[at - 1]
                named = before.kind is TokenKind.IDENTIFIER or before.text in (")", ">", "==", "]") or at - 2 >= first
                if self._is_attribute(at, brace):
                    at = self.partners[at] + 1
                    continue
                if at > first and named and before.text not in _NOT_FUNCTIONS and before.text != "__attribute__":
                    found = at
                    if (at > first and self.code[at - 1].kind is TokenKind.IDENTIFIER) or before.text == ")":
                        after = self.partners[at] + 1  # behind the wrapper of `TORCH_IMPL_FUNC(name)(params)`
                        return after if after < brace and self.code[after].text == "(" else at
                at = self.partners[at] + 1
            elif token.text in "[":
                at = self.partners[at] + 1
            else:
                at += 1
        return found

    def _behind_templates(self, at: int, brace: int) -> int:
        """Skips the parameters of templates, which may have default values."""
        while at + 1 < brace and self.code[at].text == "template" and self.code[at + 1].text == "<":
            at, depth = at + 2, 1
            while at < brace and depth > 0:
                depth += _ANGLES.get(self.code[at].text, 0)
                at = self.partners.get(at, at) + 1
        return at

    def _is_attribute(self, bracket: int, brace: int) -> bool:
        """Whether a macro that says how a function is compiled stands before it: `C10_LAUNCH_BOUNDS_1(256)`."""
        before, after = self.code[bracket - 1], self.partners[bracket] + 1
        is_macro = before.kind is _IDENTIFIER and _MACRO_NAME.fullmatch(before.text) is not None
        return is_macro and after < brace and self.code[after].kind is _IDENTIFIER and "(" in self._texts(after, brace)

    def _texts(self, at: int, stop: int) -> list[str]:
        return [token.text for token in self.code[at:stop]]

    def _function(self, first: int, params: int, brace: int, end: int) -> Function:
        wrapper, name, named = None, self.code[params - 1].text, params - 1
        if name == ")":
            opening = self.partners[params - 1]
            wrapper, named = self.code[opening - 1].text, opening - 1
            name = " ".join(self.text[self.code[opening].end : self.code[params - 1].start].split())
        elif name in (">", ">>"):
            named = self._open_angles(first, params - 1) - 1
            name = "".join(self._texts(named, params))
        start = self.code[first].start
        return Function(
            name=name,
            wrapper=wrapper,
            signature=self.text[start : self.code[brace].start].strip(),
            params=self.text[self.code[params].end : self.code[self.partners[params]].start].strip(),
            leading=self._leading(start),
            start=start,
            end=self.code[end].end,
            name_start=self.code[named].start,
            params_end=self.code[self.partners[params]].end,
            body_start=self.code[brace].start,
            body_end=self.code[end].end,
            static=any(token.text == "static" for token in self.code[first:params]),
        )

    def _open_angles(self, first: int, at: int) -> int:
        """The index of the angle bracket that opens what one at `at` closes."""
        depth = 0
        while at > first:
            depth += _ANGLES.get(self.code[at].text, 0)
            if depth >= 0:
                break
            at -= 1
        return at

    def index_of(self, offset: int) -> int:
        """The index of the first token of `code` from an offset on."""
        return bisect_left(self.code, offset, key=_START)

    def list_scopes(self, offset: int) -> tuple[str, ...]:
        """What stands before each brace that is open at an offset: the name of a namespace. Raises PTR030."""
        at = self.index_of(offset)
        opened = (i for i in self._brackets if i < at <= self.partners[i] and self.code[i].text == "{")
        return tuple(self.code[i - 1].text if i else "" for i in opened)

    def _leading(self, start: int) -> int:
        """Returns the start of the comment lines directly above `start`, without a blank line in between."""
        at = bisect_right(self.tokens, start, key=_START) - 1
        leading = start
        while at >= 1 and self.tokens[at - 1].kind is TokenKind.SPACE and self.tokens[at - 1].text.count("\n") == 1:
            comment = self.tokens[at - 2] if at >= 2 else None
            if comment is None or comment.kind is not TokenKind.COMMENT or not self._is_alone_on_line(at - 2):
                break
            leading, at = comment.start, at - 2
        return leading

    def _is_alone_on_line(self, at: int) -> bool:
        return at == 0 or (self.tokens[at - 1].kind is TokenKind.SPACE and "\n" in self.tokens[at - 1].text)

    def references(self, name: str) -> tuple[Token, ...]:
        """The identifiers of this text, those inside directives too."""
        return self._identifiers.get(name, ())

    @cached_property
    def _identifiers(self) -> dict[str, tuple[Token, ...]]:
        found: dict[str, list[Token]] = defaultdict(list)
        for token in self.tokens:
            if token[0] is _IDENTIFIER:
                found[token[1]].append(token)
            elif token[0] is _DIRECTIVE:
                for match in _WORD.finditer(token.text, 1):
                    start = token.start + match.start()
                    found[match[0]].append(Token(_IDENTIFIER, match[0], start, start + len(match[0])))
        return {name: tuple(tokens) for name, tokens in found.items()}


_MOST_FILES = 256
_latest: dict[str, Source] = {}  # the text of a file that was lexed last: the next is mostly an edit of it


@lru_cache(maxsize=_MOST_FILES)
def parse_source(path: str, text: str) -> Source:
    """Reads a file. The same text is only lexed once, and of another version only what differs."""
    before = _latest.pop(path, None)
    _latest[path] = source = before.edit(text) if before else Source.parse(path, text)
    if len(_latest) > _MOST_FILES:
        del _latest[next(iter(_latest))]
    return source


_new = tuple.__new__
_ANCHOR = 80  # characters by which text that stands elsewhere now is found


def relex(before: str, tokens: Sequence[Token], text: str) -> tuple[Token, ...]:
    """The tokens of a text, as `lex` gives them, from those of a text that is like it."""
    made = list(tokens[: _find_restart(tokens, common_start(before, text))])
    searched, lexed = made[-1].end if made else 0, False
    while not lexed:
        lexed = True
        for token in lex(text, at=made[-1].end if made else 0):
            known = _find_known(before, tokens, text, token, searched) if _starts_afresh(token) else ()
            if known:
                made += _move(known, token.start - known[0].start)
                searched, lexed = known[-1].end, False
                break
            made.append(token)
    return tuple(made)


def _find_known(before: str, tokens: Sequence[Token], text: str, token: Token, start: int) -> Sequence[Token]:
    """The old tokens, from an offset of the old text on, that are those of the new text from a token on."""
    at = before.find(text[token.start : token.start + _ANCHOR], start)
    first = _token_at(tokens, at)
    if at < 0 or first == len(tokens) or tokens[first].start != at or not _starts_afresh(tokens[first]):
        return ()
    old, new = before[at:], text[token.start :]
    if old == new:
        return tokens[first:]
    last = _find_restart(tokens, at + common_start(old, new))
    return tokens[first:last]


def _find_restart(tokens: Sequence[Token], same: int) -> int:
    """The last token in the first `same` characters that starts afresh and does not continue a line; else the first."""
    at = min(_token_at(tokens, same), len(tokens) - 1)
    while at > 0:
        token, previous = tokens[at], tokens[at - 1]
        if token.end <= same and _starts_afresh(token) and not previous.text.endswith("\\"):
            return at
        at -= 1
    return 0


def _starts_afresh(token: Token) -> bool:
    return token.kind is TokenKind.SPACE and "\n" in token.text


def _token_at(tokens: Sequence[Token], offset: int) -> int:
    """The first token that starts at an offset or behind it."""
    return bisect_left(tokens, offset, key=lambda token: token.start)


def _move(tokens: Sequence[Token], by: int) -> Sequence[Token]:
    return tokens if by == 0 else [_new(Token, (k, t, s + by, e + by)) for k, t, s, e in tokens]
