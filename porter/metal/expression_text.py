"""Expressions of loop nests as Metal, in the words that a `Spelling` gives them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from porter.core.dtypes import BOOL, FLOAT
from porter.languages.identifiers import is_whole
from porter.loops.expressions import Buffer, Expr, Loop, Op
from porter.loops.host_values import Named
from porter.metal.expression import is_product, is_term, literal, parenthesize
from porter.metal.loop_spelling import (
    Spelling,
    fill_form,
    find_form_of,
    flatten_sum,
    is_plain,
    list_operands,
)

_CONDITIONS = {Op.LESS: " < ", Op.EQUAL: " == ", Op.BOTH: " && "}
_FUNCTIONS = {Op.LEAST: "min", Op.GREATEST: "max", Op.DISTANCE: "abs"}


@dataclass
class ExpressionWriter:
    """Writes expressions. `bound` are those that have a variable where the text now stands."""

    spelling: Spelling
    is_copy: bool
    copied: str = ""  # the type of the elements that are moved
    bound: dict[Expr, str] = field(default_factory=dict)

    def text(self, expr: Expr) -> str:
        if expr in self.bound:
            return self.bound[expr]
        if self.is_copy and expr.op is Op.CALL:
            # A value that an index is computed from, where elements are moved
            copied, self.is_copy, self.copied = self.copied, False, ""
            text = self.text(expr)
            self.is_copy, self.copied = True, copied
            return text
        if isinstance(expr.attribute, Loop):
            return self.spelling.loop(expr.attribute)
        if expr.op is Op.LOAD:
            return self._read(expr)
        if expr.op is Op.SUM:
            return self.write_sum(expr.args)
        args = [self.text(arg) for arg in list_operands(expr)]
        if expr.op is Op.PRODUCT:
            by = parenthesize(args[1]) if not args[1].startswith("-") else args[1]
            index = args[0] if is_product(args[0]) else parenthesize(args[0])
            return f"-{parenthesize(args[0])}" if by == "-1" else f"{index} * {by}"
        if expr.op in (Op.QUOTIENT, Op.REMAINDER):
            return self._divide(expr, args[0], parenthesize(args[1]))
        if expr.op in _CONDITIONS:
            return _CONDITIONS[expr.op].join(arg if is_plain(arg) else f"({arg})" for arg in args)
        if expr.op in _FUNCTIONS:
            typed = [f"{self.spelling.index}({arg})" if is_whole(arg) else arg for arg in args]
            return f"{_FUNCTIONS[expr.op]}({', '.join(typed)})"
        return self._value_text(expr, args)

    def _value_text(self, expr: Expr, args: Sequence[str]) -> str:
        match expr.op:
            case Op.INTEGER:
                return expr.attribute.name if isinstance(expr.attribute, Named) else str(expr.integer)
            case Op.NUMBER:
                return self._number(expr)
            case Op.CALL:
                return fill_form(find_form_of(expr, self.spelling.has_complex), args)
            case Op.CAST if expr.args[0].op is Op.LOAD and expr.args[0] not in self.bound and not self.is_copy:
                assert expr.dtype is not None
                return f"{self.converter(self.spelling.value(expr.dtype))}({self.load(expr.args[0])})"
            case Op.CAST | Op.INDEX_VALUE:
                return f"static_cast<{self.spelling.value(expr.dtype) if expr.dtype else 'int'}>({args[0]})"
            case Op.READ_INDEX:
                return f"static_cast<{self.spelling.index}>({args[0]})"
            case Op.SELECT:
                return f"{parenthesize(args[0])} ? {parenthesize(args[1])} : {parenthesize(args[2])}"
        raise AssertionError(expr.op)

    def load(self, expr: Expr) -> str:
        assert isinstance(expr.attribute, Buffer)
        place = self.spelling.place(expr.attribute, self.text(expr.args[0]))
        return f"{self.spelling.buffers[expr.attribute]}[{place}]"

    def _read(self, expr: Expr) -> str:
        """An element as the type that is computed in."""
        assert isinstance(expr.attribute, Buffer) and expr.dtype is not None
        element, value = self.spelling.elements[expr.attribute], self.spelling.value(expr.dtype.opmath)
        if self.is_copy or element == value:
            return self.load(expr)
        return f"{self.converter(value)}({self.load(expr)})"

    def write_sum(self, terms: Sequence[Expr]) -> str:
        made = ""
        for term in flatten_sum(terms):
            text = self.text(term)
            text = text if is_term(text) else parenthesize(text)
            is_negative = text.startswith("-")
            made += (f" - {text[1:]}" if is_negative else f" + {text}") if made else text
        return made

    def _divide(self, expr: Expr, index: str, by: str) -> str:
        """C++ divides toward zero, indices are divided down."""
        index = parenthesize(index)
        if expr.args[0].bounds is not None and expr.args[0].bounds[0] >= 0:
            return f"{index} {'/' if expr.op is Op.QUOTIENT else '%'} {by}"
        remainder = f"({index} % {by} + {by}) % {by}"
        return remainder if expr.op is Op.REMAINDER else f"({index} - {remainder}) / {by}"

    def _number(self, expr: Expr) -> str:
        assert expr.dtype is not None
        written = self.copied or self.spelling.value(expr.dtype)
        if isinstance(expr.attribute, Named):
            if isinstance(expr.attribute.example, bool) or expr.attribute in self.spelling.scalars:
                return expr.attribute.name
            number, is_real = expr.attribute, self.spelling.has_complex and expr.dtype == FLOAT
            is_float = isinstance(number.example, float) and (is_real or written == FLOAT.metal)
            return number.name if is_float else f"static_cast<{'float' if is_real else written}>({number.name})"
        assert isinstance(expr.attribute, (bool, int, float))
        if self.copied and expr.attribute == 0:
            return f"{self.copied}(0)"
        text = literal(expr.attribute, expr.dtype.kind)
        if self.copied and self.spelling.has_complex:
            return f"c10::metal::cast_to<{self.copied}>({text})"
        if written in (FLOAT.metal, BOOL.metal):
            return text if not is_whole(text) else f"{text}.0f"
        return f"{written}({text})"

    def converter(self, type_: str) -> str:
        """What converts to a type of the template: a real number becomes a complex one without an imaginary part."""
        return f"c10::metal::cast_to<{type_}>" if self.spelling.has_complex else f"static_cast<{type_}>"
