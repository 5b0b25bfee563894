"""One verdict, in a worker process: lint, build, load, test, prove the lists."""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from porter.core.dtypes import BY_METAL
from porter.core.errors import PorterError
from porter.core.layout import KERNELS, TEST_MPS
from porter.verdict import judge
from porter.verdict import result as values
from porter.verdict.backends import backends as rooms
from porter.verdict.build import sources
from porter.verdict.build.tree import Tree, cache, materialise
from porter.verdict.result import Failure, Verdict, VerifyTarget
from porter.verdict.suite.selection import Selection

if TYPE_CHECKING:
    from porter.mpsgraph.recording import Recording
    from porter.verdict.behavior import Sampled
    from porter.verdict.suite.context import Context

Tell = Callable[[str], None]
PRELOADED = (
    "torch.testing._internal.common_device_type",
    "torch.testing._internal.common_methods_invocations",
    "torchgen.gen",
)
# What a run with bounds checked, which is slow, repeats: every layout and target, in two types.
CHECKED = "(test_layouts or test_out_ or test_inplace) and (float32 or int32)"


def warm(backend: str) -> None:
    """Imports what every verdict of a backend needs."""
    rooms.start(backend)
    for module in PRELOADED:
        importlib.import_module(module)


@dataclass(frozen=True)
class Judged:
    """A verdict, and where it is one on a port what the new path does with every sample."""

    verdict: Verdict
    samples: tuple[Sampled, ...] = ()


@dataclass(frozen=True)
class Run:
    """How one worker runs the tests: those of `expr`, on a backend, under an arithmetic, with bounds checked or not."""

    expr: str | None
    backend: str
    arithmetic: str
    checked: bool = False


def old_behaviour(root: Path, target: VerifyTarget, tell: Tell) -> list[Sampled]:
    """What an operator of the checkout, as it is, does with every sample."""
    from porter.verdict.suite.samples_behavior import behaviour

    tree = materialise(root, {}, cache())
    subject = context(tree, target, rooms.selected(values.HOST, target.base))
    tell("build of the old path")
    rooms.take(values.HOST, tree, VerifyTarget(target.base, stubs=target.stubs), values.DEFAULT, False)
    tell("old path")
    return behaviour(subject)


def verdict(root: Path, texts: Mapping[str, str], target: VerifyTarget, run: Run, tell: Tell) -> Judged:
    """The verdict of one run, and what the operator does with every sample.

    `tell` hears what is being done, for the case that the process dies of it.
    """
    started = time.monotonic()
    tree = materialise(root, texts, cache())
    tell("lint")
    found = lint(tree)
    try:
        if not found:
            tell("build")
            found = unregistered(tree, target)
        if found:
            return Judged(judge.not_run(target.base, found, time.monotonic() - started, run.backend, run.arithmetic))
        subject = context(tree, target, rooms.selected(run.backend, target.base))
        rooms.take(run.backend, tree, target, run.arithmetic, run.checked)
        return _tested(tree, subject, target, run, tell, started)
    except PorterError as error:
        if error.code in values.NO_VERDICT:
            raise
        spent = time.monotonic() - started
        return Judged(judge.refused(target.base, error, spent, run.backend, run.arithmetic))


def prepare(root: Path) -> None:
    """Builds the stand-in for Apple and what every operator of a checkout shares. Raises what building raises."""
    rooms.prepare(materialise(root, {}, cache()))


def recordings(root: Path, target: VerifyTarget, macos: str, tell: Tell) -> tuple[Recording, ...]:
    """The recordings of an operator as the checkout has it, under a macOS release (`""`: the newest)."""
    from porter.recording import record
    from porter.verdict.backends import host

    tree = materialise(root, {}, cache())
    tell("selection")
    selection = rooms.selected(values.HOST, target.base)
    tell("build")
    rooms.take(values.HOST, tree, target, values.DEFAULT, False)
    if macos:
        host.pretend(tree.root, macos)
    tell("recording")
    return record.record(target.base, (*selection.forward, *selection.backward), target.rows)


def lint(tree: Tree) -> list[Failure]:
    """What Apple's compiler would reject in the kernel files that the plan edits, and not already before it."""
    from porter.metal.lint import lint as findings

    edited = [path for path in tree.texts if path.startswith(KERNELS)]
    found = []
    for path in edited:
        before = {(f.rule, f.text) for f in findings(path, tree.before(path))} if tree.in_checkout(path) else set()
        for finding in findings(path, tree.texts[path]):
            if (finding.rule, finding.text) not in before:
                found.append(Failure("lint", f"{finding.rule}: {finding.text}", place=f"{path}:{finding.line}"))
    return found


def unregistered(tree: Tree, target: VerifyTarget) -> list[Failure]:
    """The types that a kernel was planned for and has none: host code may still get by, with casts."""
    from aten_overlay.metal.build import Options, host_names

    options = Options(include=(tree.root,))
    files = [path for path in tree.kernel_files() if any(name in tree.read(path) for name in target.kernels)]
    names = [name for path in files for name in host_names(tree.root / path, options)] if target.pairs else []
    found = []
    for given, made in target.pairs:
        pair = re.compile(rf"(?:{'|'.join(map(re.escape, target.kernels))})_\w+_{made}_{given}(?:_|$)")
        if not any(map(pair.match, names)):
            told = f"no kernel of {', '.join(target.kernels)} takes {given} and gives {made}"
            found.append(Failure("registration", told, dtype=BY_METAL[given].torch, place=next(iter(files), "")))
    return found


def _tested(tree: Tree, subject: Context, target: VerifyTarget, run: Run, tell: Tell, started: float) -> Judged:
    from porter.verdict.suite import proof, runner
    from porter.verdict.suite.samples_behavior import behaviour

    subject = replace(subject, flushes=run.arithmetic == values.FLUSH)
    outcomes = runner.run(subject, _both(run.expr, CHECKED) if run.checked else run.expr, tell)
    found = judge.judge(target.base, outcomes, 0.0, run.backend, run.arithmetic)
    if run.checked:
        return Judged(found)
    found = judge.reaching(target, found)
    tell("proof of the test lists")
    proven = proof.prove(subject, outcomes)
    notes = judge.list_notes(target, proven.freed, proven.stale, outcomes)
    tell("every sample")
    ported = bool(tree.texts) and run.backend == values.HOST
    sampled = tuple(behaviour(subject)) if ported else ()
    return Judged(judge.with_notes(found, notes, time.monotonic() - started), sampled)


def _both(expr: str | None, other: str) -> str:
    return f"({expr}) and ({other})" if expr else other


def context(tree: Tree, target: VerifyTarget, selection: Selection) -> Context:
    """The subject of the tests: the operator, its kernels, and the fork's lists before and after."""
    from porter.verdict.suite.context import Context

    lists = tree.list_file()
    return Context(
        bases=(target.base,),
        through=selection.forward,
        through_backward=selection.backward,
        kernels=target.kernels,
        functors=sources.functors(tree),
        dtypes=tuple(dict.fromkeys(BY_METAL[given].torch for given, _ in target.pairs)),
        as_is=target.as_is,
        lists_file=lists,
        lists=tree.read(lists) if lists else "",
        lists_before=tree.before(lists) if lists else "",
        precision=tree.read(TEST_MPS) if tree.exists(TEST_MPS) else "",
    )
