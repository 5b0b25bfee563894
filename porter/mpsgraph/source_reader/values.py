"""The values of the partial evaluator: graph expressions, tensors with a name and dtype, closures and records."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from porter.aten.branches import Condition
from porter.core.dtypes import DType
from porter.core.errors import Place, PorterError
from porter.languages import cpp
from porter.languages.brackets import ROUND, find_closing_end
from porter.languages.source import Source
from porter.mpsgraph.graph import Call, Cast, Constant, Expr, Input, Scalar

_HEAD = re.compile(r"(if|for|while|switch)\b(?: constexpr)?\s*(?=\()|do\b")
_KINDS = {"if": "a branch", "switch": "a switch"}
_LONGEST = 100


@dataclass(frozen=True)
class ReadText:
    """A function as interpreted: one branch of every `#if`, macros expanded, and the same lines as in the file.

    All of a function expanded from a macro line is at that line, `first`.
    """

    source: Source
    first: Place
    text: str
    of_macro: bool = False

    def place(self, start: int) -> Place:
        """Returns the line of an offset."""
        below = 0 if self.of_macro else self.text.count("\n", 0, start)
        return Place(self.first.file, self.first.line + below)

    def describe(self, start: int) -> str:
        """Describes the branch, loop or switch at an offset, for a message. Empty for anything else."""
        match = _HEAD.match(self.text, start)
        if not match:
            return ""
        end = find_closing_end(self.text, match.end(), ROUND) if match[1] else match.end()
        return f"{_KINDS.get(match[1], 'a loop')}, {quote(self.text[start:end])}"


def quote(text: str) -> str:
    """Returns code on one line, shortened for a message."""
    line = " ".join(text.split())
    return f"`{line[:_LONGEST]}{'...' if len(line) > _LONGEST else ''}`"


@dataclass(frozen=True)
class TensorArg:
    """A tensor argument in the canonical case. It is `wrapped` if host code wraps a scalar into a 0-d CPU tensor."""

    name: str
    dtype: DType
    output: bool = False
    wrapped: bool = False


@dataclass(frozen=True)
class Argument:
    """A scalar, string or optional argument, unknown while planning.

    It is `wrapped` if it was read from a tensor that host code had wrapped it in.
    """

    name: str
    type: str
    dtype: DType
    wrapped: bool = False

    @property
    def optional(self) -> bool:
        return self.type.endswith("?")


@dataclass(frozen=True)
class Test:
    """A condition on an argument, on which the evaluation forks."""

    text: str


@dataclass(frozen=True)
class Unknown:
    """A value that does not matter to the graph (a stream, key or shape). A branch on it is an error."""

    text: str


@dataclass(frozen=True)
class GraphHandle:
    """The MPSGraph being built."""


@dataclass(frozen=True)
class TensorIterator:
    """The TensorIterator passed to a stub's kernel."""

    inputs: tuple[TensorArg, ...]
    output: TensorArg


@dataclass(eq=False)
class Record:
    """A struct or dictionary: cached graphs, placeholders, feeds."""

    fields: dict[Any, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Closure:
    """A lambda or block with the variables in scope, and the text it is part of."""

    parameters: tuple[str, ...]
    body: cpp.Block
    scope: Scope
    text: ReadText


@dataclass(eq=False)
class Scope:
    """Local variables, the innermost first."""

    names: dict[str, Any]
    outer: Scope | None = None

    def find(self, name: str) -> Scope | None:
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.outer
        return scope


class CheckFailed(Exception):
    """A check of the implementation fails: it rejects this element type."""

    def __init__(self, text: str, place: Place) -> None:
        super().__init__(text)
        self.text = text
        self.place = place


class UnreachablePath(Exception):
    """`assert(false)`: this path through the conditions on arguments is never taken."""


class BreakSignal(Exception):
    """`break;` of a switch."""


class ReturnSignal(Exception):
    """`return value;`"""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


EXPRESSIONS = (Input, Scalar, Constant, Call, Cast)
GRAPH = GraphHandle()


@dataclass
class Paths:
    """The branches taken on unknown arguments: replays `chosen`, then takes the true side and remembers the other."""

    chosen: tuple[bool, ...] = ()
    taken: list[Condition] = field(default_factory=list)
    pending: list[tuple[bool, ...]] = field(default_factory=list)

    def decide(self, text: str) -> bool:
        """Whether a condition holds on this path. The answer also decides other comparisons of the same argument."""
        known = self._known(text)
        if known is not None:
            return known
        at = len(self.taken)
        if at < len(self.chosen):
            holds = self.chosen[at]
        else:
            holds = True
            self.pending.append((*(c.holds for c in self.taken), False))
        self.taken.append(Condition(text, holds))
        return holds

    def _known(self, text: str) -> bool | None:
        for condition in self.taken:
            if condition.text == text:
                return condition.holds
            if condition.holds and " == " in text and condition.text.split(" == ")[0] == text.split(" == ")[0]:
                return False
            if (
                condition.holds
                and " == " in condition.text
                and text == f"{condition.text.split(' == ')[0]}.has_value()"
            ):
                return True
            if not condition.holds and text.startswith(f"{condition.text.removesuffix('.has_value()')} == "):
                return False
        return None


def substitute(expr: Expr, known: dict[Expr, Expr]) -> Expr:
    """Returns the expression with placeholders replaced by the values fed to them."""
    if expr in known:
        return known[expr]
    if isinstance(expr, Call):
        return replace(expr, args=tuple(substitute(arg, known) for arg in expr.args))
    if isinstance(expr, Cast):
        return replace(expr, arg=substitute(expr.arg, known))
    return expr


def format_value(value: Any) -> str:
    """Formats a value for conditions and messages."""
    if isinstance(value, (Unknown, Test)):
        return value.text
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, Constant):
        return str(value.value)
    return str(getattr(value, "name", value))


def make_unsupported_error(what: str, place: Place) -> PorterError:
    """Returns the error (PTR033) for code that the evaluator does not support."""
    return PorterError(
        "PTR033",
        f"not understood: {what}",
        place,
        "The overlay can run this code instead; `porter explain PTR033` says more.",
    )
