"""Scripts with one slip each in their Metal: what a script's own cases should catch."""

from __future__ import annotations

import ast
import io
import random
import tokenize
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from porter.core.errors import PorterError, code_in
from porter.kernels.checking import CaseResult, check
from porter.kernels.judging.hidden import check_hidden
from porter.kernels.loading import load_text
from porter.languages.slips import slip_in_metal

# Errors of compilers: such a mutant is no kernel.
_NO_KERNEL = ("PTR101", "PTR105", "PTR108", "PTR109", "PTR166")
_SHORTEST = 3  # characters of a line that tells Metal from other text


@dataclass(frozen=True)
class Mutant:
    """A script in which one thing in its Metal is written otherwise: in `line`, `new` in the place of `old`."""

    line: int
    kind: str
    old: str
    new: str
    text: str

    def __str__(self) -> str:
        changed = f"`{self.old}` -> `{self.new}`" if self.new else f"without `{self.old}`"
        return f"line {self.line}: {changed}"


class Fate(Enum):
    """What became of a mutant."""

    CAUGHT = "caught"
    """A case of the script's own fails."""
    MISSED = "missed"
    """All of them pass, and a hidden case fails."""
    SAME = "same"
    """No case fails: it may compute the same."""
    NO_KERNEL = "no kernel"
    """It does not compile."""


def list_mutants(text: str, sources: Collection[str], seed: int) -> list[Mutant]:
    """All mutants of a script, in an order made of `seed`.

    `sources` are what it compiles: of the strings in the script, only lines that are in one of them are Metal.
    """
    lines = {line.strip() for source in sources for line in source.splitlines() if len(line.strip()) >= _SHORTEST}
    mutants = [mutant for string in _list_strings(text) for mutant in _slip(text, *string, lines)]
    random.Random(seed).shuffle(mutants)
    return mutants


def try_mutant(path: Path, mutant: Mutant, seed: int, device: str, failing: Collection[str] = ()) -> tuple[Fate, str]:
    """What became of a mutant of a script, and the case that fails first. `seed` makes the hidden cases.

    Cases that are `failing` without a mutant tell nothing of one.
    """
    try:
        script = load_text(path, mutant.text)
        first = _find_first(check(script, device), failing)
        if first is None:
            hidden = _find_first(check_hidden(script, seed, device), failing)
            return (Fate.SAME, "") if hidden is None else (Fate.MISSED, hidden.case)
    except PorterError as error:
        return (Fate.NO_KERNEL if error.code in _NO_KERNEL else Fate.CAUGHT), error.what
    return (Fate.NO_KERNEL if code_in(first.error) in _NO_KERNEL else Fate.CAUGHT), first.case


def _find_first(results: Iterator[CaseResult], failing: Collection[str]) -> CaseResult | None:
    return next((result for result in results if not result.ok and result.case not in failing), None)


def _list_strings(text: str) -> Iterator[tuple[int, str]]:
    """Strings that say what they hold, and where that begins: none with escapes or with values in them."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.STRING or "f" in token.string[: token.string.find(token.string[-1])].lower():
            continue
        value = ast.literal_eval(token.string)
        if isinstance(value, str) and value and value in token.string:
            row, column = token.start
            yield starts[row - 1] + column + token.string.index(value), value


def _slip(text: str, start: int, value: str, metal: Collection[str]) -> Iterator[Mutant]:
    for slip in slip_in_metal(value):
        line_start = value.rfind("\n", 0, slip.start) + 1
        line = value[line_start:].partition("\n")[0]
        # The slip of a whole line begins where the line does.
        if line.strip() not in metal or "//" in value[line_start : slip.start]:
            continue
        old = value[slip.start : slip.end]
        if old.isspace() or slip.new == old:
            continue
        changed = text[: start + slip.start] + slip.new + text[start + slip.end :]
        yield Mutant(text.count("\n", 0, start + slip.start) + 1, slip.kind, _shorten(old), _shorten(slip.new), changed)


def _shorten(code: str, most: int = 60) -> str:
    words = " ".join(code.split())
    return words if len(words) <= most else f"{words[: most - 3]}..."


@dataclass(frozen=True)
class MutantReport:
    """What became of the mutants of a script: how many each fate had, and those that its own cases do not catch."""

    caught: int
    missed: Sequence[tuple[Mutant, str]]
    same: Sequence[Mutant]

    @property
    def share(self) -> float:
        """The caught ones' share of those that are known to be wrong."""
        wrong = self.caught + len(self.missed)
        return self.caught / wrong if wrong else 1.0
