"""The story of a port: find the operator, see what its old code computes, write the native one, take the old one
out.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from porter.aten.implementations import Written
from porter.aten.native_functions import MPS_KEY, Entry, NativeFunctions, share_edits
from porter.aten.operator import Held, Move, Row, joining, moves, mps_row
from porter.aten.opinfo import decide_mark, edits_of_marks, find_opinfos, marks
from porter.aten.skip_lists import decide_all, edits_of, read_lists
from porter.aten.stubs import Stub
from porter.core import dtypes
from porter.core.checkout import Checkout
from porter.core.edits import ChangeSet, Edit
from porter.core.errors import Place, PorterError
from porter.core.layout import INDEXING, KERNEL_LIBRARY, NATIVE_FUNCTIONS, OPERATIONS
from porter.metal.elementwise import FIRST, Port, Recorded, Turns, never, port_stub
from porter.metal.host import Dialect
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


@dataclass
class Draft:
    """The fork as the plan leaves it so far: every step edits the text that the step before it left."""

    fork: Checkout
    turns: Turns
    recorded: Recorded

    def apply(self, edits: Iterable[Edit]) -> None:
        """Applies edits of the current texts."""
        made = tuple(edits)
        base = {edit.file: self.fork.read(edit.file) for edit in made}
        self.fork = self.fork.layer(ChangeSet(base, made).apply())


def plan_operator(checkout: Checkout, op: str, turns: Turns = FIRST, recorded: Recorded = never) -> Plan:
    """The complete port of one operator, each functor computing what its candidate of that turn says.

    `recorded` gives the old graph where the source is not read. Raises PorterError when nothing can be planned.
    """
    require_dialect(checkout)
    functions = NativeFunctions.read(checkout)
    family = functions.family(op)
    rows = tuple(row for entry in family if (row := mps_row(checkout, entry)))
    _refuse_nothing_to_do(op, family, rows)
    draft = Draft(checkout, turns, recorded)
    outcomes = tuple(_port_all(draft, functions, family, moves(checkout, family, rows)))
    settled = sorted((move for move, _ in outcomes), key=lambda move: family.index(move.row.entry))
    moved = tuple(move for move in settled if isinstance(move, Move))
    moving = (*moved, *joining(checkout, family, moved))
    held = tuple(move for move in settled if isinstance(move, Held))
    ports = tuple(port for _, made in outcomes for port in made)
    if held and not ports:
        raise held[0].error
    draft.apply(e for move in moving for e in share_edits(functions, move.row.entry, move.target))
    gone = _take_out_old_code(draft, functions, moving, held)
    whole = not any(_left_behind(checkout, functions.family(family[0].base), moving))
    lists = _free_tests(draft, family[0], ports, whole)
    return Plan(
        op=op,
        entries=tuple(_entry_change(functions, move) for move in moving),
        functors=tuple(PlannedFunctor(p.kernel_file, p.name, p.source, p.functor.origins) for p in ports),
        registrations=tuple(_registrations(ports)),
        stubs=tuple(PlannedStub(p.stub.name, p.function, p.host_file) for p in ports),
        removed=tuple(RemovedSymbol(r.file, r.symbol) for r in gone),
        lists=lists,
        unported=tuple(_unported(each) for each in held),
        notes=tuple(note for port in ports for note in port.notes),
        answered=_answered(moving),
        changes=changes_between(checkout, draft.fork, _touched(checkout, draft.fork)),
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
            f"this fork is older than the functor dialect: it lacks {', '.join(missing)}",
            Place(INDEXING),
            "docs/your-fork.md says how to make a fork modern; status and explain work as it is.",
        )


def _refuse_nothing_to_do(op: str, family: Sequence[Entry], rows: Sequence[Row]) -> None:
    if any(row.written is Written.MPSGRAPH for row in rows):
        return
    place = family[0].place
    if rows and all(row.written is not Written.MPSGRAPH for row in rows):
        raise PorterError("PTR013", f"{op} is native already", place, "There is nothing to migrate.")
    if all(entry.is_composite or not entry.dispatch for entry in family):
        raise PorterError("PTR014", f"{op} is composite only", place, "Migrate the operators it is made of.")
    raise PorterError(
        "PTR015", f"{op} has no MPS kernel", place, "It is new to MPS: a kernel has to be added, not moved."
    )


def _port_all(
    draft: Draft, functions: NativeFunctions, family: Sequence[Entry], moving: Sequence[Move | Held]
) -> Iterator[tuple[Move | Held, tuple[Port, ...]]]:
    """Ports every stub that the rows lead to, once; a row with a stub that cannot be ported leaves no trace."""
    done: set[Stub] = set()
    for move in sorted(moving, key=_most_tensors):
        if isinstance(move, Held):
            yield move, ()
            continue
        before = draft.fork
        try:
            made = tuple(_port_row(draft, functions, family, move, ported := set(done)))
        except PorterError as error:
            draft.fork = before
            yield Held(move.row, error), ()
            continue
        done |= ported
        yield move, made


def _port_row(
    draft: Draft, functions: NativeFunctions, family: Sequence[Entry], move: Move, done: set[Stub]
) -> Iterator[Port]:
    for call in move.stubs:
        if call.stub in done:
            continue
        done.add(call.stub)
        port = port_stub(draft.fork, move, call, family, functions, draft.turns, draft.recorded)
        if port is not None:
            for edits in port.edits:
                draft.apply(edits(draft.fork))
            yield port


def _most_tensors(move: Move | Held) -> int:
    """Rows over tensors first: a row with a scalar in a tensor's place says less about the kernel."""
    return -sum(argument.is_tensor for argument in move.row.entry.arguments)


def _take_out_old_code(
    draft: Draft, functions: NativeFunctions, moving: Sequence[Move], held: Sequence[Held]
) -> tuple[Removed, ...]:
    """The old implementations go, with their includes and whatever nothing refers to any more."""
    needed = [each.row.implementation for each in held]
    declared: dict[str, set[str]] = {}
    for move in moving:
        base = move.row.entry.base
        declared[base] = {
            line.kernel
            for entry in functions.entries
            if entry.base == base
            for line in entry.dispatch
            if MPS_KEY in line.keys
        }
    old = [each for move in moving if (each := move.row.implementation) and each not in needed]
    gone = removals(draft.fork, old, declared)
    draft.apply(each.edit for each in gone)
    return gone


def _free_tests(draft: Draft, entry: Entry, ports: Sequence[Port], whole: bool) -> tuple[ListChange, ...]:
    """Test-list entries and OpInfo marks go where their reason does: all stay while a row is on MPSGraph."""
    ported = {dtype.torch for port in ports for dtype in port.dtypes}
    calls = find_opinfos(draft.fork, entry.base)
    complex_too = {call.key for call in calls if call.dtypes is None or dtypes.FLOAT2.torch in call.dtypes}
    decisions = decide_all(read_lists(draft.fork), {call.key for call in calls} | {entry.base}, ported, complex_too)
    if not whole:
        why = "kept: other rows of the operator are not ported"
        return tuple(ListChange(d.skip_list.file, d.skip_list.name, d.name, why) for d in decisions)
    judged = [decide_mark(mark, ported) for call in calls for mark in marks(call)]
    draft.apply((*edits_of(decisions), *edits_of_marks(judged)))
    changes = [
        ListChange(d.skip_list.file, d.skip_list.name, d.name, f"kept: {d.why}" if d.change == "kept" else d.change)
        for d in decisions
    ]
    return tuple(changes)


def _entry_change(functions: NativeFunctions, move: Move) -> EntryChange:
    keys = move.target.keys if MPS_KEY in move.target.keys else functions.with_mps(move.target.keys)
    line = move.row.line
    before, after = f"{', '.join(line.keys)}: {line.kernel}", f"{', '.join(keys)}: {move.target.kernel}"
    return EntryChange(move.row.entry.name, before, after)


def _registrations(ports: Sequence[Port]) -> Iterator[PlannedRegistration]:
    for port in ports:
        for line in port.lines:
            for instance in line.instances:
                yield PlannedRegistration(port.name, str(line), instance.input, instance.output)


def _answered(moving: Sequence[Move]) -> tuple[str, ...]:
    """The dtypes for which no row's implementation calls a stub: it copies or fills instead."""
    called = {dtype for move in moving for call in move.stubs for dtype in call.dtypes}
    return tuple(dtype.torch for dtype in dtypes.ALL if called and dtype not in called)


def _unported(held: Held) -> Unported:
    error, entry = held.error, held.row.entry
    return Unported(error.code, error.place or entry.place, f"{entry.name} stays on MPSGraph: {error.what}")


def _left_behind(checkout: Checkout, family: Sequence[Entry], moving: Sequence[Move]) -> Iterator[Entry]:
    """The rows of the base name that stay on MPSGraph, whichever overload was asked for."""
    moved = {move.row.entry.name for move in moving}
    for entry in family:
        row = mps_row(checkout, entry) if entry.name not in moved else None
        if row and row.written is Written.MPSGRAPH:
            yield entry


def _touched(before: Checkout, after: Checkout) -> list[str]:
    files = {*before.hashes, NATIVE_FUNCTIONS, *before.list(OPERATIONS, ".mm")}
    return sorted(file for file in files if before.exists(file) and after.read(file) != before.read(file))


def changes_between(before: Checkout, after: Checkout, files: Iterable[str]) -> ChangeSet:
    """The smallest line edits that lead from one snapshot to the other."""
    base = {file: before.read(file) for file in files}
    return ChangeSet(base, tuple(e for file, text in base.items() for e in _line_edits(file, text, after.read(file))))


def _line_edits(file: str, old: str, new: str) -> Iterator[Edit]:
    head = old.rfind("\n", 0, _agreeing(old, new)) + 1
    tail = _agreeing(old[head:][::-1], new[head:][::-1])
    behind = old.find("\n", len(old) - tail) + 1 or len(old)
    middle_old = old[head:behind].splitlines(keepends=True)
    middle_new = new[head : len(new) - (len(old) - behind)].splitlines(keepends=True)
    starts = [head]
    for line in middle_old:
        starts.append(starts[-1] + len(line))
    for tag, a, b, c, d in difflib.SequenceMatcher(None, middle_old, middle_new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield Edit(file, starts[a], starts[b], "".join(middle_new[c:d]))


def _agreeing(one: str, two: str) -> int:
    """How many characters two texts start with alike."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == two[low:middle] else (low, middle - 1)
    return low
