"""Judges kernel scripts that somebody else wrote, a person or a model: hidden cases, rules against cheats, mutants.

Each script of a folder has a process of its own: one that ends its process, or never ends, is one row of the table.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from porter.core.errors import Place, PorterError, code_in
from porter.core.files import read_named
from porter.core.progress import Step, Steps
from porter.core.python import own_module
from porter.report.kernel import Judgement, Ruling
from porter.verdict.client import NO_SERVER

if TYPE_CHECKING:
    from porter.kernels.judging.mutants import Fate, Mutant, MutantReport

_TRIES = 6  # mutants that may be tried for each that counts: many do not compile
_MUTANT_SECONDS = 60
_SCRIPT_SECONDS = 1800
_VERDICT = "PORTER_VERDICT"  # the file that a judged process writes its verdict to


def judge_folder(
    folder: Path, seed: int, mutants: int, steps: Steps, problems: Path | None = None
) -> Iterator[Judgement]:
    """A judgement of each Python file of a folder, by name; or of the answer in it to each of `problems`, which may lie
    in folders. Runs them. Raises PTR238 for a folder without any.
    """
    if problems is None:
        scripts = {path.name: path for path in _list_python(folder, deep=False)}
    else:
        scripts = {str(path.relative_to(problems)): path for path in _list_python(problems, deep=True)}
    for number, (name, script) in enumerate(scripts.items()):
        steps(Step(name, number, len(scripts)))
        if problems is None:
            yield _judge(name, script, seed, mutants)
        elif (answer := folder / name).is_file():
            yield _judge(name, answer, seed, mutants, script)
        else:
            yield Judgement(name, Ruling.ERROR, first="there is no answer")


def _list_python(folder: Path, deep: bool) -> list[Path]:
    paths = sorted(folder.rglob("*.py") if deep else folder.glob("*.py")) if folder.is_dir() else []
    if not paths:
        what = "there is no Python file in this folder" if folder.is_dir() else "there is no such folder"
        raise PorterError("PTR238", what, Place(str(folder)), "Name a folder of kernel scripts.")
    return paths


def _judge(name: str, script: Path, seed: int, mutants: int, problem: Path | None = None) -> Judgement:
    options = ("--hidden", str(seed), *(("--mutants", str(mutants)) if mutants else ()))
    if problem is not None:
        options += ("--problem", str(problem.resolve()))
    program = own_module("porter.__main__", "kernel", "check", str(script.resolve()), *options)
    with TemporaryDirectory() as folder, TemporaryDirectory() as apart:
        file = Path(apart, "verdict.json")
        try:
            # In a folder of its own: what a script writes beside itself by a relative path goes with it.
            run = subprocess.run(
                program.command, env={**program.environment, _VERDICT: str(file), NO_SERVER: "1"}, cwd=folder,
                stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_SCRIPT_SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Judgement(name, Ruling.ERROR, first=f"does not end within {_SCRIPT_SECONDS // 60} minutes")
        verdict = json.loads(read_named(file, "PTR238")) if file.exists() else None
    if verdict is None:
        error = next((line for line in run.stderr.splitlines() if code_in(line)), "")
        return Judgement(name, Ruling.ERROR, first=error or f"ends with exit code {run.returncode}")
    parts = {name: (part["passed"], part["failed"]) for name, part in verdict["parts"].items()}
    cheats = [failure for failure in verdict["failed"] if failure["part"] == "conduct"]
    failures = cheats or verdict["failed"]
    if not failures:
        return Judgement(name, Ruling.PASS, parts, mutants=verdict.get("mutants", {}))
    first = failures[0]
    return Judgement(
        name, Ruling.CHEAT if cheats else Ruling.FAIL, parts,
        f"{first['case']}: {first['error'] or first['summary']}", verdict.get("mutants", {}),
    )  # fmt: skip


def take_verdict_file() -> Path | None:
    """Where this process is to write its verdict, if it is judged. Asked before a script runs, which may print one."""
    file = os.environ.pop(_VERDICT, None)
    return Path(file) if file else None


@contextmanager
def keeping_sources() -> Iterator[Callable[[], list[str]]]:
    """A block whose Metal sources are kept: what it yields tells those compiled until then."""
    from aten_overlay.runs.journal import SOURCES, VARIABLE

    if of_run := os.environ.get(VARIABLE):  # the report of `porter run` needs them there
        yield lambda: _read_sources(Path(of_run, SOURCES))
        return
    with TemporaryDirectory() as folder:
        os.environ[VARIABLE] = folder
        try:
            yield lambda: _read_sources(Path(folder, SOURCES))
        finally:
            os.environ.pop(VARIABLE, None)


def _read_sources(folder: Path) -> list[str]:
    return [read_named(path, "PTR238") for path in sorted(folder.glob("*.metal"))]


def try_mutants(
    path: Path,
    sources: Sequence[str],
    failing: Collection[str],
    count: int,
    seed: int,
    steps: Steps,
) -> MutantReport:
    """Tries `count` mutants of a script that compile, each in a process of its own. The device is up.

    Cases that are `failing` without a mutant tell nothing of one.
    """
    from porter.kernels.judging.mutants import Fate, MutantReport, list_mutants

    mutants = list_mutants(read_named(path, "PTR238"), sources, seed)
    fates: list[tuple[Fate, Mutant, str]] = []
    for mutant in mutants[: _TRIES * count]:
        if len(fates) == count:
            break
        steps(Step(f"{path.name}: mutant in {mutant}", len(fates), count))
        fate, case = _try_in_child(path, mutant, seed, failing)
        if fate is not Fate.NO_KERNEL:
            fates.append((fate, mutant, case))
    counts = Counter(fate for fate, _, _ in fates)
    return MutantReport(
        caught=counts[Fate.CAUGHT],
        missed=tuple((mutant, case) for fate, mutant, case in fates if fate is Fate.MISSED),
        same=tuple(mutant for fate, mutant, _ in fates if fate is Fate.SAME),
    )


def _try_in_child(path: Path, mutant: Mutant, seed: int, failing: Collection[str]) -> tuple[Fate, str]:
    """What became of a mutant; one that ends its process, or never ends, is caught."""
    from porter.kernels.call import DEVICE
    from porter.kernels.judging.mutants import Fate, try_mutant
    from porter.verdict.suite.children import ask_child

    def try_it() -> list[str]:
        fate, case = try_mutant(path, mutant, seed, DEVICE, failing)
        return [fate.value, case]

    answer = ask_child(try_it, _MUTANT_SECONDS)
    return (Fate(answer[0]), answer[1]) if answer else (Fate.CAUGHT, "the process ends, or does not")
