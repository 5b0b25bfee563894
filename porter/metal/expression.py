"""Prints a graph expression as MSL, with locals for shared parts and only the parentheses that precedence needs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cache
from itertools import accumulate

from porter.core.dtypes import Kind
from porter.core.errors import explained
from porter.languages.brackets import is_balanced
from porter.languages.identifiers import is_whole, to_snake_case
from porter.mpsgraph.graph import Call, Cast, Constant, Expr, Input, Literal, Scalar, UnknownValue


class Binding(IntEnum):
    """How tightly the loosest operator of a printed expression binds, outside of its brackets."""

    CONDITION = 0  # all that binds less than a sum: comparisons, choices, bits
    SUM = 1
    MINUS = 2  # before an operand
    QUOTIENT = 3
    PRODUCT = 4
    OPERAND = 5  # a name, a number, a call, an element, a member


_OPERATORS = {
    "+": Binding.SUM, "-": Binding.SUM, "/": Binding.QUOTIENT, "%": Binding.QUOTIENT, "*": Binding.PRODUCT,
}  # fmt: skip


@dataclass(frozen=True)
class Printed:
    """An expression as text that knows where it needs brackets."""

    text: str
    binding: Binding = Binding.OPERAND

    def __str__(self) -> str:
        return self.text

    def within(self, least: Binding) -> str:
        """The text, in brackets if it binds less than `least`."""
        return self.text if self.binding >= least else f"({self.text})"

    @property
    def operand(self) -> str:
        """The text as the operand of any operator."""
        return self.within(Binding.OPERAND)


@cache
def _read_binding(form: str) -> Binding:
    """How tightly a form of the table of operations binds."""
    depths = accumulate((character in "([") - (character in ")]") for character in form)
    outside = "".join(character for character, depth in zip(form, depths, strict=True) if depth == 0)
    unary = {"-": Binding.MINUS, "~": Binding.PRODUCT, "!": Binding.PRODUCT}.get(form[:1], Binding.OPERAND)
    return min((_OPERATORS.get(word, Binding.CONDITION) for word in outside.split(" ")[1::2]), default=unary)


@cache
def _stands_alone(form: str, operand: str) -> bool:
    """Whether brackets and commas are around an operand wherever a form has it."""
    before, behind = form.split(operand)[:-1], form.split(operand)[1:]
    return all(text.endswith(("(", ", ")) for text in before) and all(text.startswith((")", ",")) for text in behind)


def fill_form(form: str, args: Sequence[Printed]) -> Printed:
    """A form with its operands, in brackets where its operators need them."""
    if form == "{0}":
        return args[0]
    texts = (arg.text if _stands_alone(form, f"{{{i}}}") else arg.operand for i, arg in enumerate(args))
    return Printed(form.format(*texts), _read_binding(form))


@dataclass
class Printer:
    """Prints one expression. `names` maps inputs to their MSL names; `form` returns an operation's MSL template."""

    names: Mapping[str, str]
    form: Callable[[Call], str]
    locals: list[str] = field(default_factory=list)
    _known: dict[Expr, Printed] = field(default_factory=dict)
    _uses: Counter[Expr] = field(default_factory=Counter)

    def statements(self, expr: Expr, wrap: Callable[[str], str]) -> tuple[str, ...]:
        """Returns the declarations of locals for shared parts, then `return wrap(value);`."""
        self._uses.update(_list_uses(expr))
        value = self._value(expr)
        return (*self.locals, f"return {wrap(value.text)};")

    def _value(self, expr: Expr) -> Printed:
        if expr in self._known:
            return self._known[expr]
        value = self._format(expr)
        if self._uses[expr] > 1 and isinstance(expr, Call):
            name = f"{to_snake_case(expr.op)}{len(self.locals) or ''}"
            self.locals.append(f"const auto {name} = {value};")
            value = self._known[expr] = Printed(name)
        return value

    def _format(self, expr: Expr) -> Printed:
        match expr:
            case Input(name=name) | Scalar(name=name):
                return Printed(self.names[name])
            case Constant(value=value, dtype=dtype):
                return print_number(value, dtype.kind)
            case Literal() | UnknownValue():
                raise explained("PTR135", "the graph is not elementwise")
            case Cast(arg=arg, dtype=dtype):
                kind = "float" if dtype.kind is Kind.FLOATING else dtype.metal
                inner = self._value(arg)
                return inner if inner.text.startswith(f"{kind}(") else Printed(f"{kind}({inner})")
            case Call():
                template = self.form(expr)
                args = [self._value(arg) for arg in expr.args]
                # Whole numbers alone would be computed as integers; a template deduces one type of all its arguments.
                is_call = _read_binding(template) is Binding.OPERAND
                if (is_call and len(args) > 1) or all(map(_is_constant, expr.args)):
                    args = [_as_float(arg, value) for arg, value in zip(expr.args, args, strict=True)]
                return fill_form(template, args)


def _as_float(arg: Expr, printed: Printed) -> Printed:
    """An argument as printed, a whole number of a floating type with its point."""
    return write_point(printed) if isinstance(arg, Constant) and arg.dtype.kind is Kind.FLOATING else printed


def _is_constant(expr: Expr) -> bool:
    return isinstance(expr, Constant) or (isinstance(expr, Call) and all(map(_is_constant, expr.args)))


def literal(value: float | int | bool, kind: Kind) -> str:
    """Returns a number as an MSL literal, never a double."""
    if isinstance(value, bool) or kind is Kind.BOOL:
        return "true" if value else "false"
    if kind is Kind.INTEGRAL and float(value).is_integer():
        return str(int(value))
    number = float(value)
    if math.isnan(number):
        return "NAN"
    if math.isinf(number):
        return "INFINITY" if number > 0 else "-INFINITY"
    if number.is_integer() and abs(number) < 1e6:
        return str(int(number))
    return f"{number:.9g}f" if "." in f"{number:.9g}" or "e" in f"{number:.9g}" else f"{number:.9g}.0f"


def _list_uses(expr: Expr) -> Iterator[Expr]:
    """Yields every expression once per use, without repeating the operands of shared ones."""
    seen: set[Expr] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, Call):
            stack.extend(node.args)
        elif isinstance(node, Cast):
            stack.append(node.arg)


def write_point(number: Printed) -> Printed:
    """A number that is no integer, though it may be whole."""
    return replace(number, text=f"{number}.0f") if is_whole(number.text) else number


def print_number(value: float | int | bool, kind: Kind) -> Printed:
    """A number as an MSL literal."""
    return Printed(literal(value, kind), Binding.MINUS if value < 0 else Binding.OPERAND)


def uncast_return(line: str, type_: str) -> str:
    """A statement that returns without the cast to a type of what it returns, if it has one."""
    indent, value = split_return(line)
    inner = value.removeprefix(f"static_cast<{type_}>(").removesuffix(")")
    return f"{indent}return {inner};" if f"static_cast<{type_}>({inner})" == value and is_balanced(inner) else line


def split_return(line: str) -> tuple[str, str]:
    """The spaces before a statement that returns, and what it returns, which is nothing for another statement."""
    indent, word, value = line.partition("return ")
    return (indent, value[:-1]) if word and not indent.strip() and value.endswith(";") else ("", "")
