"""Python calls and displays (list, tuple, set, dict literals): found by a scan, read by `ast`, edited by libcst.

Parsing a whole PyTorch test file takes seconds, so only the one expression is parsed. libcst is only imported for edits
within lines.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby

from porter.core.edits import Edit, line_of
from porter.core.errors import Place, PorterError
from porter.languages.lexer import CLOSERS

_TOKEN = re.compile(
    r"\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'"
    r"|\#[^\n]*|\(|\)|\[|\]|\{|\}",  # each a literal, of which `re` searches for all at once
    re.DOTALL,
)
_LINE_END = re.compile(rb"\r\n?|\n")
_DEEPEST = 60


@dataclass(frozen=True)
class Item:
    """An argument of a call or element of a display, with the `name` of a keyword argument or `key` in a dict."""

    name: str
    key: ast.expr | None
    value: ast.expr


@dataclass(frozen=True)
class Expression:
    """A call, list, tuple, set or dict at `start` to `end` of the file's text."""

    file: str
    text: str
    start: int
    end: int

    @property
    def source(self) -> str:
        return self.text[self.start : self.end]

    @cached_property
    def node(self) -> ast.expr:
        """Its syntax tree. Raises PTR067 if Python cannot parse it."""
        with _code_syntax_errors(self), warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # about the fork's code, not the user's
            found = _parse(self.source)
        if _is_too_deep(found):
            place = Place(self.file, self.line(found))
            raise PorterError("PTR067", "cannot parse this expression: it is nested too deeply", place, "Fix the file.")
        return found

    @property
    def items(self) -> tuple[Item, ...]:
        return read_items(self.node)

    def line(self, node: ast.expr) -> int:
        """Returns the line of the file, from 1, where a node starts."""
        return line_of(self.text, self.start) + node.lineno - 1

    def text_of(self, node: ast.expr) -> str:
        """Returns the source text of a node, as `ast.get_source_segment`, which splits the lines anew for each."""
        starts, data = self._lines
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        return data[starts[node.lineno - 1] + node.col_offset : end].decode()

    @cached_property
    def _lines(self) -> tuple[tuple[int, ...], bytes]:
        """Where each line starts, and the source: nodes say where they are in bytes."""
        data = self.source.encode()
        return (0, *(match.end() for match in _LINE_END.finditer(data))), data


@lru_cache(maxsize=256)
def _parse(source: str) -> ast.expr:
    """Cached: an edit of a file leaves most of its expressions as they are."""
    return ast.parse(source, mode="eval").body


def find_expression(file: str, text: str, start: int, opening: int) -> Expression:
    """Returns the expression from `start` to the end of the bracket pair at `opening`.

    Raises PTR067 if the bracket is never closed.
    """
    pending: list[str] = []
    for token in _TOKEN.finditer(text, opening):
        bracket = token[0]
        if bracket in CLOSERS:
            pending.append(bracket)
        elif len(bracket) == 1 and bracket != "#":
            if not pending or CLOSERS[pending.pop()] != bracket:
                break
            if not pending:
                return Expression(file, text, start, token.end())
    raise PorterError("PTR067", "this bracket is never closed", Place(file, line_of(text, opening)), "Close it.")


def read_items(node: ast.expr) -> tuple[Item, ...]:
    """Returns the arguments of a call, in source order, or the elements of a display; none for any other node."""
    if isinstance(node, ast.Call):
        arguments = [Item("", None, each) for each in node.args]
        keywords = [Item(each.arg or "", None, each.value) for each in node.keywords]
        return tuple(sorted((*arguments, *keywords), key=lambda i: (i.value.lineno, i.value.col_offset)))
    if isinstance(node, ast.Dict):
        return tuple(Item("", key, value) for key, value in zip(node.keys, node.values, strict=True))
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return tuple(Item("", None, value) for value in node.elts)
    return ()


def read_string(node: ast.expr | None) -> str:
    """Returns the value of a string literal, or an empty string."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def remove_items(found: Expression, gone: Collection[tuple[int, ...]]) -> tuple[Edit, ...]:
    """Returns the edit that removes items. `(2,)` is the third item, `(2, 0)` the first item of its value.

    The commas of the items, the lines they fill and the comments about them are removed too. All other bytes stay.
    """
    if not gone:
        return ()
    simple = drop_lines(found.source, found.node, gone)
    if simple is not None:
        return (Edit(found.file, found.start, found.end, simple),)
    from porter.languages import python_layout

    with _code_syntax_errors(found):
        return (Edit(found.file, found.start, found.end, python_layout.remove_items(found.source, gone)),)


def insert_strings(found: Expression, added: Mapping[int, Collection[str]]) -> tuple[Edit, ...]:
    """Returns the edit that inserts strings into a set or list, each before the item at that index, in its style."""
    if not any(added.values()):
        return ()
    from porter.languages import python_layout

    with _code_syntax_errors(found):
        return (Edit(found.file, found.start, found.end, python_layout.insert_strings(found.source, added)),)


@contextmanager
def _code_syntax_errors(found: Expression) -> Iterator[None]:
    """Raises PTR067, with the place in the file, for a syntax error in an expression."""
    try:
        yield
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:  # what ast raises for text that is no code
        line = (error.lineno if isinstance(error, SyntaxError) else 0) or 1
        what = error.msg if isinstance(error, SyntaxError) else "it is nested too deeply"
        what = "it is not UTF-8" if isinstance(error, ValueError) else what
        place = Place(found.file, line_of(found.text, found.start) + line - 1)
        raise PorterError("PTR067", f"cannot parse this expression: {what}", place, "Fix the file.") from error


@lru_cache(maxsize=256)
def _is_too_deep(node: ast.expr) -> bool:
    """Cached, as nodes are."""
    pending: list[tuple[ast.AST, int]] = [(node, 0)]
    while pending:
        each, depth = pending.pop()
        if depth > _DEEPEST:
            return True
        pending += [(child, depth + 1) for child in ast.iter_child_nodes(each)]
    return False


_AFTER = re.compile(rb"\s*,\s*(#.*)?")
_OTHER_BREAKS = re.compile(r"\r(?!\n)|[\f\v\x1c-\x1e\x85\u2028\u2029]")

Read = Sequence[tuple[ast.expr, ast.expr]]  # where an item starts, and its value


def drop_lines(source: str, node: ast.expr, gone: Collection[tuple[int, ...]]) -> str | None:
    """Returns the text without the items at these paths, or None if one shares its lines or has comments about it."""
    if _OTHER_BREAKS.search(source):
        return None
    lines = source.split("\n")
    dropped = set[int]()
    for value, paths in _group(node, gone):
        items = _read(value)
        left = len(items) - len(paths)
        if not left or (left == 1 and isinstance(value, ast.Tuple)):
            return None
        for at in paths:
            span = _find_lines(lines, *items[at])
            if span is None:
                return None
            dropped.update(span)
    return "\n".join(line for at, line in enumerate(lines) if at not in dropped)


def _group(node: ast.expr, gone: Collection[tuple[int, ...]]) -> Iterator[tuple[ast.expr, list[int]]]:
    """Yields the displays that lose items, with the indexes of these."""
    for inside, paths in groupby(sorted(gone, key=lambda path: (path[:-1], path)), key=lambda path: path[:-1]):
        value = node
        for at in inside:
            value = _read(value)[at][1]
        yield value, [path[-1] for path in paths]


def _read(node: ast.expr) -> Read:
    if isinstance(node, ast.Call):
        values = [*node.args, *(each.value for each in node.keywords)]
        return sorted(((each, each) for each in values), key=lambda item: (item[0].lineno, item[0].col_offset))
    if isinstance(node, ast.Dict):
        return [(key or value, value) for key, value in zip(node.keys, node.values, strict=True)]
    return [(each, each) for each in node.elts] if isinstance(node, ast.List | ast.Tuple | ast.Set) else []


def _find_lines(lines: Sequence[str], start: ast.expr, value: ast.expr) -> range | None:
    """Returns the lines that an item fills with its comma and the comment behind it, between lines of other code."""
    first, last = start.lineno - 1, (value.end_lineno or 0) - 1
    before, after = lines[first].encode()[: start.col_offset], lines[last].encode()[value.end_col_offset or 0 :]
    if before.strip() or not _AFTER.fullmatch(after.rstrip(b"\r")) or not 0 < first <= last < len(lines) - 1:
        return None
    beside = (lines[first - 1].strip(), lines[last + 1].strip())
    return None if any(not text or text.startswith("#") for text in beside) else range(first, last + 1)
