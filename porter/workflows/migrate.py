"""`porter migrate`: plans, verifies and writes operators, each on top of the ones before it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from porter.aten.declarations import parse_base_name
from porter.aten.native_functions import NativeFunctions
from porter.core.change_set import Hunk, keep_hunks
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.progress import Progress, Step, Steps, ignore, number_progress
from porter.core.writing import refuse_uncommitted, write
from porter.metal.functor import Source
from porter.metal.kernel import FIRST_CANDIDATES
from porter.metal.kernel_spec import RecordedGraph
from porter.plan.dialect import require_dialect
from porter.plan.helpers import HelperPlan, plan_helpers
from porter.plan.plan import Draft, Plan, RejectedCandidate
from porter.plan.planner import plan_operator
from porter.verdict.result import Proof, Verdict
from porter.verdict.verify import prove
from porter.workflows.candidates import list_choices
from porter.workflows.coverage import find_needed
from porter.workflows.stacking import Grouping, OldCode, StackedPlan, read_old_code, stack_without
from porter.workflows.status import IS_NATIVE, portable, recordable

if TYPE_CHECKING:
    from porter.report.results import Shard
    from porter.verdict.result import Proof, Verdict
    from porter.workflows.candidates import Planner
    from porter.workflows.commits import Committed

Done = Callable[["Verdict"], None]


@dataclass(frozen=True)
class Request:
    """The operators to port, or all that can be, from which source, and what to do with their plans.

    No `proof` means no verdict. `all` are verified together, at most `jobs` at a time (0: as many as there are cores);
    of them, only those of a `shard` are ported if one is given; `recorded` adds those that no stub serves, whose ports
    come from runs of their old code. With `scaffold`, others get a frame. `helpers` adds the functions that named
    operators need and the fork's MetalShaderLibrary lacks, before them. What `keeps_dtypes` registers kernels for those
    that the old code took, too. What is written has a verdict of all tests, unless it may be `unverified`; it is
    committed too where `commits` says in which groups.
    """

    ops: tuple[str, ...] = ()
    all: bool = False
    jobs: int = 0
    shard: Shard | None = None
    write: bool = False
    force: bool = False
    proof: Proof | None = None
    source: Source = Source.ANY
    scaffold: bool = False
    recorded: bool = False
    helpers: bool = False
    unverified: bool = False
    keeps_dtypes: bool = False
    commits: Grouping | None = None


@dataclass(frozen=True)
class PortedOperator:
    """The best plan, its verdict or the error that prevented one, and the rejected candidates. Both are None if no
    verdict was requested; `doubt` then says why nothing proves the plan, or is empty if an earlier verdict does. A
    `broken` port, with which the fork does not build, is left out of what is written. One that is only `needed`, by an
    operator that calls it, is no result of its own.
    """

    plan: Plan
    verdict: Verdict | None = None
    no_verdict: PorterError | None = None
    rejected: tuple[RejectedCandidate, ...] = ()
    broken: str = ""
    needed: bool = False
    doubt: str = ""

    @property
    def done(self) -> bool:
        """Whether the plan is complete and its verdict, if requested, passed."""
        return self.plan.complete and self.no_verdict is None and (self.verdict is None or self.verdict.ok)

    @property
    def is_proven(self) -> bool:
        """Whether a verdict of all tests, now or a remembered one, passed it."""
        return not self.doubt and self.no_verdict is None and (self.verdict is None or self.verdict.ok)

    @property
    def builds(self) -> bool:
        """Whether no verdict says that the fork does not build with it."""
        return self.verdict is None or self.verdict.builds


@dataclass(frozen=True)
class NotPlanned:
    """One of several operators that could not be planned, or that `came_along`: an earlier port made it native."""

    op: str
    error: PorterError
    came_along: bool = False


@dataclass(frozen=True)
class Wrote:
    """The files written, and the operators of `--all` that were left out, as their verdict fails."""

    files: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def migrate(
    checkout: Checkout, request: Request, progress: Steps = ignore, done: Done = ignore
) -> Iterator[PortedOperator | NotPlanned | HelperPlan | Wrote | Committed]:
    """Ports each operator on top of the ones before it, then writes the files, or commits them.

    One with which the fork does not build is left out of what the next are ported on, unless all are written.

    Calls `done` with each verdict as it comes where many are verified together. Of all operators, those whose verdict
    fails are not written. One of several that has no plan is left out, as is one that calls an operator without a plan.

    Raises PTR002 (`all` on a fork older than the functor dialect, if all ports need it), PTR012 (no operator given, or
    an unknown one), PTR431 and PTR432 (what is to be written has no verdict of all tests), what `write` raises, and for
    a single operator what `plan_operator` raises.
    """
    if request.write:
        require_all_tests(request.proof)
    if not request.ops and not request.all:
        raise PorterError("PTR012", "no operator is named", hint="Name one, or use --all.")
    require_names(checkout, request.ops)
    ops: Sequence[str] = _list_all(checkout, request.recorded) if request.all else request.ops
    if not ops:
        require_dialect(checkout)
    if request.shard:
        ops = request.shard.select(ops)
    asked = frozenset(ops)
    needed = {op: find_needed(checkout, op) for op in ops}
    ops = tuple(dict.fromkeys(name for op in ops for name in (*needed[op], op)))
    families = _prepare_commits(checkout, ops, needed) if request.commits else dict[str, str]()
    ops = tuple(families) or ops
    if request.all and request.proof and request.source is Source.ANY:
        yield from _migrate_together(checkout, ops, asked, families, request, progress, done)
        return
    unproven, refused, planned = list[str](), dict[str, PorterError](), list[PortedOperator]()
    draft, old = Draft(checkout), read_old_code(checkout, run=request.proof is not None)
    for at, op in enumerate(ops):
        if missing := [name for name in needed.get(op, ()) if name in refused]:
            yield NotPlanned(op, _lack_plan(op, missing[0], refused[missing[0]]))
            continue
        report_progress = number_progress(progress, op, at, len(ops))
        recorded = old.graphs(report_progress)
        report_progress("planning")
        learnt = old.programs(report_progress)
        planner = partial(
            plan_operator, source=request.source, programs=learnt, scaffold=request.scaffold, keeps=request.keeps_dtypes
        )
        helped = partial(plan_operator, op=op, recorded=recorded, source=request.source)
        helpers = plan_helpers(draft.fork, op, helped) if request.helpers else None
        if helpers:
            yield helpers
            draft = draft.follow(helpers.changes)
        try:
            plan = planner(draft.fork, op, recorded=recorded)
        except PorterError as error:
            came = error.code == IS_NATIVE and _can_plan(planner, Draft(checkout), op, recorded)
            if not request.all and not came:
                if len(asked) == 1:
                    raise
                refused[op] = error
            if op in asked:
                yield NotPlanned(op, _came_along(op, error) if came else error, came)
            continue
        if request.write and not request.force:
            _refuse_uncommitted(checkout, draft.follow(plan.changes).changes.files)
        ported = (
            prove_candidates(draft, plan, request.proof, recorded, planner, report_progress)
            if request.proof
            else take_decision(draft.fork, plan, planner, recorded)
        )
        unproven += [] if ported.is_proven else [op]
        planned.append(ported)
        yield replace(ported, needed=op not in asked)
        if ported.builds or request.write:
            draft = draft.follow(ported.plan.changes)
    if request.write:
        if unproven and not request.unverified:
            raise refuse_unproven(unproven)
        if request.commits:
            yield from _commit(checkout, planned, families, request)
        else:
            yield _write(checkout, draft, request, [op for op in ops if op not in refused])


def take_decision(checkout: Checkout, plan: Plan, planner: Planner, recorded: RecordedGraph) -> PortedOperator:
    """The port without a verdict: the candidates that an earlier one chose, if it is remembered."""
    from porter.workflows.candidates import count_candidates, recall_decision

    decision, count = recall_decision(checkout, plan), count_candidates(plan)
    if decision is None:
        doubt = f"the first of {count} candidates, unverified" if count > 1 else "unverified"
        return PortedOperator(plan, doubt=doubt)
    if not decision.is_of(plan):
        plan = planner(checkout, plan.op, decision.choice, recorded, listed=decision.listed)
    if not decision.passed:
        return PortedOperator(plan, doubt="the best of its candidates by a verdict that fails")
    return PortedOperator(plan, doubt="" if decision.is_of(plan) else "unverified with the ports before it")


def require_all_tests(proof: Proof | None) -> None:
    """Raises PTR431 for a proof by selected tests: a port that is written needs them all."""
    if proof and proof.selects:
        what = f"a verdict of the tests that -k {proof.expr} selects proves too little to write a port"
        raise PorterError("PTR431", what, hint="Omit -k, or omit --write to see what these tests say.")


def refuse_unproven(ops: Sequence[str]) -> PorterError:
    """PTR432 for ports to be written of which no verdict is known."""
    named = ", ".join(ops)
    hint = "Leave out what fails, and omit --no-verify; or pass --unverified to write them all the same."
    return PorterError("PTR432", f"no verdict of all tests passed the port of {named}", hint=hint)


def require_names(checkout: Checkout, ops: Iterable[str]) -> None:
    """Raises PTR012 for a name that no operator has: the verdicts on those before it take minutes."""
    functions = NativeFunctions.read(checkout)
    for op in ops:
        functions.find_overloads(op)


def _write(checkout: Checkout, draft: Draft, request: Request, ops: Sequence[str]) -> Wrote:
    from porter.core.writing import write

    return Wrote(write(checkout, draft.changes, request.force, ops))


def _refuse_uncommitted(checkout: Checkout, files: Sequence[str]) -> None:
    """Raises as `write` will, but before the verdict, which takes longer."""
    from porter.core.writing import refuse_uncommitted

    refuse_uncommitted(checkout, files)


def _can_plan(planner: Planner, draft: Draft, op: str, recorded: RecordedGraph) -> bool:
    """Whether there is a plan of an operator on the fork as it was."""
    try:
        planner(draft.fork, op, FIRST_CANDIDATES, recorded)
    except PorterError:
        return False
    return True


def _came_along(op: str, error: PorterError) -> PorterError:
    what = f"{op} was ported with an operator before it, whose function it calls"
    return PorterError(error.code, what, error.place, f"Write that port, and `porter verify {op}` tests it.")


def _lack_plan(op: str, called: str, error: PorterError) -> PorterError:
    what = f"{op} calls {called}, which has no plan: {error.what}"
    return PorterError(error.code, what, error.place, error.hint)


def _list_all(checkout: Checkout, recorded: bool) -> tuple[str, ...]:
    by_stub = portable(checkout)
    return tuple(dict.fromkeys((*by_stub, *recordable(checkout)))) if recorded else by_stub


def _migrate_together(
    checkout: Checkout,
    ops: Sequence[str],
    asked: Collection[str],
    families: Mapping[str, str],
    request: Request,
    progress: Steps,
    done: Done,
) -> Iterator[PortedOperator | NotPlanned | Wrote | Committed]:
    from porter.workflows.setup import start_preparation
    from porter.workflows.stacking import Recordings, record_ahead
    from porter.workflows.together import prove_together

    assert request.proof is not None
    jobs, proof, read = request.jobs, request.proof, Recordings(checkout)
    connected = start_preparation(checkout, proof.backend)
    known = record_ahead(read, checkout, ops, jobs, connected.wait, progress)
    if request.write and not request.force and known:
        _refuse_uncommitted(checkout, known[-1].after.changes.files)
    proven = list(prove_together(checkout, ops, proof, read.old_code, jobs, progress, done, known))
    ports: dict[str, PortedOperator] = {}
    for found in proven:
        plan, trial = found.step.plan, found.trial
        is_needed = found.step.op not in asked
        if plan is None:
            assert found.error is not None
            if not is_needed:
                yield NotPlanned(found.step.op, found.error)
            continue
        verdict, rejected = (trial.verdict, trial.rejected) if trial else (None, ())
        ports[found.step.op] = PortedOperator(plan, verdict, found.error, rejected, found.broken, is_needed)
        yield ports[found.step.op]
    if request.write:
        failed = {op for op, port in ports.items() if not (port.verdict and port.verdict.ok)}
        steps = [each.step for each in proven if each.step.plan and not each.broken]
        kept = settle(checkout, steps, failed, ports, read.old_code, proof, progress)
        left_out = tuple(step.op for step in steps if step.op in failed)
        names = [step.op for step in steps if step.op not in failed]
        if request.commits:
            yield from _commit(checkout, [ports[op] for op in names], families, request)
            yield Wrote((), left_out)
        else:
            wrote = _write(checkout, kept[-1].after if kept else Draft(checkout), request, names)
            yield replace(wrote, left_out=left_out)


def settle(
    checkout: Checkout,
    steps: Sequence[StackedPlan],
    failed: set[str],
    ports: dict[str, PortedOperator],
    old: OldCode,
    proof: Proof,
    progress: Steps,
) -> tuple[StackedPlan, ...]:
    """The plans without those that `failed`. One that changes other lines as these leave is verified again."""
    from porter.verdict.verify import prove
    from porter.workflows.commits import changes_alike

    while True:
        kept = stack_without(checkout, steps, failed, old, progress)
        for step in kept:
            port = ports[step.op]
            if step.plan and changes_alike(step.plan, port.plan):
                ports[step.op] = replace(port, plan=step.plan)
                continue
            progress(Step(f"{step.op}: again, without {', '.join(sorted(failed))}"))
            verdict = prove(step.before, step.plan, step.base, proof) if step.plan else None
            if step.plan is None or verdict is None or not verdict.ok:
                failed.add(step.op)
                break
            ports[step.op] = replace(port, plan=step.plan, verdict=verdict)
        else:
            return kept


def _prepare_commits(checkout: Checkout, ops: Sequence[str], needed: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The family of each operator, in the order of commits. Raises PTR435 where git could not commit them."""
    from porter.core.git import require_committer
    from porter.workflows.commits import order_by_family

    require_committer(checkout.root)
    return order_by_family(checkout, ops, needed)


def _commit(
    checkout: Checkout, ports: Sequence[PortedOperator], families: Mapping[str, str], request: Request
) -> Iterator[Committed]:
    from porter.workflows.commits import commit_groups

    assert request.commits is not None
    texts = [(port.plan, port.verdict, port.rejected) for port in ports]
    yield from commit_groups(checkout, texts, families, request.commits, request.force)


def prove_candidates(
    draft: Draft, plan: Plan, proof: Proof, recorded: RecordedGraph, planner: Planner, progress: Progress
) -> PortedOperator:
    """The best candidates of a plan by their verdicts, or why there is no verdict."""
    from porter.verdict.verify import prove
    from porter.workflows.candidates import choose_candidates

    def verdict(candidate: Plan, asked: Proof) -> Verdict:
        return prove(draft, candidate, parse_base_name(plan.op), asked, progress)

    try:
        best = choose_candidates(draft.fork, plan, verdict, recorded, planner, proof)
    except PorterError as error:
        return PortedOperator(plan, no_verdict=error)
    return PortedOperator(best.plan, best.verdict, rejected=best.rejected)


@dataclass(frozen=True)
class Offer:
    """A candidate: which one of how many, its plan, and its verdict or why there is none."""

    number: int
    count: int
    plan: Plan
    verdict: Verdict | None = None
    error: PorterError | None = None

    @property
    def is_proven(self) -> bool:
        return self.verdict is not None and self.verdict.ok


def offer_candidates(
    checkout: Checkout, op: str, proof: Proof, progress: Progress, keeps: bool = False
) -> Iterator[Offer]:
    """Yields each candidate with its verdict, which is asked for as the candidate is.

    The others differ from the first in the source of one functor. Raises PTR436 for an operator that calls others
    which build graphs, and what `plan_operator` raises of the first candidate.
    """
    if needed := find_needed(checkout, op):
        hint = f"Run `porter migrate {needed[0]} --write` first."
        raise PorterError("PTR436", f"{op} calls {', '.join(needed)}, to be ported before it", hint=hint)
    old = read_old_code(checkout, run=True)
    recorded = old.graphs(progress)
    planner = partial(plan_operator, programs=old.programs(progress), keeps=keeps)
    progress("planning")
    first = planner(checkout, op, FIRST_CANDIDATES, recorded)
    choices = [FIRST_CANDIDATES, *list_choices(first)]
    for number, choice in enumerate(choices, 1):
        plan = planner(checkout, op, choice, recorded) if choice else first
        yield judge(checkout, Offer(number, len(choices), plan), proof, progress)


def judge(checkout: Checkout, offer: Offer, proof: Proof, progress: Progress) -> Offer:
    """The offer with the verdict on its plan, or with the error that prevents one."""
    try:
        verdict = prove(Draft(checkout), offer.plan, parse_base_name(offer.plan.op), proof, progress)
    except PorterError as error:
        return replace(offer, verdict=None, error=error)
    return replace(offer, verdict=verdict, error=None)


def take_hunks(offer: Offer, kept: Sequence[Hunk]) -> Offer:
    """The offer with some of its hunks, on which there is no verdict yet."""
    return replace(offer, plan=replace(offer.plan, changes=keep_hunks(offer.plan.changes, kept)), verdict=None)


def require_committed(checkout: Checkout, plan: Plan, force: bool) -> None:
    """Raises PTR055 before a person is asked anything, unless `force`."""
    if not force:
        refuse_uncommitted(checkout, plan.changes.files)


def write_offer(checkout: Checkout, offer: Offer, force: bool, unverified: bool) -> tuple[str, ...]:
    """Writes what was taken. Raises PTR432 unless its verdict passes or it may be `unverified`, and as `write` does."""
    if not (offer.is_proven or unverified):
        raise refuse_unproven([offer.plan.op])
    return write(checkout, offer.plan.changes, force, (offer.plan.op,))
