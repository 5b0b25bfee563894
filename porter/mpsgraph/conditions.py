"""Questions about an operator's arguments. As text, they are spelled as in the fork's code."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from porter.mpsgraph.graph import Value

Arguments = Mapping[str, Value]
_GIVEN = ".has_value()"
_SIGNS = ("==", "<", ">")


@dataclass(frozen=True)
class Undecided(Exception):
    """The arguments do not decide the condition."""

    text: str


@dataclass(frozen=True)
class Flag:
    """Whether an argument, or an expression of arguments, is true: `training`, `p.isFloatingPoint()`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Present:
    """Whether an optional argument is given: `eps.has_value()`."""

    name: str

    def __str__(self) -> str:
        return f"{self.name}{_GIVEN}"


@dataclass(frozen=True)
class Compared:
    """How an argument compares with a number or a string: `alpha == 1.0`, `mode == "floor"`, `self.dim() < 3`."""

    name: str
    sign: str
    value: int | float | str

    def __post_init__(self) -> None:
        if self.sign not in _SIGNS:  # the device records no others, and kernels of a case need both answers
            raise ValueError(f"no comparison by `{self.sign}`")

    def __str__(self) -> str:
        return (
            f'{self.name} {self.sign} "{self.value}"'
            if isinstance(self.value, str)
            else f"{self.name} {self.sign} {self.value}"
        )

    def compare(self, value: Value) -> bool:
        """The answer for a value."""
        if isinstance(self.value, str):
            return value == self.value
        if not isinstance(value, (int, float)):
            return False
        return {"==": value == self.value, "<": value < self.value, ">": value > self.value}[self.sign]


Question = Flag | Present | Compared


@dataclass(frozen=True)
class Answered:
    """A question, and the answer that the calls of a case have in common."""

    question: Question
    holds: bool

    def __str__(self) -> str:
        return str(self.question) if self.holds else f"!({self.question})"

    @property
    def opposite(self) -> Answered:
        return Answered(self.question, not self.holds)

    def is_met(self, arguments: Arguments) -> bool:
        """Whether arguments have this answer; they may tell neither this nor the opposite."""
        try:
            return answer(self.question, arguments) is self.holds
        except Undecided:
            return False


UNKNOWN = Answered(Flag("unknown condition"), True)  # of cases that nothing separates


@lru_cache(maxsize=1024)
def read_question(text: str) -> Question:
    """The question that a condition asks; of a comparison of expressions, whether it is true."""
    if text.endswith(_GIVEN):
        return Present(text.removesuffix(_GIVEN))
    for sign in _SIGNS:
        name, _, value = text.partition(f" {sign} ")
        if value.startswith('"'):
            return Compared(name, sign, value.strip('"'))
        if value:
            with suppress(ValueError):
                return Compared(name, sign, int(value) if value.removeprefix("-").isdecimal() else float(value))
    return Flag(text)


def holds(text: str, arguments: Arguments) -> bool:
    """Whether a condition holds for these arguments. Raises Undecided where they do not tell."""
    return answer(Flag(text) if text in arguments else read_question(text), arguments)


def answer(question: Question, arguments: Arguments) -> bool:
    """The answer to a question for these arguments. Raises Undecided where they do not tell."""
    if question.name not in arguments:
        raise Undecided(str(question))
    value = arguments[question.name]
    match question:
        case Flag():
            return bool(value)
        case Present():
            return value is not None
        case Compared():
            return question.compare(value)
