"""Constant integer expressions of Metal source: the arguments of attributes, and the conditions of parameters."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

Lookup = Callable[[str], int | None]
_SIZES = {
    "bool": 1, "char": 1, "uchar": 1, "int8_t": 1, "uint8_t": 1, "short": 2, "ushort": 2, "int16_t": 2, "uint16_t": 2,
    "half": 2, "bfloat": 2, "int": 4, "uint": 4, "int32_t": 4, "uint32_t": 4, "float": 4, "long": 8, "ulong": 8,
    "int64_t": 8, "uint64_t": 8, "size_t": 8,
}  # fmt: skip
_BINARY: Mapping[str, tuple[int, Callable[[int, int], int]]] = {
    "||": (1, lambda a, b: int(bool(a) or bool(b))), "&&": (2, lambda a, b: int(bool(a) and bool(b))),
    "|": (3, operator.or_), "^": (4, operator.xor), "&": (5, operator.and_),
    "==": (6, operator.eq), "!=": (6, operator.ne),
    "<": (7, operator.lt), ">": (7, operator.gt), "<=": (7, operator.le), ">=": (7, operator.ge),
    "<<": (8, lambda a, b: a << min(b, 64)), ">>": (8, lambda a, b: a >> min(b, 64)),
    "+": (9, operator.add), "-": (9, operator.sub),
    "*": (10, operator.mul), "/": (10, lambda a, b: int(a / b)), "%": (10, lambda a, b: a - b * int(a / b)),
}  # fmt: skip
_UNARY: Mapping[str, Callable[[int], int]] = {
    "-": operator.neg, "+": operator.pos, "~": operator.invert, "!": lambda a: int(not a),
}  # fmt: skip


class NotConstant(Exception):
    """The expression is not one that can be evaluated here."""


def evaluate(tokens: Sequence[str], lookup: Lookup) -> int:
    """The value of an expression. `lookup` gives names their values, or None. Raises NotConstant."""
    try:
        reader = _Reader(_join_shifts(tokens), lookup)
        value = reader.conditional()
    except (IndexError, ZeroDivisionError, ValueError, OverflowError, RecursionError) as error:
        raise NotConstant(" ".join(tokens)) from error
    if reader.rest:
        raise NotConstant(" ".join(tokens))
    return value


def _join_shifts(tokens: Sequence[str]) -> list[str]:
    """`<` `<` made one token, which the lexer leaves apart for the sake of templates."""
    joined: list[str] = []
    for token in tokens:
        if token in ("<", ">") and joined[-1:] == [token]:
            joined[-1] = token * 2
        else:
            joined.append(token)
    return joined


class _Reader:
    """Reads an expression from the front of `rest`."""

    def __init__(self, tokens: list[str], lookup: Lookup) -> None:
        self.rest = tokens[::-1]
        self._lookup = lookup

    def conditional(self) -> int:
        value = self._binary(1)
        if not self._take("?"):
            return value
        chosen = self.conditional()
        self._expect(":")
        other = self.conditional()
        return chosen if value else other

    def _binary(self, least: int) -> int:
        value = self._unary()
        while self.rest and (found := _BINARY.get(self.rest[-1])) and found[0] >= least:
            self.rest.pop()
            value = int(found[1](value, self._binary(found[0] + 1)))
        return value

    def _unary(self) -> int:
        token = self.rest.pop()
        if token in _UNARY:
            return _UNARY[token](self._unary())
        if token == "(":
            if self.rest[-1] in _SIZES and self.rest[-2] == ")":
                del self.rest[-2:]
                return self._unary()
            value = self.conditional()
            self._expect(")")
            return value
        if token[0].isdigit():
            return read_integer(token)
        if token == "sizeof":
            self._expect("(")
            size = _SIZES[self.rest.pop()] if self.rest[-1] in _SIZES else self._fail()
            self._expect(")")
            return size
        return self._named(token)

    def _named(self, token: str) -> int:
        if token in ("true", "false"):
            return int(token == "true")
        while self._take("::"):
            token = self.rest.pop()
        if self._take("("):
            arguments = [self.conditional()]
            while self._take(","):
                arguments.append(self.conditional())
            self._expect(")")
            if token in _SIZES and len(arguments) == 1:
                return arguments[0]
            return {"min": min, "max": max}[token](arguments) if token in ("min", "max") else self._fail()
        value = self._lookup(token)
        return self._fail() if value is None else value

    def _take(self, token: str) -> bool:
        if self.rest and self.rest[-1] == token:
            self.rest.pop()
            return True
        return False

    def _expect(self, token: str) -> None:
        if not self._take(token):
            self._fail()

    def _fail(self) -> int:
        raise NotConstant


def read_integer(token: str) -> int:
    """An integer literal of C++. Raises ValueError."""
    text = token.replace("'", "").rstrip("uUlL")
    octal = len(text) > 1 and text[0] == "0" and text[1:].isdigit()
    return int(text, 8) if octal else int(text, 0)
