"""One verdict, in a worker process: lint, build, load, test, check the test lists."""

from __future__ import annotations

import gc
import importlib
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from porter.aten.declarations import parse_base_name
from porter.core import cache
from porter.core.checkout import EMBEDDED_FORK
from porter.core.dtypes import BY_METAL
from porter.core.errors import PorterError
from porter.core.garbage import collecting_seldom
from porter.core.layout import KERNELS, NATIVE_FUNCTIONS, TEST_MPS
from porter.core.progress import Progress
from porter.metal.lint import lint
from porter.mpsgraph.graph import encode_recordings
from porter.verdict import judge
from porter.verdict.backends import host
from porter.verdict.backends.choice import BACKENDS
from porter.verdict.backends.kernels import NVIDIA_GPU
from porter.verdict.baseline import EarlierResult
from porter.verdict.build import registration, sources
from porter.verdict.build.kernel_files import (
    describe_unlaunched,
    find_adding_kernels,
    find_missing_widths,
    find_unlaunched_pairs,
    largest_count,
    list_kernel_names,
    literals,
    match_pair,
    pair_widths,
)
from porter.verdict.build.releases import find_release_faults
from porter.verdict.build.siblings import find_siblings
from porter.verdict.build.tree import Tree, materialise
from porter.verdict.errors import NoVerdict, name_in_fork, raising_porter_errors
from porter.verdict.messages import VerdictAnswer
from porter.verdict.result import (
    CUDA,
    DEFAULT,
    FLUSH,
    HOST,
    Failure,
    ForkFinding,
    Verdict,
    VerifyTarget,
    add_findings,
    place_findings,
)
from porter.verdict.suite.selection import Selection

if TYPE_CHECKING:
    from porter.verdict.behavior import SampleResult
    from porter.verdict.suite.context import Context
    from porter.verdict.suite.runner import Outcome

PRELOADED = (
    "torch.testing._internal.common_device_type",
    "torch.testing._internal.common_methods_invocations",
    "torchgen.gen",
    "aten_overlay.metal.build",
    "porter.verdict.suite.proof",
    "porter.verdict.suite.sample_results",
    "porter.verdict.suite.slope_layouts",
    "porter.verdict.suite.variations",
)
Earlier = Mapping[str, str | None]  # as of a VerifyRequest
_DISPATCHES = re.compile(r"^[ \w,]*\bMPS\b[ \w,]*:", re.M)
# The tests of the slow run with bounds checks: all layouts, targets and indices beyond a tensor, in two dtypes; and
# gradients by layouts, which such a run has where they alone call what is tested. Of vectors it tells which are not
# aligned, those of direct calls and of what they write too. Rows of two slices show memory that host code made for one.
CHECKED = (
    "(test_layouts or test_out_ or test_inplace or test_indices_beyond or test_slopes_by_layouts"
    " or test_call_layouts or test_outs or test_combined_arguments) and (float32 or int32)"
)


@collecting_seldom()
def preload(backend: str) -> None:
    """Starts a backend and imports what every verdict needs."""
    BACKENDS[backend].start()
    import torch

    torch.set_num_threads(1)  # a thread pool does not survive a fork
    for module in PRELOADED:
        importlib.import_module(module)
    from porter.verdict.suite import made_opinfos, torch_tools

    torch_tools.make_quick()
    made_opinfos.name_opinfos()
    if BACKENDS[backend].RUNS_HOST_CODE:
        host.recipe(EMBEDDED_FORK)  # reads large headers, which then no worker has to read
    gc.collect()
    gc.freeze()  # keep the imported objects in memory shared with forks


@dataclass(frozen=True)
class RunOptions:
    """How one worker runs the tests: a selection, a backend, an arithmetic, and bounds checks or not.

    With `first_failure`, it stops there: whether there is one is all that is asked. A `large` run has only the tests of
    large tensors, a `thorough` one also the variations that cost more. Where `selects`, a person chose the tests of
    `expr`. A `library` of many operators, which was built
    from a `fork`, is tested in place of one built for this operator alone.
    """

    expr: str | None
    backend: str
    arithmetic: str
    checked: bool = False
    first_failure: bool = False
    large: bool = False
    thorough: bool = False
    selects: bool = False
    library: str = ""
    fork: str = ""


def run_old_path(
    root: Path, earlier: Earlier, target: VerifyTarget, progress: Progress, library: str = ""
) -> list[SampleResult]:
    """The results of all samples on the fork before the port, by a `library` of its old code if one was built."""
    from porter.verdict.suite.sample_results import run_samples

    tree = materialise(root, {}, cache.root(), earlier)
    context = make_context(tree, target, host.select_opinfos(target.base))
    progress("build of the old path")
    host.load_old_code(tree, target.old(), DEFAULT, _path(library))
    progress("old path")
    return run_samples(context, progress)


def run_baseline(
    root: Path,
    earlier: Earlier,
    target: VerifyTarget,
    tests: Collection[str],
    arithmetic: str,
    progress: Progress,
    library: str = "",
) -> list[EarlierResult]:
    """What comes of tests (their names in outcomes) on the fork before the port: its old code computes the operator.

    Takes the `library` of its old code if one was built.
    """
    from porter.verdict.suite import runner

    tree = materialise(root, {}, cache.root(), earlier)
    old = target.old()
    asked = replace(old, pairs=target.pairs, rows=target.rows)  # samples are those of the port's tests
    context = make_context(tree, asked, host.select_opinfos(target.base))
    progress("build of the old path")
    host.load_old_code(tree, old, arithmetic, _path(library))
    context = replace(context, flushes=arithmetic == FLUSH, has_before=True)
    outcomes = runner.run(context, " or ".join(tests), progress)
    return [EarlierResult(each.test, each.status, each.findings) for each in outcomes if each.test in tests]


def verify(
    root: Path,
    earlier: Earlier,
    texts: Mapping[str, str],
    target: VerifyTarget,
    options: RunOptions,
    progress: Progress,
) -> VerdictAnswer:
    """The verdict of one run, with the result of every sample. Raises NoVerdict.

    Reports steps to `progress`, which name the failure if the process dies.
    """
    started = time.monotonic()
    tree = materialise(root, texts, cache.root(), earlier)
    progress("lint")
    found = find_lint(tree)
    try:
        with raising_porter_errors():
            return _build_and_test(tree, target, options, found, progress, started)
    except NoVerdict:
        raise
    except PorterError as error:
        spent, placed = time.monotonic() - started, name_in_fork(error, tree.root)
        return VerdictAnswer(judge.verdict_of_error(target.base, placed, spent, options.backend, options.arithmetic))


def _path(library: str) -> Path | None:
    return Path(library) if library else None


def _require_compiler() -> None:
    """Raises NoVerdict if there is no compiler (PTR100) or it lacks a C++ library (PTR142)."""
    from aten_overlay.metal.compiler import find_clang

    try:
        with raising_porter_errors():
            find_clang()
    except PorterError as error:
        raise NoVerdict(error.code, error.what, error.place, error.hint) from error


def prepare(root: Path, backend: str) -> None:
    """Builds the stand-in for Apple and what all operators of a checkout share. Raises what the backend raises."""
    BACKENDS[backend].prepare(materialise(root, {}, cache.root()))


def record(root: Path, earlier: Earlier, target: VerifyTarget, macos: str, progress: Progress) -> str:
    """Records an operator of the checkout as on a macOS release (`""` for the newest), and encodes its recordings."""
    from porter.recording import record

    through = _load_to_record(root, earlier, target, macos, progress)
    return encode_recordings(record.record(target.base, through, target.rows))


def record_programs(root: Path, earlier: Earlier, target: VerifyTarget, macos: str, progress: Progress) -> str:
    """Records an operator at sizes of porter's own, and encodes its programs."""
    from porter.metal.forms import encode_computations
    from porter.recording import programs

    through = _load_to_record(root, earlier, target, macos, progress)
    return encode_computations(programs.record_programs(target.base, through, target.rows))


def _load_to_record(
    root: Path, earlier: Earlier, target: VerifyTarget, macos: str, progress: Progress
) -> tuple[str, ...]:
    """Loads the old code of an operator; returns the names of the OpInfos that reach it."""
    tree = materialise(root, {}, cache.root(), earlier)
    progress("selection")
    selection = host.select_opinfos(target.base)
    progress("build")
    host.load_old_code(tree, target, DEFAULT)
    if macos:
        host.set_macos_version(tree.root, macos)
    progress("recording")
    return (*selection.forward, *selection.backward)


def find_lint(tree: Tree) -> list[Failure]:
    """What Apple's compiler would reject in the edited kernel files, unless it was there before."""
    edited = [path for path in tree.texts if path.startswith(KERNELS)]
    found = []
    for path in edited:
        before = {(f.rule, f.text) for f in lint(path, tree.before(path))} if tree.in_checkout(path) else set()
        for finding in lint(path, tree.texts[path]):
            if (finding.rule, finding.text) not in before:
                found.append(Failure("lint", f"{finding.rule}: {finding.text}", place=f"{path}:{finding.line}"))
    return found


def find_unregistered(tree: Tree, target: VerifyTarget) -> list[Failure]:
    """Planned rows that do not dispatch to MPS, and planned dtypes without a kernel.

    The tests may still pass: the CPU serves such a row, and host code casts.
    """
    names = list_kernel_names(tree, target) if target.pairs else ()
    files = [path for path in tree.kernel_files() if any(name in tree.read(path) for name in target.kernels)]
    found = []
    for given, made in target.pairs:
        if not any(map(match_pair(target, given, made).match, names)):
            reason = f"no kernel of {', '.join(target.kernels)} takes {given} and returns {made}"
            found.append(Failure("registration", reason, dtype=BY_METAL[given].torch, place=next(iter(files), "")))
    return [*_find_undispatched(tree, target), *found]


def _replaces_code(tree: Tree, target: VerifyTarget) -> bool:
    """Whether MPS had code of its own for a row under test before the edit: otherwise the CPU served it."""
    found = _read_rows(tree.before(NATIVE_FUNCTIONS), target) if tree.texts else {}
    return any(name in found and _DISPATCHES.search(found[name].text) for name in target.rows)


def _read_rows(text: str, target: VerifyTarget) -> dict[str, registration.Row]:
    bases = dict.fromkeys(map(parse_base_name, target.rows))
    return {row.name: row for row in registration.rows(text, bases)}


def _find_undispatched(tree: Tree, target: VerifyTarget) -> list[Failure]:
    found = _read_rows(tree.read(NATIVE_FUNCTIONS), target)
    wrong = [name for name in target.rows if name not in found or not _DISPATCHES.search(found[name].text)]
    places = [f"{NATIVE_FUNCTIONS}:{found[name].line}" if name in found else NATIVE_FUNCTIONS for name in wrong]
    return [
        Failure("registration", f"PTR161 {name} does not dispatch to MPS: its calls fall back to the CPU", place=place)
        for name, place in zip(wrong, places, strict=True)
    ]


def _tell_unlaunched(tree: Tree, context: Context, target: VerifyTarget, found: Verdict) -> Verdict:
    """The verdict of a whole run with the kernels that no test launched."""
    from porter.verdict.suite import counters

    launched = [name for name in counters.read_kernels() if context.owner(name) in context.kernels]
    names = [name for name in list_kernel_names(tree, target) if context.owner(name) in context.kernels]
    demanded = [dtype for dtype in context.dtypes if target.registers and context.demands(dtype)]
    missing = find_missing_widths(names) if not target.pairs else ()
    registered = judge.require_registrations(found, missing)
    found = judge.require_launches(target, registered, find_unlaunched_pairs(target, launched), demanded)
    note = describe_unlaunched(names, launched)
    return replace(found, notes=(*found.notes, *([note] if note else ())))


def _build_and_test(
    tree: Tree, target: VerifyTarget, options: RunOptions, found: list[Failure], progress: Progress, started: float
) -> VerdictAnswer:
    """The verdict, where `found` are the lint failures."""
    backend = BACKENDS[options.backend]
    if not found:
        progress("build")
        if options.backend != CUDA:  # which may find what another machine compiled, and asks for the kernels
            if target.pairs or not backend.ON_HARDWARE:
                _require_compiler()
            found = find_unregistered(tree, target)
    if found:
        spent = time.monotonic() - started
        return VerdictAnswer(
            judge.verdict_without_tests(target.base, found, spent, options.backend, options.arithmetic)
        )
    context = make_context(tree, target, backend.select_opinfos(target.base))
    if options.selects and not (options.checked or options.large):
        _require_selection(replace(context, thorough=options.thorough), options.expr)
    if options.checked and not options.large and not _selects_any(context, _select_both(options.expr, CHECKED)):
        # Nothing would run in a library with checks, and compiling it costs what compiling the first one does.
        return VerdictAnswer(
            judge.judge(target.base, [], time.monotonic() - started, options.backend, options.arithmetic)
        )
    if options.library:
        library, fork = Path(options.library), Path(options.fork)
        findings = host.load_built(library, fork, tree, target, options.arithmetic, options.checked)
    else:
        findings = backend.load_operator(tree, target, options.arithmetic, options.checked)
    context = complete_context(context, tree, target, options)
    answer = _run_tests(tree, context, target, options, progress, started)
    if options.backend == HOST:
        findings = (*findings, *host.list_short_arguments(), *_find_release_faults(tree, target, answer.verdict))
    rows = [row for name, row in _read_rows(tree.read(NATIVE_FUNCTIONS), target).items() if name in target.rows]
    place = f"{NATIVE_FUNCTIONS}:{rows[0].line}" if rows else NATIVE_FUNCTIONS
    return replace(answer, verdict=add_findings(place_findings(answer.verdict, place), findings))


def _find_release_faults(tree: Tree, target: VerifyTarget, verdict: Verdict) -> tuple[ForkFinding, ...]:
    """What tells of failing tests that files of the fork do not fit each other."""
    from porter.verdict.suite import counters

    messages = [failure.reason for failure in verdict.failures]
    return find_release_faults(tree, target, messages, counters.read_kernels()) if messages else ()


def _selects_any(context: Context, expr: str) -> bool:
    """Returns true if a run with bounds checks has tests that `expr` selects, some of which only such a run has.

    An expression that is none counts too: whoever runs the tests says what is wrong with it.
    """
    from porter.verdict.suite import runner

    try:
        return bool(runner.select(replace(context, checks_memory=True), expr))
    except ValueError:
        return True


def _require_selection(context: Context, expr: str | None) -> None:
    """Raises PTR430 for a selection without a test, before anything is built."""
    from porter.verdict.suite import runner

    try:
        selected = runner.select(context, expr)
    except ValueError as error:
        raise NoVerdict("PTR430", str(error), hint="Write it as pytest's -k takes it.") from error
    if not selected:
        what = f"no test of {', '.join(context.bases)} is selected by -k {expr}"
        raise NoVerdict("PTR430", what, hint="Choose part of a test's name, as a verdict without -k prints it.")


def _run_tests(
    tree: Tree, context: Context, target: VerifyTarget, options: RunOptions, progress: Progress, started: float
) -> VerdictAnswer:
    from porter.verdict.suite import runner

    if options.large:
        return _run_large(context, target, options, progress)
    selected = _select_both(options.expr, CHECKED) if options.checked else options.expr
    outcomes = runner.run(context, selected, progress, options.first_failure)
    return conclude(tree, context, target, options, outcomes, progress, started)


def complete_context(context: Context, tree: Tree, target: VerifyTarget, options: RunOptions) -> Context:
    """The context with what a run adds to it."""
    backend = BACKENDS[options.backend]
    return replace(
        context,
        siblings=find_siblings(tree, target) if backend.RUNS_HOST_CODE else None,
        flushes=options.arithmetic == FLUSH or backend.FLUSHES,
        runs_host_code=backend.RUNS_HOST_CODE,
        checks_memory=options.checked,
        has_before=backend.RUNS_HOST_CODE and _replaces_code(tree, target),
        thorough=options.thorough,
    )


def conclude(
    tree: Tree,
    context: Context,
    target: VerifyTarget,
    options: RunOptions,
    outcomes: Sequence[Outcome],
    progress: Progress,
    started: float,
) -> VerdictAnswer:
    """The verdict on tests that have run in this process, with what they leave to be asked."""
    from porter.verdict.suite import kept_outcomes, proof
    from porter.verdict.suite.sample_results import run_samples

    kept_outcomes.store()
    found = judge.judge(target.base, outcomes, 0.0, options.backend, options.arithmetic)
    if options.backend == CUDA:
        found = replace(found, beside=NVIDIA_GPU.list_comparisons())
    if options.checked or (options.first_failure and not found.ok):
        return VerdictAnswer(found)
    found = judge.require_kernel_calls(target, found)
    found = judge.require_tests(found, proof.find_lost(context, outcomes, options.expr))
    if not options.expr and options.backend == HOST:
        found = _tell_unlaunched(tree, context, target, found)
    progress("test lists")
    proven = proof.prove(context, outcomes)
    notes = judge.describe_lists(target, proven.freed, proven.stale, outcomes)
    progress("all samples")
    ported = bool(tree.texts) and BACKENDS[options.backend].RUNS_HOST_CODE
    samples = tuple(run_samples(context, progress)) if ported else ()
    verdict = judge.add_notes(found, notes, time.monotonic() - started)
    return VerdictAnswer(verdict, samples, judge.list_listed_types(outcomes))


def _run_large(context: Context, target: VerifyTarget, options: RunOptions, progress: Progress) -> VerdictAnswer:
    """The verdict on large tensors alone, with what host code refused."""
    from aten_overlay.device.apart import limit_memory
    from porter.verdict.suite import results, runner

    limit_memory()
    outcomes = runner.run(context, options.expr, progress, names=runner.LARGE)
    found = judge.judge(target.base, outcomes, 0.0, options.backend, options.arithmetic)
    refused = dict.fromkeys(note for record in results.records.values() for note in record.notes)
    return VerdictAnswer(judge.describe_large(found, tuple(refused)))


def _select_both(expr: str | None, other: str) -> str:
    return f"({expr}) and ({other})" if expr else other


def make_context(tree: Tree, target: VerifyTarget, selection: Selection) -> Context:
    """The context of the tests: the operator, its kernels, and the fork's lists before and after."""
    from porter.verdict.suite.context import Context

    lists = tree.list_file()
    return Context(
        bases=(target.base,),
        rows=target.rows,
        through=selection.forward,
        through_backward=selection.backward,
        kernels=target.kernels,
        functors=sources.functors(tree),
        dtypes=tuple(dict.fromkeys(BY_METAL[given].torch for given, _ in target.pairs)),
        as_is=target.as_is,
        elsewhere=target.elsewhere,
        lists_file=lists,
        lists=tree.read(lists) if lists else "",
        lists_before=tree.before(lists) if lists else "",
        precision=tree.read(TEST_MPS) if tree.exists(TEST_MPS) else "",
        literals=literals(tree, target),
        most=largest_count(tree, target),
        adding=find_adding_kernels(tree, target),
        wide=pair_widths(list_kernel_names(tree, target)) if target.kernels and not target.pairs else (),
    )
