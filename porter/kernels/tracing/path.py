"""One way through a script's code: the decisions it takes on sizes that are not known, and what they tell."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field

from porter.core.errors import Place, PorterError
from porter.core.setting import setting
from porter.plan.promotion.expressions import (
    Apply,
    Constant,
    Expression,
    Listed,
    Node,
    OfTensor,
    SameSizes,
    Sizes,
    apply,
    is_never_negative,
    negate,
)
from porter.plan.promotion.promotion import Message

_MARK = "\0"
LONGEST = 64


@dataclass
class Path:
    """The decisions so far: those of `prefix` are given, later ones are first taken as true.

    `file` is the script, whose lines errors name. `notes` are what the operator leaves out.
    """

    file: str
    prefix: tuple[bool, ...] = ()
    taken: list[tuple[Expression, bool]] = field(default_factory=list)
    printed: list[Node] = field(default_factory=list)
    notes: list[tuple[Place, str]] = field(default_factory=list)
    _known: dict[Expression, bool] = field(default_factory=dict)

    def decide(self, condition: Expression) -> bool:
        """Whether a condition holds on this path. Raises PTR245 for a path of too many decisions."""
        known = self.find(condition)
        if known is not None:
            return known
        if len(self.taken) == LONGEST:
            raise self.refuse("PTR245", f"the script takes more than {LONGEST} decisions on sizes here", "Take fewer.")
        value = self.prefix[len(self.taken)] if len(self.taken) < len(self.prefix) else True
        self.taken.append((condition, value))
        self._learn(condition, value)
        return value

    def know(self, condition: Expression) -> None:
        """Takes note of what holds on every path."""
        self._learn(condition, True)

    def rank(self, tensor: Node) -> int | None:
        """The number of a tensor's dimensions, if the decisions tell it."""
        for condition, value in self._known.items():
            match condition:
                case Apply("==", (OfTensor(found, "dim"), Constant(rank, "int"))) if value and found == tensor:
                    return int(rank)
        return None

    def refuse(self, code: str, what: str, hint: str) -> PorterError:
        """An error at the line of the script that runs."""
        return PorterError(code, what, self.place(), hint)

    def place(self) -> Place:
        """The innermost line of the script that runs."""
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self.file:
                return Place(self.file, frame.f_lineno)
            frame = frame.f_back  # type: ignore[assignment]
        return Place(self.file)

    def print(self, node: Node) -> str:
        """A mark that stands for a value in a text."""
        self.printed.append(node)
        return f"{_MARK}{len(self.printed) - 1}{_MARK}"

    def read_message(self, text: str) -> Message:
        """A text with the values that its marks stand for."""
        pieces = text.split(_MARK)
        return tuple(self.printed[int(p)] if at % 2 else p for at, p in enumerate(pieces) if p)

    def _learn(self, condition: Expression, value: bool) -> None:
        self._known[condition] = value
        self._known[negate(condition)] = not value
        match condition if value else negate(condition):
            case Apply((">" | ">="), (left, Constant(bound, "int"))) as held:
                if bound > 0 or (bound == 0 and held.function == ">"):
                    self._known[Apply("==", (left, Constant.of(0)))] = False
                    self._known[Apply(">", (left, Constant.of(0)))] = True
                    self._known[Apply("<=", (left, Constant.of(0)))] = False
            case Apply("!=", (left, Constant(0, "int"))) if is_never_negative(left):
                self._known[Apply(">", (left, Constant.of(0)))] = True
            case SameSizes(Sizes(tensor, 0, None), other) | SameSizes(other, Sizes(tensor, 0, None)):
                length = self.length(other)
                if length is not None:
                    self._known[apply("==", OfTensor(tensor, "dim"), Constant.of(length))] = True

    def length(self, sizes: Node) -> int | None:
        """How many sizes there are, if that is known."""
        if isinstance(sizes, Listed):
            return len(sizes.sizes)
        if not isinstance(sizes, Sizes):
            return None
        if sizes.start < 0 and sizes.stop is None:
            return -sizes.start
        rank = self.rank(sizes.tensor)
        return None if rank is None else len(range(*slice(sizes.start, sizes.stop).indices(rank)))

    def find(self, condition: Expression) -> bool | None:
        """Whether a condition holds, if the decisions tell it."""
        if isinstance(condition, Constant):
            return bool(condition.value)
        if condition in self._known:
            return self._known[condition]
        match condition:
            case Apply(function, (OfTensor(tensor, "dim"), Constant() as bound)):
                rank = self.rank(tensor)
                if rank is not None:
                    return bool(apply(function, Constant.of(rank), bound).value)  # type: ignore[union-attr]
            case Apply("<", (left, Constant(bound, "int"))) if is_never_negative(left) and bound <= 0:
                return False
            case Apply(">=", (left, Constant(bound, "int"))) if is_never_negative(left) and bound <= 0:
                return True
        return None


_path: ContextVar[Path] = ContextVar("path")


def current() -> Path:
    """The path that the script takes now."""
    return _path.get()


def following(path: Path) -> AbstractContextManager[None]:
    """Makes values of a block decide on `path`."""
    return setting(_path, path)
