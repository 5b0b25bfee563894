"""Removes statements of a body that are no longer needed: those of a vocabulary that goes, and what only served them.

A local variable is needed if a statement that stays uses it. A statement that only declares or changes local variables
goes with the last need of them; any other statement stays, and so does what it uses.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from porter.languages.lexer import Token, TokenKind
from porter.languages.patterns import find_code, match_code
from porter.languages.source import Source
from porter.languages.statements import Statement, name_tokens, read_statements, walk_statements

_TYPE_DEFINITIONS = frozenset(("struct", "class", "union", "enum", "using"))
_ENDS_NAME = frozenset(("=", "(", "{", ";", ",", "["))
_NO_TYPE = frozenset(("return", "delete", "throw", "goto", "else", "case", "break", "continue"))
ASSIGNMENTS = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"))
_FILLS = frozenset(("push_back", "emplace_back", "insert", "reserve", "resize", "addObject"))
_LOOPS = ("for", "while", "do")
_LEFT = (*_LOOPS, "switch")
_JUMPS = ("break;", "continue;")
_LABEL = re.compile(r"(?:(?:case\b(?:[^:]|::)*:(?!:)|default\s*:)\s*)+")
# One with nothing behind it in its switch, which is no C++ before C++23.
_EMPTY_LABEL = re.compile(
    r"(?<![\w.:])((?:case\b(?:[^:;{}]|::)+|default\s*):)(?!:)(?:[ \t]*(?=\n)| )?"
    r"(?P<rest>(?:\s|//[^\n]*\n|/\*.*?\*/)*\})",
    re.S,
)
_TIE = ("std::tie($name, std::ignore) = $$value;", "std::tie(*$name, std::ignore) = $$value;")
_COPY = ("mps_copy_($name, $$rest);", "$name.copy_($$rest);")
_COMMENT = re.compile(r"[ \t]*//[^\n]*\n|[ \t]*/\*[^\n]*\*/[ \t]*\n")
_BLANK = re.compile(r"(?:[ \t]*(?://[^\n]*)?\n)*[ \t]*")  # lines without code


def prune(text: str, vocabulary: re.Pattern[str], needed: Collection[str] = ()) -> str:
    """The text of a body without statements that use a word of `vocabulary`, and without what then serves nothing.

    `needed` are names that stay in use. Raises PTR030 where brackets do not pair.
    """
    pruner = _Pruner(text, read_statements(text), vocabulary, frozenset(needed))
    statements = list(pruner.removed(pruner.statements))
    # The text without statements, the comments above them and between two of them, and the lines they leave empty
    parts, last = [], 0
    for each in statements:
        before = re.search(r"\s*\belse\s*\Z", text[last : each.start])
        otherwise = last + before.start() if before else None
        start = find_commented_start(text, each.start, last) if otherwise is None else otherwise
        start = last if last and _BLANK.fullmatch(text, last, start) else start
        parts.append(text[last:start])
        last = _find_end(text, each.end) if otherwise is None else each.end
    made = re.sub(r"[ \t]*\belse\s*\{\s*\}", "", "".join([*parts, text[last:]]))
    return re.sub(r"\n[ \t]*\n(?:[ \t]*\n)+", "\n\n", _EMPTY_LABEL.sub(_end_switch, made))


def list_declared(text: str) -> list[str]:
    """The names that a statement declares; none of another statement."""
    code = Source.parse("", text).code
    if not code or code[0].text in _NO_TYPE:
        return []
    if code[0].text in _TYPE_DEFINITIONS:
        return [code[1].text] if len(code) > 1 and code[1].text != "namespace" else []
    return list(_find_declarators(code))


def _find_declarators(code: Sequence[Token]) -> Iterator[str]:
    at, words = 0, 0
    while at < len(code):
        token, after = code[at], code[at + 1].text if at + 1 < len(code) else ";"
        if token.text == "[" and words:  # a structured binding
            while at < len(code) and code[at].text != "]":
                if code[at].kind is TokenKind.IDENTIFIER:
                    yield code[at].text
                at += 1
            return
        if token.kind is TokenKind.IDENTIFIER:
            if words and after in _ENDS_NAME and code[at - 1].text != "::":
                yield token.text
                # The names behind the commas of a declaration of several
                depth = 0
                for i in range(at + 1, len(code)):
                    depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(code[i].text, 0)
                    if code[i].text == "," and depth == 0:
                        name = next((each for each in code[i + 1 :] if each.text not in ("*", "&")), None)
                        if name is not None and name.kind is TokenKind.IDENTIFIER:
                            yield name.text
                return
            words += 1
            at = _behind_angles(code, at + 1) if after == "<" else at + 1
        elif token.text in ("::", "*", "&", "&&"):
            at += 1
        else:
            return


def _behind_angles(code: Sequence[Token], at: int) -> int:
    depth = 0
    for i in range(at, len(code)):
        depth += {"<": 1, ">": -1, ">>": -2}.get(code[i].text, 0)
        if depth <= 0:
            return i + 1
    return len(code)


def _find_changed(text: str) -> str | None:
    """The variable that a statement only assigns to or fills; None of another statement."""
    if tie := match_code(text, *_TIE):
        return tie["name"]
    code = Source.parse("", text).code
    if len(code) > 2 and code[0].text == "[" and code[2].text in _FILLS:
        return code[1].text
    if not code or code[0].kind is not TokenKind.IDENTIFIER:
        return code[1].text if len(code) > 1 and code[0].text in ("++", "--") else None
    if len(code) > 2 and code[1].text == "." and code[2].text in _FILLS:
        return code[0].text
    at = 1
    while at < len(code) and code[at].text == "[":
        at = next((i + 1 for i in range(at, len(code)) if code[i].text == "]"), len(code))
    return code[0].text if at < len(code) and code[at].text in ASSIGNMENTS else None


@dataclass(frozen=True)
class _Simple:
    """A statement without others within: what it declares or changes (empty: it stays), and the names it uses."""

    targets: tuple[str, ...]
    names: frozenset[str]


@dataclass(frozen=True)
class _Pruner:
    text: str
    statements: tuple[Statement, ...]
    vocabulary: re.Pattern[str]
    needed: frozenset[str]

    def removed(self, statements: Sequence[Statement]) -> Iterator[Statement]:
        """The statements that go, outermost first, without the labels of a switch that stays."""
        for each in statements:
            label = None if each.keyword else _LABEL.match(self.text, each.start)
            if not self._stays(each) and (each in self._gone or not label):
                yield replace(each, start=label.end()) if label else each
            else:
                yield from self.removed((*each.body, *each.otherwise))

    def _stays(self, statement: Statement) -> bool:
        """Whether a statement stays: one with others within does if any of them does that is no mere assertion."""
        if statement.keyword:
            within = (*statement.body, *statement.otherwise)
            return any(self._stays(each) and not self._is_assertion(each) for each in within)
        return statement in self._live

    def _is_assertion(self, statement: Statement) -> bool:
        return not statement.keyword and self._code(statement).startswith("assert(")

    @cached_property
    def _simple(self) -> dict[Statement, _Simple]:
        found = {}
        for each in (inner for outer in self.statements for inner in outer.walk() if not inner.keyword):
            text = self._code(each)
            changed = _find_changed(text)
            targets = (changed,) if changed else tuple(list_declared(text))
            found[each] = _Simple(targets, frozenset(token.text for token in name_tokens(text)))
        return found

    def _code(self, statement: Statement) -> str:
        """The text of a statement, without the label before it."""
        text = self.text[statement.start : statement.end]
        return _LABEL.sub("", text, count=1) if not statement.keyword else text

    @cached_property
    def _gone(self) -> frozenset[Statement]:
        """The statements that use a word of the vocabulary, or a name that one of them declares."""
        gone = {each for each in self._simple if self.vocabulary.search(self._code(each))}
        while True:
            names = {name for each in gone for name in list_declared(self._code(each))}
            more = {each for each, what in self._simple.items() if what.names & names}
            if more <= gone:
                return frozenset(gone)
            gone |= more

    @cached_property
    def _locals(self) -> frozenset[str]:
        """The names of local variables that are no references: changing them changes nothing else."""
        found = set()
        for each in self._simple:
            head = self._code(each).partition("=")[0]
            if "&" not in head or head.lstrip().startswith("const "):
                found.update(list_declared(self._code(each)))
        return frozenset(found)

    @cached_property
    def _live(self) -> frozenset[Statement]:
        kept = {each: what for each, what in self._simple.items() if each not in self._gone}
        for each, what in kept.items():
            # The tensor that a statement only copies to, if the one before sets it to memory of its own
            before = self.text[: each.start]
            match = match_code(self._code(each), *_COPY)
            values = list(find_code(before, f"{match['name']} = $$value;")) if match else []
            is_last = bool(values) and values[-1].end == len(before.rstrip())
            is_fresh = is_last and values[-1]["value"].startswith(("at::empty", "at::zeros"))
            filled = match["name"] if match and is_fresh else None
            kept[each] = replace(what, targets=(filled,)) if filled else what
        acts = {each for each, what in kept.items() if not what.targets or not self._is_local(each, what)}
        acts -= {each for each in acts - self._in_loops if self._code(each) == ";"}
        live = acts - self._jumps.keys()
        while True:
            uses = self._find_last_uses(live)
            more = {
                each
                for each, what in kept.items()
                if any(uses.get(name, -1) > self._starts[each] for name in what.targets)
            }
            more |= {each for each, left in self._jumps.items() if self._has_use(left, live)}
            if more <= live:
                return frozenset(live)
            live |= more

    @cached_property
    def _in_loops(self) -> frozenset[Statement]:
        """The statements that loops repeat."""
        every = (inner for outer in self.statements for inner in outer.walk())
        return frozenset(each for outer in every if outer.keyword in _LOOPS for each in outer.body)

    def _has_use(self, outer: Statement, live: Set[Statement]) -> bool:
        """Whether a statement has others within that stay, and are no mere assertions."""
        return any(each in live and not self._is_assertion(each) for each in outer.walk())

    @cached_property
    def _jumps(self) -> dict[Statement, Statement]:
        """The statements that only leave or repeat a loop, or leave a switch, each with that."""
        found: dict[Statement, Statement] = {}
        for outer in (inner for each in self.statements for inner in each.walk() if inner.keyword in _LEFT):
            for each in outer.walk():  # inner loops come later
                if not each.keyword and self._code(each) in _JUMPS:
                    found[each] = outer
        return found

    def _is_local(self, statement: Statement, what: _Simple) -> bool:
        """Whether all that a statement does is to give local variables a value."""
        return bool(list_declared(self._code(statement))) or self._locals.issuperset(what.targets)

    @cached_property
    def _starts(self) -> dict[Statement, int]:
        """Where statements are first run: those of a loop are run again, so a use at its start may see what they do."""
        found: dict[Statement, int] = {}

        def visit(statements: Sequence[Statement], loop: int | None) -> None:
            for each in statements:
                found[each] = each.start if loop is None else loop
                inner = each.start - 1 if loop is None and each.keyword in _LOOPS else loop
                visit((*each.body, *each.otherwise), inner)

        visit(self.statements, None)
        return found

    def _find_last_uses(self, live: set[Statement]) -> dict[str, int]:
        """Where names are used last: by statements that stay, and in the heads of those around them."""
        found = dict.fromkeys(self.needed, len(self.text))
        uses = [(each.start, self._simple[each].names) for each in live]
        for each in (inner for outer in self.statements for inner in outer.walk()):
            if each.head and self._has_use(each, live):
                start, end = each.head
                uses.append((end, frozenset(token.text for token in name_tokens(self.text[start:end]))))
        for at, names in uses:
            found.update({name: max(at, found.get(name, -1)) for name in names})
        return found


def _end_switch(label: re.Match[str]) -> str:
    rest = label["rest"]
    return f"{label[1]} break;{rest if rest.startswith(chr(10)) else chr(10) + rest}"


def find_commented_start(text: str, start: int, last: int) -> int:
    """The start of the first line that goes: of the comments directly above a statement, if it starts a line."""
    line = text.rfind("\n", 0, start) + 1
    if line < last or text[line:start].strip():
        return start
    while line > last:
        above = text.rfind("\n", 0, line - 1) + 1
        if above < last or not _COMMENT.fullmatch(text, above, line):
            break
        line = above
    return line


def _find_end(text: str, end: int) -> int:
    """The end of the line if only a comment follows a statement there."""
    stop = text.find("\n", end)
    rest = text[end : stop if stop >= 0 else len(text)]
    return (stop + 1 if stop >= 0 else len(text)) if not rest.strip() or rest.lstrip().startswith("//") else end


# Which local variables statements of a body may name, by where they stand.


def bring_declarations(body: str, at: int, names: Collection[str]) -> list[str] | None:
    """The declarations that a place of a body lacks to use some names, in the order in which they have to stand.

    Nothing is lacking of names that the function declares in no statement: they are parameters, or of the file. None if
    a local cannot be declared there again: it has several declarations, one without a value, or is changed later.
    Raises PTR030 where brackets do not pair.
    """
    statements = read_statements(body)
    simple = (inner for outer in statements for inner in outer.walk() if not inner.keyword)
    local = {name for statement in simple for name in list_declared(body[statement.start : statement.end])}
    lines: list[str] = []
    for name in sorted(local.intersection(names).difference(_walk_visible(body, statements, at))):
        declaration = _find_only_declaration(body, name)
        if declaration is None:
            return None
        value = declaration.partition("=")[2]
        needed = bring_declarations(body, at, {token.text for token in name_tokens(value)} - {name})
        if needed is None:
            return None
        lines += [line for line in (*needed, declaration) if line not in lines]
    return lines


def _walk_visible(body: str, statements: Sequence[Statement], at: int) -> Iterator[str]:
    """The locals that are declared before a place, and whose blocks have not ended there."""
    for statement in statements:
        if statement.start >= at:
            return
        if not statement.keyword:
            if statement.end <= at:
                yield from list_declared(body[statement.start : statement.end])
        elif at < statement.end:
            # What the head of a loop or a condition declares: `for (const auto i : ...)`, `if (auto x = ...; ...)`
            if statement.head is not None:
                head = body[slice(*statement.head)]
                ranged = re.match(r"[^;=?]*?\b(\w+)\s*:(?!:)", head)
                if ranged:
                    yield ranged[1]
                elif "=" in head.partition(";")[0]:
                    yield from list_declared(f"{head.partition(';')[0]};")
            branch = statement.otherwise if _stands_in(statement.otherwise, at) else statement.body
            yield from _walk_visible(body, branch, at)


def _stands_in(statements: Sequence[Statement], at: int) -> bool:
    return bool(statements) and at >= statements[0].start


def _find_only_declaration(body: str, name: str) -> str | None:
    """The statement that declares a local alone, with the only value that it ever has."""
    every = (inner for inner in walk_statements(body) if not inner.keyword)
    texts = [body[statement.start : statement.end] for statement in every]
    declarations = [text for text in texts if name in list_declared(text)]
    values = re.findall(rf"(?<![\w.>]){re.escape(name)}\s*(?:[-+*/|&^%]|<<|>>)?=(?!=)", body)
    if len(declarations) != 1 or len(values) != 1 or list_declared(declarations[0]) != [name]:
        return None
    return declarations[0] if "=" in declarations[0] else None


_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_NO_VARIABLE = frozenset((".", "->", "::", "]", ")"))  # before the `=` of a member or an element


@dataclass(frozen=True)
class Assignment:
    """A statement that declares a variable or sets it.

    `type` is as it is written, without `const` before it; empty of a variable that is declared elsewhere. `value` is
    empty of one that is only declared, or by a constructor.
    """

    name: str
    type: str
    value: str
    statement: Statement


@lru_cache(maxsize=512)  # stages and launches ask the same body many times
def read_assignments(body: str) -> tuple[Assignment, ...]:
    """The assignments of a body, in order. Raises PTR030 where brackets do not pair."""
    statements = (inner for inner in walk_statements(body) if not inner.keyword)
    return tuple(assignment for statement in statements for assignment in _read(body, statement))


def list_values(body: str, name: str) -> list[str]:
    """All that a variable is set to."""
    return [assignment.value for assignment in read_assignments(body) if assignment.name == name and assignment.value]


def _read(body: str, statement: Statement) -> list[Assignment]:
    text = body[statement.start : statement.end]
    code = Source.parse("", text).code
    at = _find_equals(code)
    if at is None:
        names = list_declared(text)
        before = next((i for i, token in enumerate(code) if token.text == names[0]), 0) if names else 0
        return [Assignment(each, _write_type(text, code[:before]), "", statement) for each in names]
    name = code[at - 1]
    is_member = at > 1 and code[at - 2].text in _NO_VARIABLE
    if at == 0 or name.kind is not TokenKind.IDENTIFIER or is_member or code[0].text == "*":
        return []
    value = text[code[at].end : code[-1].start].strip()
    return [Assignment(name.text, _write_type(text, code[: at - 1]), value, statement)]


def _find_equals(code: Sequence[Token]) -> int | None:
    """The token `=` outside of brackets."""
    depth = 0
    for at, token in enumerate(code):
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        if token.text == "=" and depth == 0:
            return at
    return None


def _write_type(text: str, code: Sequence[Token]) -> str:
    """The type before a name: what stands there behind a check without a semicolon, as in LossOps.mm."""
    start = next((token.end for token in reversed(code) if token.text == ")"), 0)
    type_ = " ".join(text[start : code[-1].end if code else 0].split())
    return type_.removeprefix("static ").removeprefix("const ").replace(" &", "&")
