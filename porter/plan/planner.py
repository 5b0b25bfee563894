"""The story of a port: find the operator, see what its old code computes, write the native one, take the old one
out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from porter.aten.implementations import Language, find_language, find_registration
from porter.aten.native_functions import MPS_KEY, NativeFunction, NativeFunctions, share_edits
from porter.aten.operator import Blocked, Migration, Operator, find_joining, find_migrations, find_served
from porter.aten.opinfo import decide_mark, edits_of_marks, find_opinfos, marks
from porter.aten.skip_lists import Change, decide_all, edits_of, read_lists
from porter.aten.stubs import Stub, StubCall
from porter.core import dtypes
from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.layout import INDEXING, KERNEL_LIBRARY
from porter.metal.families import family_for
from porter.metal.host import Dialect
from porter.metal.kernel import FIRST_CANDIDATES, CandidateChoice, Kernel
from porter.metal.kernel_spec import RecordedGraph, no_recording, read_spec
from porter.plan.draft import Draft
from porter.plan.plan import (
    EntryChange,
    ListChange,
    Plan,
    PlannedFunctor,
    PlannedRegistration,
    PlannedStub,
    RemovedSymbol,
    Unported,
)
from porter.plan.removal import Removed, removals


@dataclass(frozen=True)
class Ported:
    """The draft with the kernels of the rows that move; a row that cannot move is held."""

    draft: Draft
    outcomes: tuple[Migration | Blocked, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    stubs: frozenset[Stub] = frozenset()

    @property
    def moved(self) -> tuple[Migration, ...]:
        return tuple(each for each in self.outcomes if isinstance(each, Migration))

    @property
    def held(self) -> tuple[Blocked, ...]:
        return tuple(each for each in self.outcomes if isinstance(each, Blocked))


def plan_operator(
    checkout: Checkout,
    op: str,
    choice: CandidateChoice = FIRST_CANDIDATES,
    recorded: RecordedGraph = no_recording,
) -> Plan:
    """The complete port of one operator, each kernel computing what its candidate of this choice says.

    `recorded` gives the old graph where the source is not read. Raises PorterError when nothing can be planned.
    """
    require_dialect(checkout)
    operator = Operator.read(checkout, op)
    _refuse_nothing_to_do(operator)
    ported = _port_rows(checkout, operator, choice, recorded)
    if ported.held and not ported.kernels:
        raise ported.held[0].error
    functions = NativeFunctions.read(checkout)
    moving = (*ported.moved, *find_joining(checkout, operator, ported.moved))
    draft = ported.draft.apply(e for move in moving for e in share_edits(functions, move.served.function, move.target))
    draft, removed = _remove_old_code(draft, functions, moving, ported.held)
    whole = not any(_left_behind(checkout, functions.family(operator.base), moving))
    draft, lists = _free_tests(draft, operator.base, ported.kernels, whole)
    return Plan(
        op=op,
        entries=tuple(_entry_change(functions, move) for move in moving),
        functors=tuple(PlannedFunctor(k.kernel_file, k.name, k.source, k.origins) for k in ported.kernels),
        registrations=tuple(_registrations(ported.kernels)),
        stubs=tuple(PlannedStub(k.stub.name, k.function, k.host_file) for k in ported.kernels),
        removed=tuple(RemovedSymbol(each.file, each.symbol) for each in removed),
        lists=lists,
        unported=tuple(_unported(each) for each in ported.held),
        notes=tuple(note for kernel in ported.kernels for note in kernel.notes),
        answered=_answered(moving),
        changes=draft.changes,
    )


def require_dialect(checkout: Checkout) -> None:
    """Refuses a fork from before the functor dialect, naming what it lacks (PTR002)."""
    missing = [path for path in (INDEXING, KERNEL_LIBRARY) if not checkout.exists(path)]
    if not missing and "#define REGISTER_BINARY_OP" not in checkout.read(INDEXING):
        missing.append(f"REGISTER_BINARY_OP in {INDEXING}")
    names = {each.name for each in Dialect.read(checkout).execs}
    missing += [f"{n} in {KERNEL_LIBRARY}" for n in ("exec_unary_kernel", "exec_binary_kernel") if n not in names]
    if missing:
        raise PorterError(
            "PTR002",
            f"this fork predates the functor dialect: it lacks {', '.join(missing)}",
            Place(INDEXING),
            "docs/your-fork.md shows how to modernize a fork; `porter status` and `porter explain` work on this one.",
        )


def _refuse_nothing_to_do(operator: Operator) -> None:
    if any(row.builds_graph for row in operator.served):
        return
    unknown = next((row.error for row in operator.served if row.error), None)
    if unknown:
        raise unknown
    op, place = operator.name, operator.functions[0].place
    if any(row.language is Language.METAL for row in operator.served):
        raise PorterError("PTR013", f"{op} is already native", place, "There is nothing to migrate.")
    if operator.served:
        what = f"the MPS code of {op} only calls other operators"
        raise PorterError("PTR013", what, place, "There is nothing to migrate: port those that it calls.")
    if operator.is_composite:
        raise PorterError("PTR014", f"{op} is composite: it has no kernels", place, "Migrate the operators it calls.")
    raise PorterError(
        "PTR015", f"{op} has no MPS kernel", place, "There is nothing to migrate: MPS needs a new kernel."
    )


def _port_rows(checkout: Checkout, operator: Operator, choice: CandidateChoice, recorded: RecordedGraph) -> Ported:
    """Ports every stub that the rows lead to, once; a row with a stub that cannot be ported leaves no trace."""
    ported = Ported(Draft(checkout))
    for move in sorted(find_migrations(checkout, operator), key=_most_tensors):
        outcome, before = move, ported
        if isinstance(move, Migration):
            try:
                for call in move.stubs:
                    ported = _port_stub(ported, operator, move, call, choice, recorded)
            except PorterError as error:
                outcome = Blocked(move.served, error)
                ported = before
        ported = replace(ported, outcomes=(*ported.outcomes, outcome))
    in_order = sorted(ported.outcomes, key=lambda each: operator.functions.index(each.served.function))
    return replace(ported, outcomes=tuple(in_order))


def _port_stub(
    ported: Ported,
    operator: Operator,
    move: Migration,
    call: StubCall,
    choice: CandidateChoice,
    recorded: RecordedGraph,
) -> Ported:
    """The draft with the kernel of one stub more, unless it has one: from an earlier row, or native already."""
    fork = ported.draft.fork
    if call.stub in ported.stubs or _is_native(fork, call.stub):
        return ported
    spec = read_spec(fork, operator, move, call, recorded)
    kernel = family_for(spec.function, call).write(fork, spec, choice)
    draft = ported.draft
    for step in kernel.steps:
        draft = draft.apply(step(draft.fork))
    return replace(ported, draft=draft, kernels=(*ported.kernels, kernel), stubs=ported.stubs | {call.stub})


def _is_native(fork: Checkout, stub: Stub) -> bool:
    registered = find_registration(fork, stub.name)
    return registered is not None and find_language(fork, registered) is Language.METAL


def _most_tensors(move: Migration | Blocked) -> int:
    """Rows over tensors first: a row with a scalar in a tensor's place says less about the kernel."""
    return -sum(argument.is_tensor for argument in move.served.function.arguments)


def _remove_old_code(
    draft: Draft, functions: NativeFunctions, moving: Sequence[Migration], held: Sequence[Blocked]
) -> tuple[Draft, tuple[Removed, ...]]:
    """The old implementations go, with their includes and whatever nothing refers to any more."""
    needed = [each.served.implementation for each in held]
    old = [each for move in moving if (each := move.served.implementation) and each not in needed]
    declared = {move.served.function.base: _mps_kernels(functions, move.served.function.base) for move in moving}
    gone = removals(draft.fork, old, declared)
    return draft.apply(each.edit for each in gone), gone


def _mps_kernels(functions: NativeFunctions, base: str) -> set[str]:
    """The kernels that the operator's `_native.h` declares for MPS."""
    lines = (line for entry in functions.family(base) for line in entry.dispatch)
    return {line.kernel for line in lines if MPS_KEY in line.keys}


def _free_tests(
    draft: Draft, base: str, kernels: Sequence[Kernel], whole: bool
) -> tuple[Draft, tuple[ListChange, ...]]:
    """Test-list entries and OpInfo marks go where their reason does: all stay while a row is on MPSGraph."""
    ported = {dtype.torch for kernel in kernels for dtype in kernel.dtypes}
    calls = find_opinfos(draft.fork, base)
    complex_too = {call.key for call in calls if call.dtypes is None or dtypes.FLOAT2.torch in call.dtypes}
    decisions = decide_all(read_lists(draft.fork), {call.key for call in calls} | {base}, ported, complex_too)
    if not whole:
        why = "other rows of the operator are not ported"
        return draft, tuple(ListChange(d.skip_list.file, d.skip_list.name, d.name, Change.KEPT, why) for d in decisions)
    judged = [decide_mark(mark, ported) for call in calls for mark in marks(call)]
    draft = draft.apply((*edits_of(decisions), *edits_of_marks(judged)))
    changes = [ListChange(d.skip_list.file, d.skip_list.name, d.name, d.change, d.why) for d in decisions]
    return draft, tuple(changes)


def _entry_change(functions: NativeFunctions, move: Migration) -> EntryChange:
    keys = move.target.keys if MPS_KEY in move.target.keys else functions.with_mps(move.target.keys)
    line = move.served.entry
    before, after = f"{', '.join(line.keys)}: {line.kernel}", f"{', '.join(keys)}: {move.target.kernel}"
    return EntryChange(move.served.function.name, before, after)


def _registrations(kernels: Sequence[Kernel]) -> Iterator[PlannedRegistration]:
    for kernel in kernels:
        for line in kernel.registrations:
            for instance in line.instances:
                yield PlannedRegistration(kernel.name, str(line), instance.input, instance.output)


def _answered(moving: Sequence[Migration]) -> tuple[str, ...]:
    """The dtypes for which no row's implementation calls a stub: it copies or fills instead."""
    called = {dtype for move in moving for call in move.stubs for dtype in call.dtypes}
    return tuple(dtype.torch for dtype in dtypes.ALL if called and dtype not in called)


def _unported(held: Blocked) -> Unported:
    error, entry = held.error, held.served.function
    stays = "stays as it is" if held.served.error else "stays on MPSGraph"
    return Unported(error.code, error.place or entry.place, f"{entry.name} {stays}: {error.what}")


def _left_behind(
    checkout: Checkout, family: Sequence[NativeFunction], moving: Sequence[Migration]
) -> Iterator[NativeFunction]:
    """The rows of the base name that stay on MPSGraph, or may, whichever overload was asked for."""
    moved = {move.served.function.name for move in moving}
    for entry in family:
        row = find_served(checkout, entry) if entry.name not in moved else None
        if row and (row.builds_graph or row.error):
            yield entry
