"""Parses parameters, arrays of constants, and loops that declare a counter."""

from __future__ import annotations

from porter.languages.cpp import (
    ArrayDeclaration,
    Block,
    Expr,
    ExpressionStatement,
    For,
    Opaque,
    Parameter,
    ParseError,
    Stmt,
)
from porter.languages.cursor import DEPTHS, Cursor, is_word

BUILTIN_TYPES = frozenset(("float", "double", "int", "bool", "long", "short", "char", "unsigned"))


class DeclarationParser(Cursor):
    """The part of a parser that reads what declares several names or parts, which are statements and expressions."""

    def expression(self) -> Expr:
        """An expression down to, not including, a comma."""
        raise NotImplementedError

    def statement(self) -> list[Stmt]:
        """One statement."""
        raise NotImplementedError

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
