"""`porter verify`: a verdict on native operators, or on the ports of others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from porter.aten.declarations import parse_base_name
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.layout import KERNELS, METAL_HEADERS, MPS, NATIVE_FUNCTIONS, OPERATIONS
from porter.core.progress import Progress, Steps, ignore, number_progress
from porter.plan.plan import Draft, Plan
from porter.plan.planner import plan_operator
from porter.verdict.errors import NotNative
from porter.verdict.native import find_unserved, native_target
from porter.verdict.result import Proof, Verdict, add_findings
from porter.verdict.verify import ask_verdict, make_request, prove
from porter.workflows.candidates import choose_candidates
from porter.workflows.migrate import require_names
from porter.workflows.stacking import read_old_code
from porter.workflows.written import Baseline, find_baseline, request_written

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
        return _verify_written(checkout, before, op, proof, progress)
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


def _verify_written(checkout: Checkout, before: Baseline, op: str, proof: Proof, progress: Progress) -> Verdict:
    """The verdict that a port had before it was written: on the same target, against the same fork."""
    request = request_written(checkout, before, op, proof, progress)
    found = ask_verdict(request, progress)
    notes = [f"verified against the fork before its port, of {before.origin}"]
    if request.thorough and proof.thorough is None:
        notes.append("thorough, as the verdict before it was written; --no-thorough leaves out what takes longer")
    return replace(found, notes=(*found.notes, *notes))


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
