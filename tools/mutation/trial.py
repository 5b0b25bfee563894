"""One warm process that holds torch and the device, and a fork of it for every mutant."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, lru_cache, partial
from pathlib import Path

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import QUICK, Options, compile_kernels, host_names
from equivalence import same_results
from mutation.subjects import Mutant, Subject
from porter.core import cache as stored
from porter.core.checkout import EMBEDDED_FORK
from porter.core.dtypes import BY_METAL
from porter.core.layout import KERNELS
from porter.core.progress import Progress
from porter.server import worker
from porter.server.process import End, Process, wait
from porter.server.worker import RunOptions
from porter.verdict.backends import host
from porter.verdict.build.tree import materialise, metal_include
from porter.verdict.limits import Limits
from porter.verdict.messages import Answer, ErrorAnswer, VerdictAnswer
from porter.verdict.result import BUILD, DEFAULT, HOST, NO_TEST

# Errors of compilers: such a mutant is no program.
_NO_PROGRAM = ("PTR101", "PTR105", "PTR108", "PTR109", "PTR166")
# An error of porter's own, as where its files change while mutants run: it tells nothing of a mutant.
_INTERNAL = "PTR170"
# Inputs of each kernel that decide whether a survivor computes the same.
ROWS = 1 << 19
_OWN_NAME = re.compile(rb"[0-9a-f]{32}\.cpp")
_REGISTERED = re.compile(r"^REGISTER_\w+\(|\);\s*$")
METHOD = re.compile(r"\w+\.\w+")
_RARE_TYPE = re.compile(r"_(?:half|bfloat|short|u?char|bool|(?:float|half)2)(?=_|$)")


@dataclass(frozen=True)
class Stage:
    """A part of a verdict: its tests, as one runs them that is `checked` or `thorough`, and which kernels are compiled
    ahead of them.
    """

    name: str
    expr: str | None = None
    checked: bool = False
    thorough: bool = False
    test_seconds: float = Limits().test
    compiles: Callable[[str], bool] = lambda name: True


def _is_dense(name: str) -> bool:
    return "_dense_" in name and "cast" not in name and "_dense_scalar_" not in name


def _is_common(name: str) -> bool:
    return not _RARE_TYPE.search(name)


# The tests that kill most mutants soonest come first; what they leave alive meets the whole verdict.
_QUICK = Stage("quick", "test_accuracy or test_edge_values", compiles=_is_dense)
_QUICK_OF_PORTED = Stage("quick", "test_output_match and (float32 or int64)", test_seconds=15, compiles=_is_common)
_WHOLE = (Stage("whole"), Stage("checked", checked=True))
# What `migrate --write` asks of a single port beyond it.
_THOROUGH = Stage("thorough", thorough=True)


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
    asked = replace(stage, expr=test, compiles=lambda name: False) if test else stage
    answer = _ask(subject, subject.texts, asked, (), first_failure=False)
    if isinstance(answer, ErrorAnswer):
        raise RuntimeError(f"{subject.op} has no verdict: {answer.code} {answer.what}")
    return tuple(dict.fromkeys(failure.test for failure in answer.verdict.failures if test in ("", failure.test)))


def try_mutant(subject: Subject, mutant: Mutant, failing: Failing) -> tuple[Fate, str]:
    """What became of a mutant, and the test or error that caught it.

    `failing` tells which tests of a stage fail without a mutant: of a test that one fails, or `""` for what is known.
    """
    texts = {**subject.texts, mutant.file: mutant.text}
    computes = mutant.region in ("functor", "helper", "kernel")
    quick = find_quick_stage(mutant) if subject.is_ported else _QUICK
    if computes:
        try:
            if all(
                _code(subject, texts, stage) == _code(subject, subject.texts, stage)
                for stage in dict.fromkeys((quick, _WHOLE[0] if subject.is_ported else quick))
            ):
                return Fate.SAME_CODE, ""
        except OverlayError as error:
            return Fate.REJECTED, f"{error.code} {error.what}"
    stages = (quick, *_WHOLE, _THOROUGH) if subject.is_ported else (quick, *_WHOLE) if computes else _WHOLE
    for stage in stages:
        known = failing(stage, "")
        while (why := _find_failure(subject, texts, stage, known)) and why in failing(stage, why):
            known = failing(stage, "")
        if why:
            is_program = not any(code in why for code in _NO_PROGRAM)
            return (Fate.CAUGHT if is_program else Fate.REJECTED), f"{stage.name}: {why}"
    is_same = computes and not subject.is_ported and _same_bits(subject, texts)
    return (Fate.SAME_BITS if is_same else Fate.SURVIVED), ""


def find_quick_stage(mutant: Mutant) -> Stage:
    """The first stage of a port's mutant: for a registration, the tests of the type that it no longer has alone."""
    metal = _REGISTERED.sub("", mutant.old).partition(",")[0]
    if mutant.region != "registration" or metal not in BY_METAL:
        return _QUICK_OF_PORTED
    dtype = BY_METAL[metal].torch
    return replace(
        _QUICK_OF_PORTED,
        name=f"quick {dtype}",
        expr=f"test_output_match and _{dtype}",
        compiles=lambda name: f"_{metal}_" in f"{name}_",
    )


def _find_failure(subject: Subject, texts: Mapping[str, str], stage: Stage, failing: Sequence[str]) -> str:
    """The first failure of a stage beside those that fail anyway; `""` for none. Raises for an error of porter."""
    answer = _ask(subject, texts, stage, failing, first_failure=True)
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
    options = RunOptions(expr, HOST, DEFAULT, stage.checked, first_failure=first_failure, thorough=stage.thorough)
    process = Process(partial(_verify, subject, texts, options, stage), _died, Limits(stage.test_seconds))
    (answer,) = wait([process])
    assert isinstance(answer, (VerdictAnswer, ErrorAnswer))
    return answer


def _verify(
    subject: Subject, texts: Mapping[str, str], options: RunOptions, stage: Stage, progress: Progress
) -> Answer:
    kernels = host.compiler()
    compile_ahead = kernels.compile_ahead
    kernels.compile_ahead = lambda wanted: compile_ahead(  # type: ignore[method-assign]
        lambda name: wanted(name) and stage.compiles(name)
    )
    return worker.verify(subject.root, {}, texts, subject.target, options, progress)


def _died(end: End) -> Answer:
    return ErrorAnswer("ended", f"{end.step}: {end.how}")


def _code(subject: Subject, texts: Mapping[str, str], stage: Stage) -> tuple[bytes, ...]:
    """The kernels of a subject that a stage compiles, as a verdict compiles them, without their own names."""
    root = materialise(subject.root, texts, stored.root()).root
    files_of_port = tuple(file for file in texts if file.endswith(".metal")) if subject.is_ported else ()
    libraries = _libraries(subject.target.kernels, root, files_of_port, stage)
    return tuple(_OWN_NAME.sub(b"", path.read_bytes()) for path in libraries)


@lru_cache(maxsize=8)
def _libraries(kernels: tuple[str, ...], root: Path, files_of_port: tuple[str, ...], stage: Stage) -> tuple[Path, ...]:
    """The libraries of kernels that a stage compiles of the files of a port, or of those that register functors."""
    options = Options(include=metal_include(root), optimization=QUICK)
    prefixes = tuple(f"{kernel}_" for kernel in kernels)
    paths = files_of_port or dict.fromkeys(path for kernel in kernels for path in _registering(root, kernel))
    files = [root / path for path in paths]
    named = {
        file: [name for name in host_names(file, options) if name.startswith(prefixes) and stage.compiles(name)]
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
