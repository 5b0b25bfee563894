"""What `porter kernel` prints, and `porter migrate --from FILE.cu` of a functor and of its values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from porter.report.console import align
from porter.verdict.own.result import Comparison, TranslatedKernel

if TYPE_CHECKING:
    from porter.kernels.checking import CaseResult, StageResult
    from porter.kernels.compare import Difference
    from porter.kernels.judging.mutants import Mutant, MutantReport
    from porter.kernels.script import WrongStage
    from porter.kernels.timing import Fused, Timing
    from porter.kernels.writer import Writer

_MOST = 5  # failures that are shown


@dataclass(frozen=True)
class Template:
    """One template: its file's name without `.py`, a line about it, and what its threads share."""

    name: str
    summary: str
    kind: str
    path: Path


def template_lines(templates: Sequence[Template]) -> list[str]:
    """A line for each template."""
    names = max((len(each.name) for each in templates), default=0)
    kinds = max((len(each.kind) for each in templates), default=0)
    return [f"{each.name:<{names}}  {each.kind:<{kinds}}  {each.summary}" for each in templates]


def template_object(template: Template) -> dict[str, Any]:
    return {"name": template.name, "summary": template.summary, "kind": template.kind}


def check_lines(name: str, results: Sequence[CaseResult], backend: str = "host") -> list[str]:
    """What the lint warns of, the cases that failed, the counts, and where the kernels ran."""
    failed = [result for result in results if not result.ok]
    lines = [f"warning: {warning}" for result in results for warning in result.warnings]
    for result in failed[:_MOST]:
        lines.append(f"{result.case}: {result.difference or result.error}")
        lines += [f"  {result.cause}"] if result.cause else []
    if len(failed) > _MOST:
        lines.append(f"and {len(failed) - _MOST} more")
    verdict = "FAIL" if failed else "PASS"
    return [*lines, f"{verdict} {name}: {_count_passed(results)} passed, {len(failed)} failed ({backend})"]


def check_object(name: str, results: Sequence[CaseResult], mutants: MutantReport | None = None) -> dict[str, Any]:
    failed = [
        {
            "case": result.case, "part": result.part.value, "error": result.error,
            "cause": result.cause,
            "summary": str(result.difference or result.error).partition("\n")[0], **_wrong_stage(result.difference),
        }
        for result in results
        if not result.ok
    ]  # fmt: skip
    passed, failures = (Counter(r.part.value for r in results if r.ok is ok and not r.skipped) for ok in (True, False))
    parts = {part: {"passed": passed[part], "failed": failures[part]} for part in sorted(passed.keys() | failures)}
    return {
        "script": name, "ok": not failed, "passed": _count_passed(results), "failed": failed, "parts": parts,
        "warnings": [warning for result in results for warning in result.warnings],
        **({"mutants": mutants_object(mutants)} if mutants else {}),
    }  # fmt: skip


def _count_passed(results: Sequence[CaseResult]) -> int:
    return sum(result.ok and not result.skipped for result in results)


def _wrong_stage(found: WrongStage | None) -> dict[str, Any]:
    return {} if found is None else {"stage": found.stage, "tier": found.tier, **difference_object(found.difference)}


def difference_object(difference: Difference | None) -> dict[str, Any]:
    """Empty for none."""
    return {} if difference is None else {**asdict(difference), "index": list(difference.index)}


def trace_lines(result: StageResult) -> list[str]:
    """A line for a stage, and where it first differs."""
    difference = result.difference
    if difference is None:
        return [f"{result.case}  {result.stage}: as its reference"]
    return [
        f"{result.case}  {result.stage}{f' ({result.tier})' if result.tier else ''}: DIFFERS",
        f"  at        {difference.output}{list(difference.index)}",
        f"  expected  {difference.expected}",
        f"  got       {difference.got}",
        f"  differs   {difference.count} of {difference.total} elements",
        *(f"  {'' if n else 'written':<9} {line}" for n, line in enumerate(_writer_lines(result.writer))),
    ]


def _writer_lines(writer: Writer | None) -> list[str]:
    if writer is None:
        return []
    if writer.thread is None:
        return [f"by no thread of kernel `{writer.kernel}`"]
    times = f", the last of {writer.count} stores" if writer.count > 1 else ""
    place = f"{writer.file}, line {writer.line}" if writer.line else "from an unknown line"
    return [
        f"by thread {writer.thread} of kernel `{writer.kernel}`{times}",
        place,
        *([writer.text] if writer.text else []),
    ]


def trace_object(result: StageResult) -> dict[str, Any]:
    return {
        "case": result.case,
        "stage": result.stage,
        "tier": result.tier,
        "ok": result.difference is None,
        "writer": asdict(result.writer) if result.writer else None,
        **difference_object(result.difference),
    }


TIMING_HEADING = (
    f"{'template':<19}{'case':<34}{'kernel ms':>10}{'simple ms':>10}{'torch ms':>10}{'ratio':>8}{'to simple':>11}"
)


def timing_line(name: str, timing: Timing) -> str:
    """One row: milliseconds, the ratio to torch and to the simple tier, and what is over its target."""
    simple = f"{timing.simple:10.3f}" if timing.simple is not None else f"{'':>10}"
    to_simple = f"{timing.to_simple:11.2f}" if timing.to_simple is not None else f"{'':>11}"
    target = timing.kind.target
    on_host = timing.copied is None
    over = [f"over the {target:g} aimed at"] if on_host and target is not None and timing.ratio > target else []
    over += [f"{timing.copied:.0%} of copy"] if timing.copied is not None else []
    over += ["slower than simple"] if timing.to_simple is not None and timing.to_simple > 1 else []
    row = f"{name:<19}{timing.case:<34}{timing.kernel:10.3f}{simple}{timing.torch:10.3f}{timing.ratio:8.2f}{to_simple}"
    return "\n".join(["  ".join([row, *over]), *map(_fused_line, timing.fused)])


def _fused_line(fused: Fused) -> str:
    """How much a fused kernel gains over separate operators."""
    return f"  {fused.stage}: {fused.ratio:.1f} times as fast as in operators of torch ({fused.operators:.3f} ms)"


def timing_object(name: str, timing: Timing) -> dict[str, Any]:
    own = {**asdict(timing), "kind": timing.kind.value, "ratio": timing.ratio, "to_simple": timing.to_simple}
    own["fused"] = [{**asdict(each), "ratio": each.ratio} for each in timing.fused]
    return {"template": name, "target": timing.kind.target, **own}


def describe_translation(found: TranslatedKernel) -> str:
    """The registrations to add, and what was compared, or that nothing was."""
    functor = found.functor
    missing = f"not registered: {functor.unregistered}"
    lines = [*(line.rstrip() for line in functor.registrations)] if functor.registrations else [missing]
    if found.not_compared:
        return "\n".join((*lines, f"values: not compared ({found.not_compared}): nothing of {found.file} was run"))
    ran = f"values: {found.own.name} of {found.file} was compiled as C++ and run on this machine, in double"
    return "\n".join((*lines, ran, *(_describe(each) for each in found.comparisons)))


def _describe(each: Comparison) -> str:
    head = f"  {each.dtype.torch}: {each.values} values"
    if each.wrong is None:
        return f"{head}, at most {each.largest:.2g} ULP off beyond what computing in float explains"
    wrong = each.wrong
    given = ", ".join(f"{value:g}" for value in (*wrong.inputs, *wrong.scalars))
    return f"{head}: FAIL at ({given}): the functor has {wrong.found:g}, the kernel {wrong.expected:g}"


def translation_object(found: TranslatedKernel) -> dict[str, Any]:
    """The same as a JSON object."""
    functor = found.functor
    return {
        "function": found.own.name,
        "file": found.file,
        "form": found.own.form.value,
        "functor": functor.text,
        "registrations": [line.rstrip() for line in functor.registrations],
        "unregistered": functor.unregistered or None,
        "ran": not found.not_compared,
        "ok": found.done,
        "values": [
            {
                "dtype": each.dtype.torch,
                "compared": each.values,
                "largest_ulp": each.largest,
                "wrong": asdict(each.wrong) if each.wrong else None,
            }
            for each in found.comparisons
        ],
    }


# What `porter kernel judge` prints, and `porter kernel check --mutants`.


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
