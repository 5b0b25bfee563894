"""An Objective-C++ parser: the C++ parser with message sends, blocks, literals and `@autoreleasepool`."""

from __future__ import annotations

from dataclasses import dataclass

from porter.languages import cpp
from porter.languages.cpp_parser import Parser
from porter.languages.lexer import TokenKind


@dataclass(frozen=True)
class Send:
    """`[receiver first:a second:b]`; `selector` is `first:second:`, or a bare name without arguments."""

    receiver: cpp.Expr
    selector: str
    arguments: tuple[cpp.Expr, ...]
    start: int = 0


@dataclass(frozen=True)
class Boxed:
    """The values of a boxed expression: `@"text"`, `@1`, `@(value)`, `@[a, b]` or `@{k : v}`."""

    values: tuple[cpp.Expr, ...]
    start: int = 0


@dataclass(frozen=True)
class Label:
    """`case value:` in the body of a switch, or `default:`, whose value is None."""

    value: cpp.Expr | None
    start: int = 0


@dataclass(frozen=True)
class Break:
    """`break;` of a switch."""

    start: int = 0


@dataclass(frozen=True)
class Switch:
    """`switch (test) { body }`; labels stand in the body before the statements that they lead to."""

    test: cpp.Expr
    body: tuple[cpp.Stmt | Label | Break, ...]
    start: int = 0


class ObjCParser(Parser):
    """The C++ parser with Objective-C's primary expressions and statements."""

    _switches = 0  # that are open

    def _statement(self) -> list[cpp.Stmt]:
        if self.peek() == "switch":
            return [self._switch()]  # type: ignore[list-item]
        if self._switches and self.peek() == "break":
            start = self.take("break").start
            self.take(";")
            return [Break(start)]  # type: ignore[list-item]
        if self.peek() == "@" and self.peek(1) == "autoreleasepool":
            self.at += 2
            return [self.block()]
        if self.peek() == "struct":
            return [self._struct()]
        return super()._statement()

    def _switch(self) -> Switch:
        start = self.take("switch").start
        test, body = self._test(), list[cpp.Stmt | Label | Break]()
        self.take("{")
        self._switches += 1
        try:
            while not self.accept("}"):
                if not self.peek():
                    raise cpp.ParseError
                body += [label] if (label := self._label()) else self.statement()
        finally:
            self._switches -= 1
        return Switch(test, tuple(body), start)

    def _label(self) -> Label | None:
        start, word = self.start, self.peek()
        if word not in ("case", "default"):
            return None
        self.at += 1
        value = self.expression() if word == "case" else None
        self.take(":")
        return Label(value, start)

    def _struct(self) -> cpp.Stmt:
        start = self.start
        while self.peek() not in ("{", ";", ""):
            self.at += 1
        if self.peek() == "{":
            self.at = self.partner(self.at)
        self.take(";")
        return cpp.Block((), start)

    def _primary(self) -> cpp.Expr:
        start, word = self.start, self.peek()
        if word == "[" and not self._opens_lambda():
            return self._send()  # type: ignore[return-value]
        if word == "^":
            return self._block_literal()
        if word == "@":
            self.at += 1
            return self._boxed(start)  # type: ignore[return-value]
        if word.startswith('@"'):
            return cpp.Literal(self.take().text[1:], start)
        return super()._primary()

    def _opens_lambda(self) -> bool:
        after = self.partner(self.at)
        following = self.tokens[after].text if after < len(self.tokens) else ""
        inside = self.tokens[self.at + 1 : after - 1]
        captures = all(t.text in "&=,*" or t.kind is TokenKind.IDENTIFIER for t in inside)
        return following in ("(", "{") and captures

    def _send(self) -> Send:
        start = self.take("[").start
        receiver = self.expression()
        parts: list[str] = []
        arguments: list[cpp.Expr] = []
        while not self.accept("]"):
            word = self.take().text
            if not self.accept(":"):
                self.take("]")
                return Send(receiver, word, (), start)
            parts.append(f"{word}:")
            arguments.append(self.expression())
        return Send(receiver, "".join(parts), tuple(arguments), start)

    def _block_literal(self) -> cpp.Expr:
        start = self.take("^").start
        begin = self.at
        while self.peek() not in ("(", "{", ""):
            self.at += 1
        returns = self.spell_type(begin, self.at)
        parameters = self.parameters() if self.peek() == "(" else ()
        return cpp.LambdaExpr(parameters, returns, self.block(), start)

    def _boxed(self, start: int) -> Boxed:
        if self.peek() in ("[", "{"):
            closer = "]" if self.take().text == "[" else "}"
            values: list[cpp.Expr] = []
            while not self.accept(closer):
                values.append(self.expression())
                if not self.accept(","):
                    self.accept(":")
            return Boxed(tuple(values), start)
        return Boxed((self._postfix(self._primary()),), start)
