"""Calls and displays of Python: found in a file by a cheap scan, read by `ast`, edited by libcst.

Parsing PyTorch's test files as a whole takes seconds: only the one expression is ever parsed, and libcst is imported
only for an edit.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from porter.core.edits import Edit, line_of
from porter.core.errors import Place, PorterError

_TOKEN = re.compile(
    r"\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'"
    r"|\#[^\n]*|(?P<bracket>[()\[\]{}])",
    re.DOTALL,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_DEEPEST = 60


@dataclass(frozen=True)
class Item:
    """An argument of a call or an element of a display. `name` is a keyword argument's, `key` a dict's."""

    name: str
    key: ast.expr | None
    value: ast.expr


@dataclass(frozen=True)
class Expression:
    """A call, list, tuple, set or dict: `start` to `end` of the file's text."""

    file: str
    text: str
    start: int
    end: int

    @property
    def source(self) -> str:
        return self.text[self.start : self.end]

    @cached_property
    def node(self) -> ast.expr:
        """Its syntax tree. Raises PTR067 where Python cannot parse it."""
        with _syntax_of(self):
            found = ast.parse(self.source, mode="eval").body
        _check_depth(self, found)
        return found

    @property
    def items(self) -> tuple[Item, ...]:
        return read_items(self.node)

    def line(self, node: ast.expr) -> int:
        """The file's line, from 1, on which a part of it begins."""
        return line_of(self.text, self.start) + node.lineno - 1

    def text_of(self, node: ast.expr) -> str:
        """A part of it as it is written."""
        return ast.get_source_segment(self.source, node) or ""


def find_expression(file: str, text: str, start: int, opening: int) -> Expression:
    """The expression that begins at `start` and ends with the bracket that opens at `opening`. Raises PTR067 if that
    never closes.
    """
    pending: list[str] = []
    for token in _TOKEN.finditer(text, opening):
        bracket = token["bracket"]
        if bracket in _CLOSING:
            pending.append(bracket)
        elif bracket:
            if not pending or _CLOSING[pending.pop()] != bracket:
                break
            if not pending:
                return Expression(file, text, start, token.end())
    raise PorterError("PTR067", "this bracket is never closed", Place(file, line_of(text, opening)), "Close it.")


def read_items(node: ast.expr) -> tuple[Item, ...]:
    """The arguments of a call in the order of the text, or the elements of a display; nothing of any other node."""
    if isinstance(node, ast.Call):
        arguments = [Item("", None, each) for each in node.args]
        keywords = [Item(each.arg or "", None, each.value) for each in node.keywords]
        return tuple(sorted((*arguments, *keywords), key=lambda i: (i.value.lineno, i.value.col_offset)))
    if isinstance(node, ast.Dict):
        return tuple(Item("", key, value) for key, value in zip(node.keys, node.values, strict=True))
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return tuple(Item("", None, value) for value in node.elts)
    return ()


def string_of(node: ast.expr | None) -> str:
    """The value of a string literal, or nothing."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def remove_items(found: Expression, gone: Collection[tuple[int, ...]]) -> tuple[Edit, ...]:
    """The edit that takes items out. `(2,)` is the third item, `(2, 0)` the first item of that item's value.

    Items go with their commas, with their lines where they fill them, and with comments about them alone; all else
    stays byte for byte as it was.
    """
    if not gone:
        return ()
    from porter.languages import python_layout

    with _syntax_of(found):
        return (Edit(found.file, found.start, found.end, python_layout.remove_items(found.source, gone)),)


def insert_strings(found: Expression, added: Mapping[int, Collection[str]]) -> tuple[Edit, ...]:
    """The edit that puts strings into a set or list, each before the item of that index, in the neighbor's style."""
    if not any(added.values()):
        return ()
    from porter.languages import python_layout

    with _syntax_of(found):
        return (Edit(found.file, found.start, found.end, python_layout.insert_strings(found.source, added)),)


@contextmanager
def _syntax_of(found: Expression) -> Iterator[None]:
    """Gives a syntax error in an expression its code and its place in the file."""
    try:
        yield
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:  # what ast raises for text that is no code
        line = (error.lineno if isinstance(error, SyntaxError) else 0) or 1
        what = error.msg if isinstance(error, SyntaxError) else "it is nested too deeply"
        what = "it is not UTF-8" if isinstance(error, ValueError) else what
        place = Place(found.file, line_of(found.text, found.start) + line - 1)
        raise PorterError("PTR067", f"cannot parse this expression: {what}", place, "Fix the file.") from error


def _check_depth(found: Expression, node: ast.expr) -> None:
    pending: list[tuple[ast.AST, int]] = [(node, 0)]
    while pending:
        each, depth = pending.pop()
        if depth > _DEEPEST:
            place = Place(found.file, found.line(node))
            what = "cannot parse this expression: it is nested too deeply"
            raise PorterError("PTR067", what, place, "Fix the file.")
        pending += [(child, depth + 1) for child in ast.iter_child_nodes(each)]
