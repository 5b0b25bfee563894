"""The verdict server, whose `main` takes SOCKET FINGERPRINT BACKEND, or `--once` for a request on stdin.

Commands have one too: see `porter.server.command`.

It imports torch, the OpInfos and the device, then forks a worker for every request, so that nothing a request loads
outlives it. It exits after ten idle minutes, or when torch or porter's own files have changed since it imported them.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import select
import socket
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from porter.core import cache, codec
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.layout import KERNELS
from porter.core.progress import Progress, ignore
from porter.server import command, worker
from porter.server.ending import adopt_orphans, end_descendants, end_with_parent
from porter.server.process import Act, End, Process, act_here, wait
from porter.server.worker import RunOptions, find_lint
from porter.verdict import client
from porter.verdict.backends import host
from porter.verdict.backends.choice import BACKENDS
from porter.verdict.baseline import CRASHED, EarlierResult, find_candidates, list_inheritable, tell_apart
from porter.verdict.behavior import SampleResult, compare_paths, find_lost, find_worse
from porter.verdict.build.tree import Tree, materialise, metal_include
from porter.verdict.client import digest_old_code, digest_tested_code, key
from porter.verdict.errors import raising_porter_errors
from porter.verdict.judge import (
    merge_arithmetics,
    merge_bounds_check,
    merge_large,
    require_no_worse,
    require_samples,
    verdict_without_tests,
)
from porter.verdict.limits import Limits, read_limits, take_over
from porter.verdict.messages import (
    Answer,
    BaselineAnswer,
    BuildAnswer,
    BuildRequest,
    ErrorAnswer,
    PrepareAnswer,
    PrepareRequest,
    RecordAnswer,
    RecordRequest,
    Request,
    SamplesAnswer,
    StepStarted,
    VerdictAnswer,
    VerifyRequest,
    answer_of_error,
    decode_request,
    encode_line,
)
from porter.verdict.result import ALL, ARITHMETICS, Failure, Verdict, VerifyTarget, add_findings, fail_for_findings


def build_together(request: BuildRequest, progress: Progress) -> BuildAnswer:
    """Builds the ports of a request, or says what is broken; of old code, where it has no texts, what can be built."""
    try:
        with raising_porter_errors():
            return _build_many(request, progress)
    except PorterError as error:
        return BuildAnswer((), str(error))


def _build_many(request: BuildRequest, progress: Progress) -> BuildAnswer:
    tree = materialise(request.root, request.texts, cache.root())
    progress("build")
    if not request.texts:
        by_base = dict(_build_parts(tree, request.targets))
        return BuildAnswer(tuple(by_base[target.base] for target in request.targets))
    found = find_lint(tree)
    if found:
        return BuildAnswer((), f"{found[0].place}: {found[0].reason}")
    _compile_first_kernels(tree)
    built = host.build_many(tree, request.targets, missing_ok=False)
    libraries = tuple(str(built.library) for _ in request.targets)
    return BuildAnswer(libraries, fork=str(tree.root), findings=built.findings)


def _build_parts(tree: Tree, targets: Sequence[VerifyTarget]) -> Iterator[tuple[str, str]]:
    """The library of each operator: one for all, and halves where that does not build."""
    try:
        with raising_porter_errors():
            library = str(host.build_many(tree, targets, missing_ok=True).library)
    except PorterError:
        if len(targets) == 1:
            yield targets[0].base, ""
            return
        middle = len(targets) // 2
        yield from _build_parts(tree, targets[:middle])
        yield from _build_parts(tree, targets[middle:])
        return
    yield from ((target.base, library) for target in targets)


def _compile_first_kernels(tree: Tree) -> None:
    """Compiles one kernel of each edited file: what is no instance of a template is compiled with any of them."""
    from aten_overlay.metal.build import QUICK, Options, compile_kernels, host_names

    options = Options(include=metal_include(tree.root), optimization=QUICK)
    for path in tree.texts:
        names = host_names(tree.root / path, options) if path.startswith(KERNELS) and path.endswith(".metal") else ()
        if names:
            compile_kernels(tree.root / path, names[:1], options)


Run = Callable[[Act], Answer]
CRASHED_CODE = "PTR137"  # the old implementation ended its process


def compare_with_baseline(request: VerifyRequest, verdict: Verdict, run: Run) -> Verdict:
    """The verdict on a port without the failures that the fork had before.

    `run` runs, in a process of their own, only those tests that may have failed before, and each only once for a fork.
    """
    if not request.texts or verdict.failed == 0:
        return verdict
    tests = find_candidates(verdict) if BACKENDS[request.backend].RUNS_HOST_CODE else ()
    if BACKENDS[request.backend].RUNS_HOST_CODE and not request.target.stubs:  # kernels of a recorded graph
        tests = (*tests, *list_inheritable(verdict))
    evidence = digest_tested_code(Checkout(request.root, "named").as_before(request.earlier)) if tests else ""
    found = {test: _get(request, evidence, verdict.arithmetic, test) for test in tests}
    missing = [test for test, before in found.items() if before is None]
    if missing:
        answer = run(partial(_run_tests, request, missing, verdict.arithmetic))
        if isinstance(answer, ErrorAnswer) and answer.code == CRASHED_CODE and len(missing) > 1:
            answers = [run(partial(_run_tests, request, [test], verdict.arithmetic)) for test in missing]
        else:
            answers = [answer]
        for test, answer in zip(missing, answers, strict=False):
            if isinstance(answer, BaselineAnswer):
                for before in answer.tests:
                    _put(request, evidence, verdict.arithmetic, before)
                    found[before.test] = before
                continue
            assert isinstance(answer, ErrorAnswer)
            if answer.code == CRASHED_CODE:
                found[test] = EarlierResult(test, CRASHED)
            note = f"the fork before the port was not tested: {answer.code} {answer.what.splitlines()[0]}"
            verdict = replace(verdict, notes=(*verdict.notes, note))
    return tell_apart(verdict, {test: before for test, before in found.items() if before})


def _run_tests(request: VerifyRequest, tests: Collection[str], arithmetic: str, progress: Progress) -> Answer:
    old = request.libraries.old
    root, earlier = request.root, request.earlier
    return BaselineAnswer(tuple(worker.run_baseline(root, earlier, request.target, tests, arithmetic, progress, old)))


def _get(request: VerifyRequest, *evidence: str) -> EarlierResult | None:
    text = cache.get(_key(request, *evidence))
    return None if text is None else codec.decode(text, EarlierResult)


def _put(request: VerifyRequest, evidence: str, arithmetic: str, before: EarlierResult) -> None:
    cache.put(_key(request, evidence, arithmetic, before.test), codec.encode(before, EarlierResult))


def _key(request: VerifyRequest, evidence: str, arithmetic: str, test: str) -> Path:
    target = request.target
    return key(evidence, "baseline", target.base, arithmetic, test, repr((target.stubs, target.pairs)))


IDLE_SECONDS = 600.0
LOOK_SECONDS = 15.0
LEFT_SECONDS = 24 * 3600.0

_Samples = tuple[SampleResult, ...]


def main() -> int:
    """Serves, or answers once, as the arguments say."""
    arguments = sys.argv[1:]
    os.umask(0o077)  # what is cached is this user's alone
    if arguments == ["--once"]:
        _answer_once()
        return 0
    path, fingerprint, backend = arguments
    try:
        with raising_porter_errors():
            if backend == client.COMMANDS:
                serve(Path(path), fingerprint, command.preload, command.handle)
            else:
                serve(Path(path), fingerprint, partial(worker.preload, backend))
    except PorterError as error:  # the last line of the log, which a client reads
        sys.stderr.buffer.write(encode_line(answer_of_error(error)))
        return 1
    return 0


def _answer_once() -> None:
    """Answers the request on stdin. Only the answer goes to stdout, whatever the code that runs prints."""
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)
        request = decode_request(sys.stdin.readline())
        end_with_parent(os.getppid())
        adopt_orphans()

        def send_step(step: str) -> None:
            out.write(encode_line(StepStarted(step)))
            out.flush()

        def act(progress: Progress) -> Answer:
            worker.preload(request.backend)
            return answer(request, progress)

        try:
            out.write(encode_line(act_here(act, send_step)))
        finally:
            end_descendants()


Handle = Callable[[socket.socket], None]


def serve(
    path: Path, fingerprint: str, preload: Callable[[], None] = lambda: None, handle: Handle | None = None
) -> None:
    """Answers on the socket until idle or outdated; at once done where another server has it."""
    claim = _claim(path)
    if claim is None:
        return
    try:
        _sweep(path)
        preload()
        listener = _listen(path)
        try:
            _answer_all(listener, claim, fingerprint, handle or _handle_request)
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(claim)


def _answer_all(listener: socket.socket, claim: int, fingerprint: str, handle: Handle) -> None:
    last = time.monotonic()
    while time.monotonic() - last < IDLE_SECONDS:
        ready, _, _ = select.select([listener], [], [], LOOK_SECONDS)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if ready:
            link, _ = listener.accept()
            _handle(link, listener, claim, handle)
            last = time.monotonic()
        elif client.fingerprint(fingerprint.partition("-")[0]) != fingerprint:
            return
        else:
            cache.keep_bounded()


def answer(request: Request, progress: Progress = ignore, link: socket.socket | None = None) -> Answer:
    """Answers one request. Reports steps to `progress`.

    Raises PTR176 for invalid limits, and ConnectionAbortedError when the client closes the `link`.
    """
    limits = read_limits(request.environment)
    if isinstance(request, VerifyRequest):
        return _verify(request, limits, progress, link)
    if isinstance(request, BuildRequest):
        unlimited = replace(limits, verdict=math.inf)
        process = Process(partial(build_together, request), _preparation_ended, unlimited)
    elif isinstance(request, RecordRequest):
        process = Process(partial(_record, request), _old_code_ended, limits)
    else:
        process = Process(partial(_prepare, request), _preparation_ended, replace(limits, verdict=math.inf))
    return wait([process], progress, link)[0]


def _verify(request: VerifyRequest, limits: Limits, progress: Progress, link: socket.socket | None) -> Answer:
    """Computes a verdict.

    Each arithmetic runs in its own worker, and so does a short run with bounds checks, all in parallel. On hardware
    there is one run, in this process, because Metal does not survive a fork.
    """
    if BACKENDS[request.backend].ON_HARDWARE:
        alone = act_here(partial(_run, request, _options(request, request.arithmetic)), progress)
        return VerdictAnswer(_judge_fork(request, alone.verdict)) if isinstance(alone, VerdictAnswer) else alone
    began = time.monotonic()
    arithmetics = ARITHMETICS if request.arithmetic == ALL else (request.arithmetic,)
    runs = [_options(request, arithmetic) for arithmetic in arithmetics]
    runs.append(_options(request, arithmetics[0], checked=True))
    if request.large:
        runs.append(replace(_options(request, arithmetics[0], checked=True), large=True))
    old = _OldPath(request, limits)
    started = [Process(partial(_run, request, options), partial(_fail, request, options), limits) for options in runs]
    answers = wait([*started, *old.processes], progress, link)[: len(runs)]
    found = [each for each in answers if isinstance(each, VerdictAnswer)]
    if len(found) < len(answers):
        return next(each for each in answers if not isinstance(each, VerdictAnswer))
    left = replace(limits, verdict=max(limits.verdict - (time.monotonic() - began), 0.1))

    def run(act: Act) -> Answer:
        return wait([Process(act, _old_code_ended, left)], progress, link)[0]

    plain, (checked, *large) = found[: len(arithmetics)], found[len(arithmetics) :]
    merged = merge_arithmetics([compare_with_baseline(request, each.verdict, run) for each in plain])
    merged = merge_bounds_check(merged, [checked.verdict])
    for each in large:
        merged = merge_large(merged, each.verdict)
    return VerdictAnswer(_judge_fork(request, old.compare(merged, found[0])))


def _judge_fork(request: VerifyRequest, verdict: Verdict) -> Verdict:
    """The verdict with what building many operators together found about the fork, for which a strict one fails."""
    whole = add_findings(verdict, request.libraries.findings)
    return fail_for_findings(whole) if request.strict else whole


def _options(request: VerifyRequest, arithmetic: str, checked: bool = False) -> RunOptions:
    built = request.libraries
    return RunOptions(
        request.expr,
        request.backend,
        arithmetic,
        checked,
        thorough=request.thorough,
        selects=request.selects,
        library=built.ported,
        fork=built.fork,
    )


class _OldPath:
    """The sample results of the implementation that a port removes: cached, or run in parallel with the verdict."""

    def __init__(self, request: VerifyRequest, limits: Limits) -> None:
        self._found: _Samples | None = None
        self._selects = request.selects
        self.processes: tuple[Process, ...] = ()
        if not request.texts or not BACKENDS[request.backend].RUNS_HOST_CODE:
            return
        evidence = digest_old_code(Checkout(request.root, "named").as_before(request.earlier))
        self._key = key(evidence, "old_path", request.target.base, *request.target.stubs)
        text = cache.get(self._key)
        if text is not None:
            self._found = codec.decode(text, _Samples)
            return
        self.processes = (Process(partial(_run_old_path, request), _old_code_ended, limits),)

    def compare(self, verdict: Verdict, answer: VerdictAnswer) -> Verdict:
        """Adds a comparison with the old path, whose process has answered, or a note if it was not run."""
        for process in self.processes:
            found = process.answer
            if isinstance(found, ErrorAnswer):
                why = f"{found.code} {found.what.splitlines()[0]}"
                is_told = any(why in failure.reason for failure in verdict.failures)
                note = f"the old path was not run{', for the same reason' if is_told else f': {why}'}"
                return replace(verdict, notes=(*verdict.notes, note))
            assert isinstance(found, SamplesAnswer)
            self._found = found.samples
            cache.put(self._key, codec.encode(self._found, _Samples))
        if self._found is None or not answer.samples:
            return verdict
        whole = require_samples(verdict, find_lost(self._found, answer.samples))
        worse = find_worse(self._found, answer.samples)
        whole = require_no_worse(whole, [each for each in worse if self._selects or each.dtype in answer.listed])
        return replace(whole, old_path=compare_paths(self._found, answer.samples))


def _run(request: VerifyRequest, options: RunOptions, progress: Progress) -> Answer:
    return worker.verify(request.root, request.earlier, request.texts, request.target, options, progress)


def _run_old_path(request: VerifyRequest, progress: Progress) -> Answer:
    old = worker.run_old_path(request.root, request.earlier, request.target, progress, request.libraries.old)
    return SamplesAnswer(tuple(old))


def _record(request: RecordRequest, progress: Progress) -> Answer:
    record = worker.record_programs if request.of_programs else worker.record
    return RecordAnswer(record(request.root, request.earlier, request.target, request.macos, progress))


def _prepare(request: PrepareRequest, progress: Progress) -> Answer:
    progress("preparation")
    worker.prepare(request.root, request.backend)
    return PrepareAnswer()


def _fail(request: VerifyRequest, options: RunOptions, end: End) -> Answer:
    """A run that dies or takes too long is a failed verdict."""
    failures = [Failure(end.step, end.how)]
    base = request.target.base
    return VerdictAnswer(verdict_without_tests(base, failures, end.seconds, options.backend, options.arithmetic))


def _old_code_ended(end: End) -> Answer:
    if end.out_of_time:
        return ErrorAnswer("PTR175", end.how.removeprefix("PTR175 "))
    return ErrorAnswer("PTR137", f"the old implementation crashed during {end.step}: {end.how}")


def _preparation_ended(end: End) -> Answer:
    return ErrorAnswer("PTR170", f"the {end.step} failed: {end.how}")


def _handle(link: socket.socket, listener: socket.socket, claim: int, handle: Handle | None = None) -> None:
    """Answers one connection in a child process, so that requests are isolated and run in parallel."""
    child = os.fork()
    if child:
        link.close()
        return
    listener.close()
    os.close(claim)
    try:
        with link:
            (handle or _handle_request)(link)
    finally:
        os._exit(0)


def _handle_request(link: socket.socket) -> None:
    adopt_orphans()
    try:
        with contextlib.suppress(OSError), link.makefile("rb") as lines:
            line = lines.readline()
            if line:
                link.sendall(encode_line(_answer_line(line, link)))
    finally:
        end_descendants()


def _answer_line(line: bytes, link: socket.socket) -> Answer:
    def send_step(step: str) -> None:
        link.sendall(encode_line(StepStarted(step)))

    def act(progress: Progress) -> Answer:
        request = decode_request(line)
        take_over(request.environment)
        return answer(request, progress, link)

    return act_here(act, send_step)


def _claim(path: Path) -> int | None:
    """Takes the lock that the only server of a socket holds while it lives; None if another server holds it."""
    handle = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    os.utime(handle)
    return handle


def _sweep(path: Path) -> None:
    """Removes what servers left that have ended, a day after their start."""
    for lock in path.parent.glob("*.lock"):
        if time.time() - lock.stat().st_mtime < LEFT_SECONDS:
            continue
        name = lock.with_suffix("")
        claim = _claim(name)
        if claim is not None:
            for left in (name, name.with_name(f"{name.name}.new"), name.with_name(f"{name.name}.log"), lock):
                left.unlink(missing_ok=True)
            os.close(claim)


def _listen(path: Path) -> socket.socket:
    """The socket, which a client finds only when it is answered; what an earlier server left is replaced."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    own = path.with_name(f"{path.name}.new")
    own.unlink(missing_ok=True)
    listener.bind(str(own))
    own.chmod(0o600)
    listener.listen(16)
    own.replace(path)
    return listener
