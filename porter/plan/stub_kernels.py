"""Writes the kernel of every stub that functions of an operator call, each once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from porter.aten.implementations import Language, find_language, find_registration
from porter.aten.operator import Blocked, Migration, Operator
from porter.aten.stubs import Stub, StubCall
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.metal.families import find_family
from porter.metal.kernel import CandidateChoice, Kernel, KernelSpec
from porter.plan.dialect import require_dialect
from porter.plan.draft import Draft

# Reads what the kernel of a stub has to compute, from a function that migrates and its call of the stub.
ReadSpec = Callable[[Checkout, Operator, Migration, StubCall], KernelSpec]


@dataclass(frozen=True)
class PortDraft:
    """The draft with the kernels written so far, and the outcome for each function: migrated or blocked."""

    draft: Draft
    outcomes: tuple[Migration | Blocked, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    stubs: frozenset[Stub] = frozenset()

    @property
    def migrated(self) -> tuple[Migration, ...]:
        return tuple(each for each in self.outcomes if isinstance(each, Migration))

    @property
    def blocked(self) -> tuple[Blocked, ...]:
        return tuple(each for each in self.outcomes if isinstance(each, Blocked))


def port_functions(
    checkout: Checkout,
    operator: Operator,
    found: Sequence[Migration | Blocked],
    read: ReadSpec,
    choice: CandidateChoice,
) -> PortDraft:
    """Ports each stub once. A function with a stub that cannot be ported is blocked and changes nothing."""
    ported = PortDraft(Draft(checkout))
    for migration in sorted(found, key=_most_tensors):
        outcome, before = migration, ported
        if isinstance(migration, Migration):
            try:
                for call in migration.stubs:
                    ported = _port_stub(ported, operator, migration, call, read, choice)
            except PorterError as error:
                outcome = Blocked(migration.served, error)
                ported = before
        ported = replace(ported, outcomes=(*ported.outcomes, outcome))
    in_order = sorted(ported.outcomes, key=lambda each: operator.functions.index(each.served.function))
    return replace(ported, outcomes=tuple(in_order))


def _port_stub(
    ported: PortDraft,
    operator: Operator,
    migration: Migration,
    call: StubCall,
    read: ReadSpec,
    choice: CandidateChoice,
) -> PortDraft:
    """Adds the kernel of a stub to the draft, unless it was already added or the stub is already native."""
    fork = ported.draft.fork
    if call.stub in ported.stubs or _is_native(fork, call.stub):
        return ported
    family = find_family(migration.served.function, call)
    if family.FUNCTORS:
        require_dialect(fork)
    kernels = family.write(fork, read(fork, operator, migration, call), choice)
    draft = ported.draft
    for step in (step for kernel in kernels for step in kernel.steps):
        draft = draft.apply(step(draft.fork))
    return replace(ported, draft=draft, kernels=(*ported.kernels, *kernels), stubs=ported.stubs | {call.stub})


def _is_native(fork: Checkout, stub: Stub) -> bool:
    registered = find_registration(fork, stub.name)
    return registered is not None and find_language(fork, registered) is Language.METAL


def _most_tensors(migration: Migration | Blocked) -> int:
    """A sort key that puts functions with more tensors first: they say more about the kernel than scalar overloads."""
    return -sum(argument.is_tensor for argument in migration.served.function.arguments)
