"""A recursive descent parser for C++ functions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from porter.languages.brackets import DEEPEST, check_depth
from porter.languages.cpp import (
    ArrayDeclaration,
    Binary,
    Block,
    Call,
    Cast,
    Declaration,
    Expr,
    ExpressionStatement,
    For,
    Function,
    If,
    Index,
    LambdaExpr,
    Literal,
    Member,
    Name,
    Opaque,
    Parameter,
    Paren,
    ParseError,
    Postfix,
    Return,
    Stmt,
    Ternary,
    TooDeep,
    Unary,
    Using,
    While,
)
from porter.languages.cursor import DEPTHS, QUALIFIERS, Cursor, is_word
from porter.languages.lexer import CLOSERS

BUILTIN_TYPES = frozenset(("float", "double", "int", "bool", "long", "short", "char", "unsigned"))


_OPERATORS = ("||", "&&", "|", "^", "&", "==", "!=", "<", ">", "<=", ">=", "<<", ">>", "+", "-", "*", "/", "%")
_LEVELS = (1, 2, 3, 4, 5, 6, 6, 7, 7, 7, 7, 8, 8, 9, 9, 10, 10, 10)
_PRECEDENCE = dict(zip(_OPERATORS, _LEVELS, strict=True))
_ASSIGNMENTS = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="))
_STATEMENT_WORDS = frozenset(("return", "if", "while", "for", "else", "do", "switch", "using", "break", "continue"))
_CAST_TYPES = BUILTIN_TYPES | {"scalar_t", "size_t", "int64_t", "int32_t"}


def parse_function(path: str, text: str, templates: tuple[str, ...] = ()) -> Function:
    """Parses a function, from its return type (or wrapper macro) to its closing brace. Raises ParseError."""
    parser = Parser(path, text)
    return parser.checked_function(templates)


def parse_expression(path: str, text: str) -> Expr:
    """Parses one whole expression, such as the body of a macro. Raises ParseError."""
    parser = Parser(path, text)
    found = parser.expression()
    if parser.at < len(parser.tokens):
        raise ParseError
    check_depth(found, 0)
    return found


class Parser(Cursor):
    """Parses the statements and expressions of ATen's code."""

    depth = 0

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self.depth += 1
        if self.depth > DEEPEST:
            raise TooDeep(self.start)
        yield
        self.depth -= 1

    def checked_function(self, templates: tuple[str, ...]) -> Function:
        """A function whose tree can be walked. Raises Unparsed, and TooDeep where it is nested too deeply."""
        found = self.function(templates)
        check_depth(found, found.start)
        return found

    def function(self, templates: tuple[str, ...]) -> Function:
        """`type name(parameters) { }` or `WRAPPER(name)(parameters) { }`."""
        start = self.start
        open_at = next((i for i, t in enumerate(self.tokens) if t.text == "("), 0)
        after = self.partner(open_at)
        if self.tokens[after].text == "(":
            inside = [t.text for t in self.tokens[open_at + 1 : after - 1] if t.text != ","]
            name, returns = "_".join(inside), self.tokens[open_at - 1].text
            open_at, self.at = after, after
        else:
            named = self.before_angles(open_at - 1)
            name, returns = self.tokens[named].text, self.spell_type(0, named)
            self.at = open_at
        parameters = self.parameters()
        while self.peek() not in ("{", ""):
            self.at += 1
        return Function(name, parameters, self.block(), templates, returns, start)

    def block(self) -> Block:
        """`{ statements }`."""
        start = self.take("{").start
        statements: list[Stmt] = []
        while not self.accept("}"):
            if not self.peek():
                raise ParseError
            statements += self.statement()
        return Block(tuple(statements), start)

    def statement(self) -> list[Stmt]:
        """One statement (one per declarator), `Opaque` if it is not understood."""
        begin, depth = self.at, self.depth
        try:
            with self._deeper():
                return self._statement()
        except TooDeep:
            raise
        except ParseError:
            self.at, self.depth = begin, depth
            return [self._opaque()]

    def _opaque(self) -> Opaque:
        start = self.start
        while self.peek() and self.peek() not in (";", "}"):
            self.at = self.partner(self.at) if self.peek() in CLOSERS else self.at + 1
            if self.tokens[self.at - 1].text == "}" and self.peek() not in (";", ",", ")", "."):
                break
        else:
            self.accept(";")
        return Opaque(self.text[start : self.tokens[self.at - 1].end], start)

    def _statement(self) -> list[Stmt]:
        start, word = self.start, self.peek()
        if word == "{":
            return [self.block()]
        if self.accept(";"):
            return []
        if word == "using":
            return [self._using()]
        if word == "if":
            return [self._if()]
        if word == "while":
            self.at += 1
            return [While(self._test(), self._body(), start)]
        if word == "for":
            return [self.for_loop()]
        if word == "return":
            self.at += 1
            value = None if self.peek() == ";" else self.expression()
            self.take(";")
            return [Return(value, start)]
        if word in _STATEMENT_WORDS:
            raise ParseError
        return self._declarations() or [self._expression_statement()]

    def _expression_statement(self) -> Stmt:
        start, value = self.start, self.expression()
        if self.peek() != "}" and not (isinstance(value, Call) and self.tokens[self.at - 1].text == ")"):
            self.take(";")
        else:
            self.accept(";")
        return ExpressionStatement(value, start)

    def _using(self) -> Stmt:
        start = self.take("using").start
        if self.peek() == "namespace":
            raise ParseError
        name = self.take().text
        self.take("=")
        begin = self.at
        while self.peek() not in (";", ""):
            self.at += 1
        found = Using(name, self.spell_type(begin, self.at), start)
        self.take(";")
        return found

    def _if(self) -> Stmt:
        start = self.take("if").start
        self.accept("constexpr")
        test, then = self._test(), self._body()
        otherwise = self._body() if self.accept("else") else None
        return If(test, then, otherwise, start)

    def _test(self) -> Expr:
        self.take("(")
        value = self.expression()
        self.take(")")
        return value

    def _body(self) -> Stmt:
        start, found = self.start, self.statement()
        return found[0] if len(found) == 1 else Block(tuple(found), start)

    def _declarations(self) -> list[Stmt]:
        """Parses the declarations of a statement. If it is not a declaration, returns none and consumes nothing."""
        begin = self.at
        kind = self.type()
        if kind is not None and is_word(self.peek()) and self.peek(1) == "[":
            return [self.array(kind, begin)]
        if kind is None or not is_word(self.peek()) or self.peek(1) not in ("=", "(", "{", ";", ","):
            self.at = begin
            return []
        found: list[Stmt] = []
        while True:
            start, name = self.start, self.take().text
            value: Expr | None = None
            if self.accept("="):
                value = self.expression()
            elif self.peek() in ("(", "{"):
                arguments = self._arguments()
                value = (
                    arguments[0] if len(arguments) == 1 else Call(Name(kind, (), start), arguments, start, self.start)
                )
            found.append(Declaration(kind, name, value, start))
            if not self.accept(","):
                break
        self.take(";")
        return found

    def type(self) -> str | None:
        """Parses a type and returns its canonical text, or None if there is no type here."""
        begin = self.at
        while self.peek() in QUALIFIERS or self.peek() == "unsigned":
            self.at += 1
        if not is_word(self.peek()) or self.peek() in _STATEMENT_WORDS:
            self.at = begin
            return None
        self.name()
        while self.peek() in ("const", "&", "*", "&&"):
            self.at += 1
        return self.spell_type(begin, self.at)

    def expression(self) -> Expr:
        """An expression down to, not including, a comma."""
        with self._deeper():
            start, left = self.start, self._ternary()
            if self.peek() in _ASSIGNMENTS:
                return Binary(self.take().text, left, self.expression(), start)
            return left

    def _ternary(self) -> Expr:
        start, test = self.start, self._binary(1)
        if not self.accept("?"):
            return test
        yes = self.expression()
        self.take(":")
        return Ternary(test, yes, self.expression(), start)

    def _binary(self, level: int) -> Expr:
        start, left = self.start, self._unary()
        while _PRECEDENCE.get(self.peek(), 0) >= level:
            op = self.take().text
            left = Binary(op, left, self._binary(_PRECEDENCE[op] + 1), start)
        return left

    def _unary(self) -> Expr:
        start, op = self.start, self.peek()
        if op in ("-", "+", "!", "~", "*", "&", "++", "--"):
            self.at += 1
            with self._deeper():
                return Unary(op, self._unary(), start)
        if op == "(" and self.peek(1) in _CAST_TYPES and self.peek(2) == ")":
            kind = self.peek(1)
            self.at += 3
            with self._deeper():
                return Cast(kind, self._unary(), start)
        return self._postfix(self._primary())

    def _postfix(self, value: Expr) -> Expr:
        while True:
            start, mark = value.start, self.peek()
            if mark == "(" or (mark == "{" and isinstance(value, Name) and self._initialises()):
                value = self._called(value, start)
            elif mark in (".", "->"):
                self.at += 1
                self.accept("template")
                member = self.name()
                value = Member(value, member.path, member.arguments, start)
            elif mark == "[":
                self.at += 1
                value = Index(value, self.expression(), start)
                self.take("]")
            elif mark in ("++", "--", "..."):
                value = Postfix(self.take().text, value, start)
            else:
                return value

    def _initialises(self) -> bool:
        """Whether the next brace directly follows a type, and so does not start a block."""
        return self.at > 0 and self.tokens[self.at - 1].end == self.tokens[self.at].start

    def _called(self, function: Expr, start: int) -> Expr:
        arguments = self._arguments()
        if isinstance(function, Name) and function.path == "static_cast" and len(arguments) == 1:
            return Cast(function.arguments[0], arguments[0], start)
        return Call(function, arguments, start, self.tokens[self.at - 1].end)

    def _arguments(self) -> tuple[Expr, ...]:
        """Parses arguments separated by commas, or the cases of a dispatch switch, which have no commas."""
        closer = CLOSERS[self.take().text]
        found: list[Expr] = []
        while not self.accept(closer):
            found.append(self.expression())
            if not self.accept(",") and self.peek() != closer and not isinstance(found[-1], Call):
                raise ParseError
        return tuple(found)

    def _primary(self) -> Expr:
        start, word = self.start, self.peek()
        if word == "(":
            self.at += 1
            value = self.expression()
            self.take(")")
            return Paren(value, start)
        if word == "[":
            return self._lambda()
        if word == "{":
            return Call(Name("", (), start), self._arguments(), start, self.start)
        if is_word(word) or word == "::":
            return self.name()
        if word and (word[0].isdigit() or word[0] in "\"'" or (word[0] == "." and len(word) > 1)):
            text = self.take().text
            while self.peek()[:1] == '"':
                text += self.take().text
            return Literal(text, start)
        raise ParseError

    def _lambda(self) -> Expr:
        start = self.start
        self.at = self.partner(self.at)
        parameters = self.parameters() if self.peek() == "(" else ()
        while is_word(self.peek()) or self.peek() == "__attribute__":
            self.at += 1
        returns = ""
        if self.accept("->"):
            begin = self.at
            while self.peek() not in ("{", "") and not self.peek().startswith("__"):
                self.at += 1
            returns = self.spell_type(begin, self.at)
        while self.peek().startswith("__"):
            self.at += 1
        return LambdaExpr(parameters, returns, self.block(), start)

    def name(self) -> Name:
        """Parses a qualified name with its template arguments."""
        start = self.start
        self.accept("::")
        path, arguments = "", list[str]()
        while True:
            word = self.take().text
            if not is_word(word):
                raise ParseError
            path += word
            arguments += self._template_arguments()
            if not self.accept("::"):
                return Name(path, tuple(arguments), start)
            self.accept("template")
            path += "::"

    def _template_arguments(self) -> list[str]:
        """Parses template arguments `<A, B>` after a name; none if the text may be a comparison."""
        if self.peek() != "<" or self.tokens[self.at - 1].end != self.tokens[self.at].start:
            return []
        depth, begin, found = 0, self.at + 1, list[str]()
        for at in range(self.at, len(self.tokens)):
            text = self.tokens[at].text
            depth += {"<": 1, ">": -1, ">>": -2}.get(text, 0)
            if (text == "," and depth == 1) or depth <= 0:
                found.append(self.spell_type(begin, at) + (">" if text == ">>" and depth == 0 else ""))
                begin = at + 1
            if depth <= 0:
                self.at = at + 1
                return found if depth == 0 else []
            if not (is_word(text) or text[0].isdigit() or text in ("<", ">", ">>", ",", "::", "*", "&")):
                return []
        return []

    def parameters(self) -> tuple[Parameter, ...]:
        """`(type name, type, type name = default)`."""
        self.take("(")
        found = []
        while not self.accept(")"):
            if not self.peek():
                raise ParseError
            begin, depth = self.at, 0
            while self.peek() and (depth or self.peek() not in (",", ")")):
                depth += DEPTHS.get(self.peek(), 0)
                self.at += 1
            found.append(self._parameter(begin, self.at))
            self.accept(",")
        return tuple(found)

    def _parameter(self, begin: int, end: int) -> Parameter:
        texts = [t.text for t in self.tokens[begin:end]]
        if "=" in texts:
            end = begin + texts.index("=")
        if texts[-2:] == ["[", "]"]:
            return Parameter(f"{self.spell_type(begin, end - 3)}[]", self.tokens[end - 3].text)
        last = self.tokens[end - 1].text
        named = end - begin > 1 and is_word(last) and last not in BUILTIN_TYPES and self.tokens[end - 2].text != "::"
        return Parameter(self.spell_type(begin, end - named), last if named else "")

    def for_loop(self) -> For:
        """`for (type name = value; test; step) body`. Raises ParseError for a loop over a range."""
        start = self.take("for").start
        self.take("(")
        initial = self.statement()
        if len(initial) > 1 or any(isinstance(each, Opaque) for each in initial):
            raise ParseError
        test = self.expression()
        self.take(";")
        step = ExpressionStatement(self.expression(), self.start)
        self.take(")")
        body_start, found = self.start, self.statement()
        body = found[0] if len(found) == 1 else Block(tuple(found), body_start)
        return For(Block(tuple(initial), start), test, step, body, self._text_from(start), start)

    def array(self, kind: str, begin: int) -> ArrayDeclaration:
        """`name[size] = {values};` behind its type, which starts at the token `begin`."""
        start, name = self.tokens[begin].start, self.take().text
        self.take("[")
        size = None if self.peek() == "]" else self.expression()
        self.take("]")
        self.take("=")
        self.take("{")
        values: list[Expr] = []
        while not self.accept("}"):
            values.append(self.expression())
            if not self.accept(",") and self.peek() != "}":
                raise ParseError
        self.take(";")
        return ArrayDeclaration(kind, name, size, tuple(values), self._text_from(start), start)

    def _text_from(self, start: int) -> str:
        return self.text[start : self.tokens[self.at - 1].end]
