"""A port that a checkout has: the fork before it, and what its verdict is about."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
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
    OPINFO_DEFINITIONS,
    OPINFOS,
    TEST_LISTS,
)
from porter.core.progress import Progress
from porter.languages.identifiers import contains_identifier
from porter.metal.kernel import FIRST_CANDIDATES
from porter.metal.kernel_spec import no_recording
from porter.plan.addition import plan_addition
from porter.plan.plan import Draft, Plan
from porter.plan.planner import plan_operator
from porter.verdict.messages import VerifyRequest
from porter.verdict.native import native_target
from porter.verdict.result import Proof
from porter.verdict.verify import find_target, make_request, select_tests
from porter.workflows.candidates import Planner, list_choices, recall_decision
from porter.workflows.coverage import find_needed
from porter.workflows.stacking import read_old_code

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
