"""What became of a mutant: its compiled code is compared, then it meets the tests of a verdict."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, lru_cache, partial
from pathlib import Path

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import QUICK, Options, compile_kernels, host_names
from equivalence import same_results
from mutation.subjects import Mutant, Subject
from mutation.warm import METHOD, Part, TimedTest, WarmSubject, compile_all, died, find_first, is_quick
from porter.core import cache as stored
from porter.core.checkout import EMBEDDED_FORK
from porter.core.dtypes import BY_METAL
from porter.core.layout import KERNELS
from porter.server import worker
from porter.server.process import Process, wait
from porter.server.worker import RunOptions
from porter.verdict.build.tree import materialise, metal_include
from porter.verdict.messages import ErrorAnswer, VerdictAnswer
from porter.verdict.result import BUILD, DEFAULT, HOST, NO_TEST

# Errors of compilers: such a mutant is no program.
_NO_PROGRAM = ("PTR101", "PTR105", "PTR108", "PTR109", "PTR166")
# An error of porter's own, as where its files change while mutants run: it tells nothing of a mutant.
_INTERNAL = "PTR170"
# Inputs of each kernel that decide whether a survivor computes the same.
ROWS = 1 << 19
_OWN_NAME = re.compile(rb"[0-9a-f]{32}\.cpp")


@dataclass(frozen=True)
class Stage:
    """A part of a verdict that a survivor of all its tests meets: its tests, as one runs them that is `checked`."""

    name: str
    expr: str | None = None
    checked: bool = False


_CHECKED = Stage("checked", checked=True)
# What a mutant of a part of a subject that computes may change.
_COMPUTES = ("functor", "helper", "kernel")


Failing = Callable[[Stage, str], Sequence[str]]


class Fate(Enum):
    """What became of a mutant."""

    CAUGHT = "caught"
    REJECTED = "does not compile"
    SAME_CODE = "same compiled code"
    SAME_BITS = "same bits"
    SURVIVED = "survived"


def start() -> None:
    """Brings up the device, once for all mutants."""
    worker.preload(HOST)


def find_failing(subject: Subject, stage: Stage, test: str = "") -> tuple[str, ...]:
    """The tests of a stage that fail without a mutant, and so tell nothing of one; a single `test`, if it does."""
    answer = _ask(subject, subject.texts, replace(stage, expr=test) if test else stage, (), first_failure=False)
    if isinstance(answer, ErrorAnswer):
        raise RuntimeError(f"{subject.op} has no verdict: {answer.code} {answer.what}")
    return tuple(dict.fromkeys(failure.test for failure in answer.verdict.failures if test in ("", failure.test)))


def try_mutant(warm: WarmSubject, mutant: Mutant, kills: Mapping[str, int], failing: Failing) -> tuple[Fate, str]:
    """What became of a mutant, and the test or error that caught it.

    `kills` are how many mutants a test has caught. `failing` tells which tests of a stage fail without a mutant: of a
    test that one fails, or `""` for what is known.
    """
    subject, texts = warm.subject, {**warm.subject.texts, mutant.file: mutant.text}
    first = choose_first(warm.tests, mutant)
    if mutant.region in _COMPUTES:
        try:
            if is_same := _has_same_code(subject, texts, first.compiles):
                first = replace(first, tests=())
            if is_same and _has_same_code(subject, texts, compile_all):
                return Fate.SAME_CODE, ""
        except OverlayError as error:
            return Fate.REJECTED, f"{error.code} {error.what}"
    if why := _describe_failure(subject, warm.ask(texts, first, kills), warm.failing):
        is_program = not any(code in why for code in _NO_PROGRAM)
        return (Fate.CAUGHT if is_program else Fate.REJECTED), why
    known = failing(_CHECKED, "")
    while (why := _find_failure(subject, texts, _CHECKED, known)) and why in failing(_CHECKED, why):
        known = failing(_CHECKED, "")
    if why:
        return Fate.CAUGHT, f"{_CHECKED.name}: {why}"
    is_same = mutant.region in _COMPUTES and not subject.is_ported and _same_bits(subject, texts)
    return (Fate.SAME_BITS if is_same else Fate.SURVIVED), ""


def choose_first(tests: Iterable[TimedTest], mutant: Mutant) -> Part:
    """The first tests of a mutant: for a registration, those of the types in its line."""
    words = re.split(r"\W+", mutant.old)
    metals = [word for word in words if word in BY_METAL] if mutant.region == "registration" else []
    if not metals:
        return find_first(tests, is_quick)
    endings = tuple(f"_{BY_METAL[metal].torch}" for metal in metals)
    return find_first(tests, lambda name: any(f"_{metal}_" in f"{name}_" for metal in metals), endings)


def _find_failure(subject: Subject, texts: Mapping[str, str], stage: Stage, failing: Sequence[str]) -> str:
    """The first failure of a stage beside those that fail anyway; `""` for none. Raises for an error of porter."""
    return _describe_failure(subject, _ask(subject, texts, stage, failing, first_failure=True), failing)


def _describe_failure(subject: Subject, answer: VerdictAnswer | ErrorAnswer, failing: Sequence[str]) -> str:
    if isinstance(answer, ErrorAnswer):
        if answer.code == _INTERNAL:
            raise RuntimeError(f"{subject.op} has no verdict: {answer.what}")
        return f"{answer.code} {answer.what.splitlines()[0]}"
    first = next((f for f in answer.verdict.failures if f.test not in (*failing, NO_TEST)), None)
    if first is None:
        return ""
    return first.reason.splitlines()[0] if first.test == BUILD else first.test


def _ask(
    subject: Subject, texts: Mapping[str, str], stage: Stage, failing: Sequence[str], first_failure: bool
) -> VerdictAnswer | ErrorAnswer:
    telling = [f"not {test}" for test in failing if METHOD.fullmatch(test)]
    expr = " and ".join([*([f"({stage.expr})"] if stage.expr else []), *telling]) or None
    options = RunOptions(expr, HOST, DEFAULT, stage.checked, first_failure=first_failure, thorough=True)
    process = Process(partial(worker.verify, subject.root, {}, texts, subject.target, options), died)
    (answer,) = wait([process])
    assert isinstance(answer, (VerdictAnswer, ErrorAnswer))
    return answer


def _has_same_code(subject: Subject, texts: Mapping[str, str], compiles: Callable[[str], bool]) -> bool:
    return _code(subject, texts, compiles) == _code(subject, subject.texts, compiles)


def _code(subject: Subject, texts: Mapping[str, str], compiles: Callable[[str], bool]) -> tuple[bytes, ...]:
    """Some kernels of a subject, as a verdict compiles them, without their own names."""
    root = materialise(subject.root, texts, stored.root()).root
    files_of_port = tuple(file for file in texts if file.endswith(".metal")) if subject.is_ported else ()
    libraries = _libraries(subject.target.kernels, root, files_of_port, compiles)
    return tuple(_OWN_NAME.sub(b"", path.read_bytes()) for path in libraries)


@lru_cache(maxsize=8)
def _libraries(
    kernels: tuple[str, ...], root: Path, files_of_port: tuple[str, ...], compiles: Callable[[str], bool]
) -> tuple[Path, ...]:
    """The libraries of some kernels of the files of a port, or of those that register functors."""
    options = Options(include=metal_include(root), optimization=QUICK)
    prefixes = tuple(f"{kernel}_" for kernel in kernels)
    paths = files_of_port or dict.fromkeys(path for kernel in kernels for path in _registering(root, kernel))
    files = [root / path for path in paths]
    named = {
        file: [name for name in host_names(file, options) if name.startswith(prefixes) and compiles(name)]
        for file in files
    }
    return tuple(compile_kernels(file, names, options) for file, names in named.items() if names)


def _same_bits(subject: Subject, texts: Mapping[str, str]) -> bool:
    """Whether the mutant's dense kernels give the bits of the subject's on every tested input."""
    first, second = (materialise(EMBEDDED_FORK, each, stored.root()).root for each in (subject.texts, texts))
    return all(
        same_results(first / path, second / path, kernel, first, second, ROWS)
        for kernel in subject.target.kernels
        for path in _registering(first, kernel)
    )


@cache
def _registering(root: Path, kernel: str) -> tuple[Path, ...]:
    """The kernel files of a tree that register a kernel."""
    files = sorted((root / KERNELS).glob("*.metal"))
    return tuple(f.relative_to(root) for f in files if re.search(rf"^REGISTER\w*\({kernel}\b", f.read_text(), re.M))
