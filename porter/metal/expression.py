"""Prints a graph expression as MSL, with locals for shared parts and only the parentheses that precedence needs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from porter.core.dtypes import Kind
from porter.core.errors import explained
from porter.languages.brackets import find_closing_end, is_balanced
from porter.languages.identifiers import is_whole
from porter.mpsgraph.graph import Call, Cast, Constant, Expr, Input, Literal, Scalar, UnknownValue

_ATOM = re.compile(r"[\w:.]+(?:<[\w:<>]+>)?(\(.*\)|\[.*\])?\Z", re.S)


@dataclass
class Printer:
    """Prints one expression. `names` maps inputs to their MSL names; `form` returns an operation's MSL template."""

    names: Mapping[str, str]
    form: Callable[[Call], str]
    locals: list[str] = field(default_factory=list)
    _known: dict[Expr, str] = field(default_factory=dict)
    _uses: Counter[Expr] = field(default_factory=Counter)

    def statements(self, expr: Expr, wrap: Callable[[str], str]) -> tuple[str, ...]:
        """Returns the declarations of locals for shared parts, then `return wrap(value);`."""
        self._uses.update(_list_uses(expr))
        value = self._value(expr)
        return (*self.locals, f"return {wrap(value)};")

    def _value(self, expr: Expr) -> str:
        if expr in self._known:
            return self._known[expr]
        text = self._format(expr)
        if self._uses[expr] > 1 and isinstance(expr, Call):
            name = f"{re.sub(r'(?<!^)(?=[A-Z])', '_', expr.op).lower()}{len(self.locals) or ''}"
            self.locals.append(f"const auto {name} = {text};")
            text = self._known[expr] = name
        return text

    def _format(self, expr: Expr) -> str:
        match expr:
            case Input(name=name) | Scalar(name=name):
                return self.names[name]
            case Constant(value=value, dtype=dtype):
                return literal(value, dtype.kind)
            case Literal() | UnknownValue():
                raise explained("PTR135", "the graph is not elementwise")
            case Cast(arg=arg, dtype=dtype):
                kind = "float" if dtype.kind is Kind.FLOATING else dtype.metal
                inner = self._value(arg)
                return inner if inner.startswith(f"{kind}(") else f"{kind}({inner})"
            case Call():
                template = self.form(expr)
                infix = not _ATOM.match(re.sub(r"\{\d\}", "x", template))
                args = [self._value(arg) for arg in expr.args]
                # Whole numbers alone would be computed as integers; a template deduces one type of all its arguments.
                if (not infix and len(args) > 1) or all(map(_is_constant, expr.args)):
                    args = [_as_float(arg, text) for arg, text in zip(expr.args, args, strict=True)]
                return template.format(*(parenthesize(arg) if infix else arg for arg in args))


def _as_float(arg: Expr, text: str) -> str:
    """Returns the text of an argument, a whole number of a floating type with its point."""
    is_float = isinstance(arg, Constant) and arg.dtype.kind is Kind.FLOATING
    return f"{text}.0f" if is_float and is_whole(text) else text


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


def parenthesize(text: str) -> str:
    """The text, in parentheses where an operand needs them."""
    opener = min((at for at in map(text.find, "([") if at >= 0), default=-1)
    # It closes at the end of a single call, but earlier in `f(x) + g(y)`.
    is_one = _ATOM.match(text) and (opener < 0 or find_closing_end(text, opener) == len(text))
    return text if is_one else f"({text})"


def is_term(text: str) -> bool:
    """Whether a text binds at least as a product, so that it can stand in a sum."""
    outside = _outside_brackets(text)
    return not re.search(r" [-+?:<>=&|^]+ ", outside)


def is_product(text: str) -> bool:
    """Whether a text only multiplies, so that it can be multiplied again."""
    return is_term(text) and not re.search(r" [/%] ", _outside_brackets(text)) and not text.startswith("-")


def _outside_brackets(text: str) -> str:
    while (shorter := re.sub(r"\([^()]*\)|\[[^\[\]]*\]", "", text)) != text:
        text = shorter
    return text


def uncast_return(line: str, type_: str) -> str:
    """A statement that returns without the cast to a type of what it returns, if it has one."""
    indent, value = split_return(line)
    inner = value.removeprefix(f"static_cast<{type_}>(").removesuffix(")")
    return f"{indent}return {inner};" if f"static_cast<{type_}>({inner})" == value and is_balanced(inner) else line


def split_return(line: str) -> tuple[str, str]:
    """The spaces before a statement that returns, and what it returns, which is nothing for another statement."""
    indent, word, value = line.partition("return ")
    return (indent, value[:-1]) if word and not indent.strip() and value.endswith(";") else ("", "")
