"""`porter verify`: a verdict on native operators, or on ports, and what a port that a checkout has is about."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

from porter.aten.declarations import parse_base_name
from porter.aten.operator import Operator
from porter.core import journal
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.git import read_differing
from porter.core.layout import (
    ATEN,
    KERNELS,
    METAL_HEADERS,
    MPS,
    NATIVE_FUNCTIONS,
    OPERATIONS,
    OPINFO_DEFINITIONS,
    OPINFOS,
    TEST_LISTS,
)
from porter.core.progress import Progress, Steps, ignore, number_progress
from porter.languages.identifiers import contains_identifier
from porter.metal.kernel import FIRST_CANDIDATES
from porter.metal.kernel_spec import no_recording
from porter.plan.addition import plan_addition
from porter.plan.plan import Draft, Plan
from porter.plan.planner import plan_operator
from porter.verdict.errors import NotNative
from porter.verdict.messages import VerifyRequest
from porter.verdict.native import find_unserved, native_target
from porter.verdict.result import Proof, Verdict, add_findings
from porter.verdict.verify import ask_verdict, find_target, make_request, prove, select_tests
from porter.workflows.candidates import Planner, choose_candidates, list_choices, recall_decision
from porter.workflows.coverage import find_needed
from porter.workflows.migrate import require_names
from porter.workflows.stacking import read_old_code

NO_BASELINE = "what the fork did before is not known, so that nothing is compared with it: --baseline names it"


@dataclass(frozen=True)
class NotVerified:
    """One of several operators on which there is no verdict."""

    op: str
    error: PorterError


def verify_operators(
    checkout: Checkout, ops: Sequence[str], proof: Proof, progress: Steps = ignore, baseline: str | None = None
) -> Iterator[Verdict | NotVerified]:
    """Yields the verdict on each operator. One of several that has none does not end the others.

    Raises as `require_names` does, and for a single operator as `verify_operator` does.
    """
    require_names(checkout, ops)
    for at, op in enumerate(ops):
        try:
            yield verify_operator(checkout, op, proof, number_progress(progress, op, at, len(ops)), baseline)
        except PorterError as error:
            if len(ops) == 1:
                raise
            yield NotVerified(op, error)


def verify_operator(
    checkout: Checkout, op: str, proof: Proof, progress: Progress = ignore, baseline: str | None = None
) -> Verdict:
    """The verdict on a native operator, or on the port of another. Raises what `plan_operator` and `prove` raise.

    One that porter wrote is verified as `migrate` verified it, against the fork before, which `baseline` names, or
    which is found. Raises as `find_baseline` does.
    """
    before = find_baseline(checkout, op, baseline)
    if before:
        # The verdict that a port had before it was written: on the same target, against the same fork
        request = request_written(checkout, before, op, proof, progress)
        found = ask_verdict(request, progress)
        notes = [f"verified against the fork before its port, of {before.origin}"]
        if request.thorough and proof.thorough is None:
            notes.append("thorough, as the verdict before it was written; --no-thorough leaves out what takes longer")
        return replace(found, notes=(*found.notes, *notes))
    try:
        target = native_target(checkout, op)
    except NotNative:
        old = read_old_code(checkout, run=True)
        recorded = old.graphs(progress)
        planner = partial(plan_operator, programs=old.programs(progress))
        plan = planner(checkout, op, recorded=recorded)

        def verdict(candidate: Plan, asked: Proof) -> Verdict:
            return prove(Draft(checkout), candidate, parse_base_name(op), asked, progress)

        return choose_candidates(checkout, plan, verdict, recorded, planner, proof).verdict
    verdict_as_is = ask_verdict(make_request(checkout.root, {}, target, proof, proof.expr), progress)
    verdict_as_is = replace(verdict_as_is, notes=(*verdict_as_is.notes, NO_BASELINE))
    return verdict_as_is if verdict_as_is.ok else add_findings(verdict_as_is, find_unserved(checkout, op))


def find_watched_files(checkout: Checkout) -> tuple[Path, ...]:
    """The files that a verdict depends on: the MPS backend, its kernels and headers, and native_functions.yaml."""
    folders = ((MPS, (".h", ".mm")), (OPERATIONS, (".h", ".mm")), (KERNELS, (".metal", ".h")), (METAL_HEADERS, (".h",)))
    names = [path for folder, endings in folders for path in checkout.list(folder, *endings)]
    return tuple(checkout.root / name for name in (NATIVE_FUNCTIONS, *names))


PAUSE_SECONDS = 0.2
SETTLE_SECONDS = 0.1

Stamp = tuple[int, int] | None


def watch(
    files: Callable[[], Iterable[Path]], act: Callable[[], None], sleep: Callable[[float], None] = time.sleep
) -> None:
    """Calls `act` once, then again after every change, until interrupted. Calls `files` each time."""
    try:
        act()
        for _ in changes(files, sleep):
            act()
    except KeyboardInterrupt:
        return


def changes(files: Callable[[], Iterable[Path]], sleep: Callable[[float], None] = time.sleep) -> Iterator[list[Path]]:
    """Yields the files that were changed, added or removed, once writes settle."""
    before = _stamps(files())
    while True:
        sleep(PAUSE_SECONDS)
        now = _stamps(files())
        if now == before:
            continue
        settled = False
        while not settled:
            sleep(SETTLE_SECONDS)
            again = _stamps(files())
            settled, now = again == now, again
        yield sorted(path for path in {*before, *now} if before.get(path) != now.get(path))
        before = now


def _stamps(files: Iterable[Path]) -> dict[Path, Stamp]:
    return {path: _stamp(path) for path in files}


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


_MPS_PLACES = (MPS, METAL_HEADERS, NATIVE_FUNCTIONS, OPINFOS, OPINFO_DEFINITIONS, *TEST_LISTS)
_PLACES = (ATEN, METAL_HEADERS, OPINFOS, OPINFO_DEFINITIONS, *TEST_LISTS)  # ATEN has NATIVE_FUNCTIONS
_SOURCES = frozenset({".cpp", ".cu", ".cuh", ".h", ".hpp", ".inl", ".metal", ".mm", ".py", ".yaml"})


@dataclass(frozen=True)
class Baseline:
    """The `fork` before, and the `texts` that the checkout has now of the files that differ ("" for no file)."""

    fork: Checkout
    texts: Mapping[str, str]
    origin: str


def find_baseline(checkout: Checkout, op: str, named: str | None) -> Baseline | None:
    """The fork before the port of an operator; None if nothing tells what that was.

    `named` is a folder or a commit; else it is what porter's journal kept before it wrote the port, or the last commit
    if that has no port. Raises PTR433 if there was no port between `named` and now, and PTR063 for no such commit.
    """
    if named is not None:
        baseline = read_named(checkout, named)
        if not _is_ported(baseline, checkout, op):
            what = f"{op} was no other in {named} than it is now"
            raise PorterError("PTR433", what, hint="Name a fork or a commit in which MPS had its old code, or none.")
        return baseline
    kept = (_make_baseline(checkout, contents, "porter's journal") for contents in journal.read_earlier(checkout.root))
    return next((each for each in chain(kept, _read_uncommitted(checkout)) if _is_ported(each, checkout, op)), None)


def _is_ported(baseline: Baseline, checkout: Checkout, op: str) -> bool:
    """Whether a row of an operator had other code on MPS, or none, and has native code now."""
    try:
        before, now = Operator.read(baseline.fork, op), Operator.read(checkout, op)
    except PorterError:
        return False
    graphs = {row.function.name for row in before.served if row.builds_graph}
    native = {row.function.name for row in before.served} - graphs
    return any(not row.builds_graph and row.function.name not in native for row in now.served)


def read_named(checkout: Checkout, named: str) -> Baseline:
    """The fork of a folder or a commit, and what differs from it. Raises PTR063 for neither."""
    folder, contents = Path(named), _read_files(checkout, _PLACES)
    if not (folder / NATIVE_FUNCTIONS).is_file():
        return _make_baseline(checkout, read_differing(checkout.root, named, _PLACES, contents), f"commit {named}")
    earlier = _read_files(Checkout(folder, "--baseline"), _PLACES)
    differing = {path: earlier.get(path) for path in {*contents, *earlier} if contents.get(path) != earlier.get(path)}
    return _make_baseline(checkout, differing, named)


def _read_uncommitted(checkout: Checkout) -> Iterator[Baseline]:
    """The last commit, if the checkout's MPS code is another: a port that git applied, for example."""
    try:
        differing = read_differing(checkout.root, "HEAD", _MPS_PLACES, _read_files(checkout, _MPS_PLACES))
    except PorterError:  # no repository, or none that can be read, tells nothing
        return
    if differing:
        yield _make_baseline(checkout, differing, "the last commit")


def _read_files(checkout: Checkout, places: Sequence[str]) -> dict[str, bytes]:
    """The sources at or below places of a checkout. Raises as `Checkout.read` does."""
    walked = (
        Path(base, name) for place in places for base, _, names in os.walk(checkout.root / place) for name in names
    )
    paths = [each.relative_to(checkout.root).as_posix() for each in walked if each.suffix in _SOURCES]
    paths += [place for place in places if (checkout.root / place).is_file()]
    return {path: checkout.read(path).encode("utf-8", "surrogateescape") for path in paths}


def _make_baseline(checkout: Checkout, contents: Mapping[str, bytes | None], origin: str) -> Baseline:
    earlier = {path: _decode(data) for path, data in contents.items()}
    texts = {path: checkout.read(path) if checkout.exists(path) else "" for path in earlier}
    differing = {path: text for path, text in earlier.items() if (text or "") != texts[path]}
    return Baseline(checkout.as_before(differing), {path: texts[path] for path in differing}, origin)


def _decode(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogateescape")


_DECLARED = re.compile(r"\b(?:struct|kernel void) (\w+)")


@dataclass(frozen=True)
class _Replanned:
    """The plan that the checkout has as written, and whether its verdict was thorough."""

    plan: Plan
    thorough: bool = False


def request_written(checkout: Checkout, before: Baseline, op: str, proof: Proof, progress: Progress) -> VerifyRequest:
    """The request for the verdict on an operator as the checkout has it, against the fork `before` its port.

    Its rows, types and list entries are those of the port that porter plans on that fork. Where the checkout has
    another port, they are read from the checkout. Raises what reading them, recording and `make_request` raise.
    """
    replanned = _plan_again(checkout, before.fork, op, progress)
    if replanned is None:
        target, expr = native_target(checkout, op), proof.expr
    else:
        target = find_target(replanned.plan, parse_base_name(op), checkout)
        expr = select_tests(replanned.plan, proof.expr)
        proof = replace(proof, thorough=replanned.thorough if proof.thorough is None else proof.thorough)
    return make_request(checkout.root, before.texts, target, proof, expr, before.fork.earlier)


def _plan_again(checkout: Checkout, fork: Checkout, op: str, progress: Progress) -> _Replanned | None:
    """The plan of a port on the fork before it, with the candidates that the checkout has; None if it has another."""
    progress("planning")
    old = read_old_code(fork, run=True)
    recorded = old.graphs(progress)
    planner: Planner = partial(plan_operator, programs=old.programs(progress))
    if not Operator.read(fork, op).served:
        planner, recorded = plan_addition, no_recording
    draft = Draft(fork)
    try:
        for needed in find_needed(fork, op):
            draft = draft.follow(planner(draft.fork, needed, FIRST_CANDIDATES, recorded).changes)
        first = planner(draft.fork, op, FIRST_CANDIDATES, recorded)
        kernels = "\n".join(checkout.read(path) for path in checkout.list(KERNELS, ".metal"))
        decision = recall_decision(draft.fork, first)
        if decision:
            plan = planner(draft.fork, op, decision.choice, recorded, listed=decision.listed)
            if _has_kernels(kernels, plan):
                return _Replanned(plan, decision.thorough)
        choices = (FIRST_CANDIDATES, *list_choices(first))
        plans = (planner(draft.fork, op, choice, recorded) for choice in choices)
        plan = next((each for each in plans if _has_sources(kernels, each)), first)
    except PorterError:
        return None
    return _Replanned(plan) if _has_kernels(kernels, plan) else None


def _has_sources(kernels: str, plan: Plan) -> bool:
    return all(functor.source.strip() in kernels for functor in plan.functors)


def _has_kernels(kernels: str, plan: Plan) -> bool:
    """Whether what the plan's functors and kernels are declared as is in the files: they may have been edited since."""
    declared = (name for functor in plan.functors for name in _DECLARED.findall(functor.source))
    return all(contains_identifier(kernels, name) for name in declared)
