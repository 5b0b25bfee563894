"""Scripts with one slip each in their Metal: what a script's own cases should catch."""

from __future__ import annotations

import ast
import io
import math
import random
import tokenize
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

import torch

from porter.core.errors import PorterError, code_in
from porter.kernels.call import DEVICE
from porter.kernels.checking import CaseResult, Part, check, try_swept
from porter.kernels.judging.conduct import check_conduct
from porter.kernels.loading import load_text
from porter.kernels.script import Case, Script, WrongStage
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


COUNT = 16
_CONDUCT = 4  # hidden cases on which conduct is watched
_MOST = 1 << 18  # elements of a case, unless the script's own are larger
_SHARE = 0.6  # of the dimensions, whose lengths change
_NEAR = tuple(power + step for power in (2, 8, 16, 32, 64, 256, 1024) for step in (-1, 0, 1))


def check_hidden(script: Script, seed: int, device: str = DEVICE) -> Iterator[CaseResult]:
    """Cases made of `seed` that the script's author has not seen, then what its stages do beside their kernels.

    A case that the inputs, the reference or the kernel refuse is left out, and it is an error if that is every one.
    """
    cases: list[Case] = []
    passed: list[Case] = []
    for case in hidden_cases(script, seed, device):
        torch.compiler.reset()  # a model that is compiled has a limit of sizes
        result = try_swept(script, case, _find_difference)
        if result is not None:
            cases.append(case)
            passed += [case] if result.ok else []
            yield replace(result, case=f"hidden {case} (seed {seed})", part=Part.HIDDEN)
    if not cases:
        error = PorterError("PTR227", "the script takes none of its hidden sizes", hint="Take any size of this rank.")
        yield CaseResult(f"hidden sizes (seed {seed})", error=str(error), part=Part.HIDDEN)
        return
    try:
        breaches = dict.fromkeys(str(breach) for breach in check_conduct(script, passed[:_CONDUCT]))
    except (Exception, SystemExit) as error:  # the script is somebody else's
        breaches = {f"{type(error).__name__}: {error}": None}
    yield from (CaseResult("conduct", error=breach, part=Part.CONDUCT) for breach in breaches)
    if not breaches:
        yield CaseResult("conduct", part=Part.CONDUCT)


def _find_difference(script: Script, case: Case) -> WrongStage | None:
    """The first difference of a kernel. The author knows how far sums of the script's own sizes are off, and here
    results that are sums of larger terms may be off by as much as those.
    """
    judged = (
        script.judge_tiers(stage, case, values, right) for stage, values, right in script.walk(case, cancels=True)
    )
    return next((difference for difference in judged if difference is not None), None)


def hidden_cases(script: Script, seed: int, device: str) -> Iterator[Case]:
    """Cases of the ranks that the script's sizes have, each with values of its own. The same seed makes the same."""
    numbers = random.Random(seed)
    most = max(_MOST, *(math.prod(size) for size in script.sizes))
    for _ in range(COUNT):
        # A rank of few sizes may give one of the author's again: its values are others.
        size = _change(numbers, numbers.choice(script.sizes), most)
        dtype, layout = numbers.choice(script.dtypes), numbers.choice(script.layouts)
        yield Case(size, dtype, layout, device, salt=1 + numbers.randrange(1 << 30))


def _change(numbers: random.Random, size: tuple[int, ...], most: int) -> tuple[int, ...]:
    """A size with some other lengths and no more than `most` elements."""
    changed, longest = list(size), max(2, *size)
    dimensions = [dimension for dimension in range(len(size)) if numbers.random() < _SHARE]
    for dimension in dimensions or [numbers.randrange(len(size))]:
        changed[dimension] = numbers.choice(
            (
                numbers.choice(_NEAR),
                numbers.choice(_NEAR),
                round(math.exp(numbers.uniform(0, math.log(longest)))),
                numbers.randint(longest, 4 * longest),
            )
        )
    while math.prod(changed) > most:
        widest = changed.index(max(changed))
        changed[widest] = max(1, changed[widest] // 2)
    return tuple(changed)
