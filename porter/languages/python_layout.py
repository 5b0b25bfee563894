"""Inserts and removes items of one Python expression with libcst; everything else stays byte for byte.

A layout is the content of a bracket pair: the items, and the gaps around them with their line breaks and comments.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import libcst as cst

Item = cst.Arg | cst.BaseElement | cst.BaseDictElement
Gap = cst.BaseParenthesizableWhitespace
Display = cst.Call | cst.List | cst.Tuple | cst.Set | cst.Dict
Path = tuple[int, ...]

_NOTHING = cst.SimpleWhitespace("")


@dataclass(frozen=True)
class Layout:
    """The items and gaps of a display: `gaps[i]` precedes item i, and the last gap precedes the closing bracket."""

    items: tuple[Item, ...]
    gaps: tuple[Gap, ...]
    trailing_comma: bool


def remove_items(source: str, gone: Collection[Path]) -> str:
    """Returns the text of an expression without the items at these paths. Raises SyntaxError."""
    return _print(source, _remove_paths(_parse(source), gone))


def insert_strings(source: str, added: Mapping[int, Collection[str]]) -> str:
    """Returns the text of a set or list with strings inserted before the items at these indexes. Raises SyntaxError."""
    node = _parse_display(_parse(source))
    layout = _read(node)
    for at in sorted(added, reverse=True):
        for i, string in enumerate(added[at]):
            layout = _insert(layout, at + i, string)
    if isinstance(node, cst.Dict):  # `{}`
        node = cst.Set(layout.items, node.lbrace, node.rbrace)  # type: ignore[arg-type]
    return _print(source, _write(node, layout))


def _parse(source: str) -> cst.BaseExpression:
    try:
        return cst.parse_expression(source)
    except cst.ParserSyntaxError as error:
        raise SyntaxError("libcst does not know this syntax") from error  # the line it names is often the next one


def _print(source: str, node: cst.BaseExpression) -> str:
    newline = re.search(r"\r\n?|\n", source)  # the first is what libcst takes for the default
    return cst.Module((), default_newline=newline[0] if newline else "\n").code_for_node(node)


def _parse_display(node: cst.BaseExpression) -> Display:
    if not isinstance(node, Display):
        raise TypeError(f"{type(node).__name__} has no items")
    return node


def _remove_paths(node: cst.BaseExpression, gone: Collection[Path]) -> cst.BaseExpression:
    node = _parse_display(node)
    layout = _read(node)
    items = list(layout.items)
    for index, paths in groupby(sorted(path for path in gone if len(path) > 1), key=lambda path: path[0]):
        value = _remove_paths(items[index].value, [path[1:] for path in paths])
        items[index] = items[index].with_changes(value=value)
    return _write(node, _drop(replace(layout, items=tuple(items)), {path[0] for path in gone if len(path) == 1}))


def _read(node: Display) -> Layout:
    items: Sequence[Item] = node.args if isinstance(node, cst.Call) else node.elements
    commas = [item.comma for item in items]
    between = [comma.whitespace_after for comma in commas[:-1] if isinstance(comma, cst.Comma)]
    last = commas[-1] if commas else None
    opening, closing = _outer_gaps(node)
    gaps = (opening, *between, closing) if items else (opening,)
    return Layout(tuple(items), gaps, isinstance(last, cst.Comma))


def _outer_gaps(node: Display) -> tuple[Gap, Gap]:
    if isinstance(node, cst.List):
        return node.lbracket.whitespace_after, node.rbracket.whitespace_before
    if isinstance(node, cst.Tuple):
        return node.lpar[-1].whitespace_after, node.rpar[0].whitespace_before
    if not isinstance(node, cst.Call):
        return node.lbrace.whitespace_after, node.rbrace.whitespace_before
    if not node.args:
        return node.whitespace_before_args, _NOTHING
    last = node.args[-1]
    closing = last.comma.whitespace_after if isinstance(last.comma, cst.Comma) else last.whitespace_after_arg
    return node.whitespace_before_args, closing


def _write(node: Display, layout: Layout) -> cst.BaseExpression:
    opening, closing = layout.gaps[0], layout.gaps[-1] if layout.items else _NOTHING
    is_call = isinstance(node, cst.Call)
    items = list(_add_commas(layout, is_call, is_tuple=isinstance(node, cst.Tuple)))
    if is_call:
        return node.with_changes(args=items, whitespace_before_args=opening)
    if isinstance(node, cst.List):
        left, right = cst.LeftSquareBracket(opening), cst.RightSquareBracket(closing)
        return node.with_changes(elements=items, lbracket=left, rbracket=right)
    if isinstance(node, cst.Tuple):
        lpar = (*node.lpar[:-1], cst.LeftParen(opening))
        rpar = (cst.RightParen(closing), *node.rpar[1:])
        return node.with_changes(elements=items, lpar=lpar, rpar=rpar)
    lbrace, rbrace = cst.LeftCurlyBrace(opening), cst.RightCurlyBrace(closing)
    if not items:
        return cst.Dict((), lbrace, rbrace, node.lpar, node.rpar)
    return node.with_changes(elements=items, lbrace=lbrace, rbrace=rbrace)


def _add_commas(layout: Layout, is_call: bool, is_tuple: bool) -> Iterator[Item]:
    """Yields the items with commas between them, and after the last if it had one or is the only one of a tuple."""
    for i, item in enumerate(layout.items):
        is_last = i == len(layout.items) - 1
        before = item.comma.whitespace_before if isinstance(item.comma, cst.Comma) else _NOTHING
        after = layout.gaps[i + 1] if is_call or not is_last else _NOTHING
        has_comma = not is_last or layout.trailing_comma or (is_tuple and i == 0)
        comma = cst.Comma(before, after) if has_comma else cst.MaybeSentinel.DEFAULT
        inner = {"whitespace_after_arg": _NOTHING if has_comma else after} if is_call else {}
        yield item.with_changes(comma=comma, **inner)


def _drop(layout: Layout, gone: Collection[int]) -> Layout:
    """Returns the layout without some of its items. One gap remains of each run of removed items."""
    items: list[Item] = []
    gaps = [layout.gaps[0]]
    trailing = layout.trailing_comma
    for is_gone, run in groupby(range(len(layout.items)), key=lambda i: i in gone):
        if not is_gone:
            for i in run:
                items.append(layout.items[i])
                gaps.append(layout.gaps[i + 1])
            continue
        first, *_ = indexes = list(run)
        at_end = indexes[-1] == len(layout.items) - 1
        gap = _join_all(layout.gaps[first : indexes[-1] + 2], at_start=not items, at_end=at_end)
        if at_end and items:
            trailing = trailing or gap is not layout.gaps[-1]
        gaps[-1] = gap
    if not items and not _has_comment(gaps[0]):
        gaps = [_NOTHING]
    return Layout(tuple(items), tuple(gaps), trailing)


def _join_all(gaps: Sequence[Gap], at_start: bool, at_end: bool) -> Gap:
    """Returns the gap that replaces a run of removed items and the gaps around them."""
    last = gaps[-1]
    # A comment above is about the item alone unless other items follow directly below.
    is_own = at_end or (isinstance(last, cst.ParenthesizedWhitespace) and bool(last.empty_lines))
    left = gaps[0]
    for i, gap in enumerate(gaps[1:], start=2):
        left = _join(left, gap, at_start, at_end and i == len(gaps), is_own)
    return left


def _join(before: Gap, after: Gap, at_start: bool, at_end: bool, is_own: bool) -> Gap:
    """Returns the gap that replaces a removed item and the gaps around it."""
    if not isinstance(after, cst.ParenthesizedWhitespace):
        if at_end and isinstance(before, cst.ParenthesizedWhitespace):
            before = before.with_changes(empty_lines=_remove_own_comment(before.empty_lines))
        return after if at_end and not _has_comment(before) else before
    if isinstance(before, cst.ParenthesizedWhitespace):
        lines = _join_lines(before.empty_lines, after.empty_lines, at_end, is_own)
        return after.with_changes(first_line=before.first_line, empty_lines=lines)
    if not at_start:
        return after
    if any(line.comment for line in after.empty_lines):
        return after.with_changes(first_line=_plain(after.first_line))
    return before


def _join_lines(
    above: Sequence[cst.EmptyLine], below: Sequence[cst.EmptyLine], at_end: bool, is_own: bool
) -> list[cst.EmptyLine]:
    """Joins the comments and blank lines around a removed item, without the comment about it.

    Two blank lines that would meet become one, and none is left before the closing bracket.
    """
    lines = _remove_own_comment(above) if is_own else list(above)
    if lines and not lines[-1].comment:
        if below and not below[0].comment:
            below = below[1:]
        elif at_end and not below:
            lines.pop()
    return [*lines, *below]


def _remove_own_comment(above: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """Returns the lines without the comment directly above the item."""
    lines = list(above)
    while lines and lines[-1].comment:
        lines.pop()
    return lines


def _insert(layout: Layout, at: int, string: str) -> Layout:
    """Returns the layout with a string before item `at`, on its own line if the previous (or else next) item is."""
    neighbor = layout.items[max(at - 1, 0)].value if layout.items else None
    quote = neighbor.quote if isinstance(neighbor, cst.SimpleString) else '"'
    item = cst.Element(cst.SimpleString(f"{quote}{string}{quote}"))
    gaps = list(layout.gaps)
    if not layout.items:
        gaps = [_NOTHING, gaps[0]]
    elif at == 0:
        gaps[1:1] = [_line_break(gaps[0])]
    else:
        gaps[at : at + 1] = _split(gaps[at - 1], gaps[at])
    return Layout((*layout.items[:at], item, *layout.items[at:]), tuple(gaps), layout.trailing_comma)


def _split(before: Gap, after: Gap) -> tuple[Gap, Gap]:
    """Splits `after` into the gaps around a new item; `before` is the gap before the previous item."""
    if not isinstance(before, cst.ParenthesizedWhitespace) or not isinstance(after, cst.ParenthesizedWhitespace):
        return cst.SimpleWhitespace(" "), after
    own = after.with_changes(empty_lines=(), last_line=before.last_line)
    return own, after.with_changes(first_line=_plain(after.first_line))


def _line_break(gap: Gap) -> Gap:
    """Returns a line break with the indent of a gap, or a space if the gap has no line break."""
    if not isinstance(gap, cst.ParenthesizedWhitespace):
        return cst.SimpleWhitespace(" ")
    return gap.with_changes(first_line=_plain(gap.first_line), empty_lines=())


def _plain(line: cst.TrailingWhitespace) -> cst.TrailingWhitespace:
    return cst.TrailingWhitespace(_NOTHING, None, line.newline)


def _has_comment(gap: Gap) -> bool:
    if not isinstance(gap, cst.ParenthesizedWhitespace):
        return False
    return bool(gap.first_line.comment) or any(line.comment for line in gap.empty_lines)
