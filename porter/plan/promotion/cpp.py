"""Prints expressions as C++."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from porter.plan.promotion.expressions import (
    Apply,
    Argument,
    Constant,
    Input,
    Listed,
    Method,
    Named,
    Node,
    OfTensor,
    SameSizes,
    Select,
    Size,
    Sizes,
    is_never_negative,
    is_tensor,
    type_of,
)
from porter.plan.promotion.promotion import Message, Requirement

_CALL, _UNARY, _SUM, _EQUAL, _AND, _OR, _SELECT = 9, 8, 5, 3, 2, 1, 0
_LEVELS = {
    "or": _OR, "and": _AND, "==": _EQUAL, "!=": _EQUAL, "<": 4, "<=": 4, ">": 4, ">=": 4,
    "+": _SUM, "-": _SUM, "*": 6, "/": 6, "//": 6, "%": 6,
}  # fmt: skip
_SIGNS = {"or": "||", "and": "&&", "//": "/"}
_TYPES = {"int": "int64_t", "float": "double", "bool": "bool"}
_ROUNDED = ("floor", "ceil")


@dataclass
class Printer:
    """Prints values. Those in `names` are printed by their names, and declared by `declarations` if they were used."""

    names: Mapping[Node, str] = field(default_factory=dict)
    declared: dict[str, str] = field(default_factory=dict)

    def print(self, node: Node, level: int = _SELECT) -> str:
        """C++ for a value, in brackets if it binds less than `level`."""
        name = self.names.get(node)
        if name is not None:
            self._declare(node, name)
            return name
        text, own = self._spell(node)
        return f"({text})" if own < level else text

    @property
    def declarations(self) -> tuple[str, ...]:
        """The declarations of the names that were used, each after those that it uses."""
        return tuple(self.declared.values())

    def check(self, requirement: Requirement, op: str) -> str:
        """The statement that checks a requirement."""
        condition = self.print(requirement.condition)
        return f"{requirement.check.value}({condition}, {self.message(requirement.message, op)});"

    def message(self, message: Message, op: str) -> str:
        """The arguments of a check's message."""
        first, *rest = message or ("",)
        parts = (f"{op}: {first}", *rest) if isinstance(first, str) else (f"{op}: ", *message)
        return ", ".join(quote(part) if isinstance(part, str) else self.print(part) for part in parts)

    def listed(self, sizes: Node) -> str:
        """Sizes as an argument of a function that takes an IntArrayRef."""
        if isinstance(sizes, Listed) and sizes not in self.names:
            return "{" + ", ".join(map(self.print, sizes.sizes)) + "}" if sizes.sizes else "IntArrayRef{}"
        return self.print(sizes)

    def _declare(self, node: Node, name: str) -> None:
        if name in self.declared:
            return
        text, _ = self._spell(node)
        type_ = "Tensor" if is_tensor(node) else _TYPES[type_of(node)]
        self.declared[name] = f"const {type_} {name} = {text};"

    def _spell(self, node: Node) -> tuple[str, int]:
        match node:
            case Constant():
                return _spell_constant(node)
            case Argument(name, _) | Input(name) | Named(name):
                return name, _CALL
            case OfTensor(tensor, name):
                return f"{self._sized(tensor)}.{name}()", _CALL
            case Size(tensor, dim, name):
                return f"{self._sized(tensor)}.{name}({dim})", _CALL
            case Method(tensor, name, arguments):
                return f"{self.print(tensor, _CALL)}.{name}({', '.join(map(self.listed, arguments))})", _CALL
            case Sizes(tensor, start, stop):
                return f"{self._sized(tensor)}.sizes(){self._slice(tensor, start, stop)}", _CALL
            case Listed():
                return f"IntArrayRef({self.listed(node)})", _CALL
            case SameSizes(left, right):
                return f"{self.print(left, _SUM)} == {self.print(right, _SUM)}", _EQUAL
            case Select(condition, yes, no):
                return f"{self.print(condition, _OR)} ? {self.print(yes, _OR)} : {self.print(no, _OR)}", _SELECT
            case Apply():
                return self._apply(node)

    def _sized(self, tensor: Node) -> str:
        """A tensor whose sizes are asked for: a dense copy of it that has a name does as well."""
        if not isinstance(tensor, Input) and tensor not in self.names:
            for node in self.names:
                if is_tensor(node) and _without_copies(node) == tensor:
                    return self.print(node, _CALL)
        return self.print(tensor, _CALL)

    def _slice(self, tensor: Node, start: int, stop: int | None) -> str:
        if (start, stop) == (0, None):
            return ""
        dim = f"{self._sized(tensor)}.dim()"
        first = str(start) if start >= 0 else f"{dim} - {-start}"
        if stop is None:
            return f".slice({first})"
        if start >= 0 and stop >= 0:
            return f".slice({start}, {stop - start})"
        end = str(stop) if stop >= 0 else f"{dim} - {-stop}"
        return f".slice({first}, {end}{f' - ({first})' if start else ''})"

    def _apply(self, node: Apply) -> tuple[str, int]:
        function, arguments = node.function, node.arguments
        type_ = _TYPES[type_of(node)]
        if function in ("min", "max"):
            return f"std::{function}<{type_}>({', '.join(map(self.print, arguments))})", _CALL
        if function == "ceil_div":
            return f"at::ceil_div<int64_t>({', '.join(map(self.print, arguments))})", _CALL
        if function in ("neg", "not"):
            return f"{'-' if function == 'neg' else '!'}{self.print(arguments[0], _UNARY)}", _UNARY
        if function in ("float", "int"):
            return f"static_cast<{type_}>({self.print(arguments[0])})", _CALL
        if function in _ROUNDED:
            return f"static_cast<int64_t>(std::{function}({self._double(arguments[0])}))", _CALL
        if function == "pow":
            power = f"std::pow({', '.join(map(self._double, arguments))})"
            return (f"static_cast<int64_t>({power})" if type_ == "int64_t" else power), _CALL
        if function not in _LEVELS:
            given = self.print(arguments[0]) if function == "abs" else self._double(arguments[0])
            return f"std::{function}({given})", _CALL
        if function in ("//", "%") and not all(map(is_never_negative, arguments)):
            return self._rounded_down(function, *map(self.print, arguments)), _CALL
        left, right = arguments
        level = _LEVELS[function]
        if function in ("and", "or"):
            return f" {_SIGNS[function]} ".join(self._term(function, each) for each in arguments), level
        first = self._double(left) if function == "/" else self.print(left, level)
        return f"{first} {_SIGNS.get(function, function)} {self.print(right, level + 1)}", level

    def _term(self, function: str, node: Node) -> str:
        alike = isinstance(node, Apply) and node.function == function
        return self.print(node, _OR if alike else _EQUAL)

    def _double(self, node: Node) -> str:
        text = self.print(node)
        return text if type_of(node) == "float" else f"static_cast<double>({text})"

    @staticmethod
    def _rounded_down(function: str, left: str, right: str) -> str:
        """Python's division of numbers that may be negative."""
        quotient = f"c10::div_floor_integer<int64_t>({left}, {right})"
        return quotient if function == "//" else f"(({left}) - {quotient} * ({right}))"


def _without_copies(tensor: Node) -> Node:
    match tensor:
        case Method(inner, "contiguous"):
            return _without_copies(inner)
        case Select(condition, yes, no):
            return Select(condition, _without_copies(yes), _without_copies(no))
    return tensor


def quote(text: str) -> str:
    """A text as a C++ string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _spell_constant(node: Constant) -> tuple[str, int]:
    if node.type == "bool":
        return str(node.value).lower(), _CALL
    if isinstance(node.value, float) and not math.isfinite(node.value):
        name = "quiet_NaN" if math.isnan(node.value) else "infinity"
        return f"{'-' if node.value < 0 else ''}std::numeric_limits<double>::{name}()", _UNARY
    return repr(node.value), _CALL if node.value >= 0 else _UNARY
