"""One warm process that holds torch and the device, and a fork of it for every mutant."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from functools import cache, lru_cache, partial
from pathlib import Path

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options, compile_kernels, host_names
from equivalence import same_results
from mutation.subjects import Mutant, Subject
from porter.core import cache as stored
from porter.core.checkout import EMBEDDED_FORK
from porter.core.layout import KERNELS
from porter.core.progress import Progress
from porter.server import worker
from porter.server.process import End, Process, wait
from porter.server.worker import RunOptions
from porter.verdict.backends import host
from porter.verdict.build.tree import materialise
from porter.verdict.messages import Answer, ErrorAnswer, VerdictAnswer
from porter.verdict.result import BUILD, DEFAULT, HOST

# Errors of compilers: such a mutant is no program.
_NO_PROGRAM = ("PTR101", "PTR105", "PTR109", "PTR166")
# Inputs of each kernel that decide whether a survivor computes the same.
ROWS = 1 << 19
QUICK = "test_accuracy or test_edge_values"
QUICK_OF_PORTED = "test_output_match"
_OWN_NAME = re.compile(rb"[0-9a-f]{32}\.cpp")


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


def find_failing(subject: Subject) -> tuple[str, ...]:
    """The tests that fail without a mutant, and so tell nothing of one."""
    found: list[str] = []
    for checked in (False, True):
        answer = _ask(subject, subject.texts, RunOptions(None, HOST, DEFAULT, checked))
        if isinstance(answer, ErrorAnswer):
            raise RuntimeError(f"{subject.op} has no verdict: {answer.code} {answer.what}")
        found += [failure.test for failure in answer.verdict.failures]
    return tuple(dict.fromkeys(found))


def try_mutant(subject: Subject, mutant: Mutant) -> tuple[Fate, str]:
    """What became of a mutant, and the test or error that caught it: the tests that mostly do come first."""
    texts = {**subject.texts, mutant.file: mutant.text}
    computes = mutant.region in ("functor", "helper", "kernel")
    if computes:
        try:
            if _code(subject, texts) == _code(subject, subject.texts):
                return Fate.SAME_CODE, ""
        except OverlayError as error:
            return Fate.REJECTED, f"{error.code} {error.what}"
    first = QUICK_OF_PORTED if subject.is_ported else QUICK
    quickly = _find_failure(subject, texts, first) if computes or subject.is_ported else ""
    why = quickly or next(filter(None, (_find_failure(subject, texts, checked=c) for c in (False, True))), "")
    if why:
        return (Fate.REJECTED if any(code in why for code in _NO_PROGRAM) else Fate.CAUGHT), why
    is_same = computes and not subject.is_ported and _same_bits(subject, texts)
    return (Fate.SAME_BITS if is_same else Fate.SURVIVED), ""


def _find_failure(subject: Subject, texts: Mapping[str, str], expr: str | None = None, checked: bool = False) -> str:
    """The first failure of a verdict, of all its tests or some; `""` for a good one."""
    answer = _ask(subject, texts, RunOptions(expr, HOST, DEFAULT, checked, first_failure=True))
    if isinstance(answer, ErrorAnswer):
        return f"{answer.code} {answer.what.splitlines()[0]}"
    if answer.verdict.ok:
        return ""
    first = answer.verdict.failures[0]
    return first.reason.splitlines()[0] if first.test == BUILD else first.test


def _ask(subject: Subject, texts: Mapping[str, str], options: RunOptions) -> VerdictAnswer | ErrorAnswer:
    telling = [f"not {test}" for test in subject.failing]
    expr = " and ".join([*([f"({options.expr})"] if options.expr else []), *telling]) or None
    process = Process(partial(_verify, subject, texts, replace(options, expr=expr)), _died)
    (answer,) = wait([process])
    assert isinstance(answer, (VerdictAnswer, ErrorAnswer))
    return answer


def _verify(subject: Subject, texts: Mapping[str, str], options: RunOptions, progress: Progress) -> Answer:
    if (options.expr or "").startswith(f"({QUICK})"):
        kernels = host.compiler()
        compile_ahead = kernels.compile_ahead
        kernels.compile_ahead = lambda wanted: compile_ahead(  # type: ignore[method-assign]
            lambda name: wanted(name) and _is_dense(name)
        )
    return worker.verify(subject.root, {}, texts, subject.target, options, progress)


def _died(end: End) -> Answer:
    return ErrorAnswer("ended", f"{end.step}: {end.how}")


def _code(subject: Subject, texts: Mapping[str, str]) -> tuple[bytes, ...]:
    """The compiled kernels of a subject, of functors the dense ones as a quick verdict compiles them, without their own
    names.
    """
    root = materialise(subject.root, texts, stored.root()).root
    own = tuple(file for file in texts if file.endswith(".metal")) if subject.is_ported else ()
    found = _libraries(subject.target.kernels, root, own)
    return tuple(_OWN_NAME.sub(b"", path.read_bytes()) for path in found)


def _is_dense(name: str) -> bool:
    return "_dense_" in name and "cast" not in name and "_dense_scalar_" not in name


@lru_cache(maxsize=4)
def _libraries(kernels: tuple[str, ...], root: Path, own: tuple[str, ...]) -> tuple[Path, ...]:
    """The libraries of a port's `own` files with all its kernels, or of functors with their dense ones."""
    options = Options(include=(root,))
    prefixes = tuple(f"{kernel}_" for kernel in kernels)
    paths = own or dict.fromkeys(path for kernel in kernels for path in _registering(root, kernel))
    files = [root / path for path in paths]
    named = {
        file: [n for n in host_names(file, options) if n.startswith(prefixes) and (own or _is_dense(n))]
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
