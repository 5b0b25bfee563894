"""What `porter kernel judge` prints, and `porter kernel check --mutants`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from porter.report.console import align

if TYPE_CHECKING:
    from porter.kernels.judging.mutants import Mutant, MutantReport


class Ruling(Enum):
    """The verdict on a script."""

    PASS = "PASS"
    FAIL = "FAIL"
    """A case fails, of the author's or a hidden one."""
    CHEAT = "CHEAT"
    """A rule is broken: what its cases say does not count."""
    ERROR = "ERROR"
    """There is no verdict: the script does not run, or does not end."""


@dataclass(frozen=True)
class Judgement:
    """What came of one script. `parts` counts cases that passed and failed by who made them: own, hidden, conduct.

    `first` is what is wrong first; `mutants` are as `kernel check --mutants --json` counts them, empty if none were
    asked for.
    """

    script: str
    ruling: Ruling
    parts: dict[str, tuple[int, int]] = field(default_factory=dict)
    first: str = ""
    mutants: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert (self.ruling is Ruling.PASS) is not bool(self.first)


def mutant_lines(name: str, report: MutantReport) -> list[str]:
    """The share of the wrong mutants that a script's own cases catch, and each that they do not."""
    wrong = report.caught + len(report.missed)
    return [
        *(f"missed by every case of the script: {mutant}; {case} fails" for mutant, case in report.missed),
        *(f"no case fails, it may compute the same: {mutant}" for mutant in report.same),
        f"{name}: {report.caught} of {wrong} mutants caught ({report.share:.0%}), {len(report.same)} undecided",
    ]


def mutants_object(report: MutantReport) -> dict[str, Any]:
    return {
        "caught": report.caught,
        "missed": [{**_mutant_object(mutant), "case": case} for mutant, case in report.missed],
        "same": [_mutant_object(mutant) for mutant in report.same],
    }


def _mutant_object(mutant: Mutant) -> dict[str, Any]:
    return {"line": mutant.line, "kind": mutant.kind, "old": mutant.old, "new": mutant.new}


def judgement_lines(judgements: Sequence[Judgement]) -> list[str]:
    """A table of scripts: the verdict, cases passed of those tried by who made them, and mutants caught."""
    rows: list[tuple[str, ...]] = [("script", "verdict", "own", "hidden", "rules", "mutants", "")]
    for judgement in judgements:
        cells = [_of_all(*judgement.parts.get(part, (0, 0))) for part in ("own", "hidden", "conduct")]
        mutants = judgement.mutants
        caught = _of_all(mutants["caught"], len(mutants["missed"])) if mutants else ""
        rows.append((judgement.script, judgement.ruling.value, *cells, caught, judgement.first.partition("\n")[0]))
    return [line.rstrip() for line in align(rows)]


def _of_all(passed: int, failed: int) -> str:
    return f"{passed}/{passed + failed}" if passed + failed else ""


def judgement_object(judgement: Judgement) -> dict[str, Any]:
    parts = {part: {"passed": passed, "failed": failed} for part, (passed, failed) in judgement.parts.items()}
    return {
        "script": judgement.script, "verdict": judgement.ruling.value, "parts": parts, "first": judgement.first,
        "mutants": judgement.mutants,
    }  # fmt: skip
